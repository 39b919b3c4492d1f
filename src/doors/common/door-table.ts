/**
 * door-table - the form of a door: its routes as data with their handlers, and the paths that it does not offer
 */

import type { CompatibleApi } from '../../../schemas/config.ts'
import type { Route } from '../../../schemas/routes.ts'
import type { Door } from '../../http/door.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import type { OwnApi } from './own-api.ts'

/** Answers one request of a door. */
export type DoorHandler = (request: EdgeRequest, own: OwnApi) => Answer | Promise<Answer>

/** One route of a door. Paths are at the root of the listener, since most clients drop the path of a base URL. */
export interface DoorRow {
  readonly route: Route
  readonly handle: DoorHandler
  /** Absent: JSON. */
  readonly media?: 'form'
  /** If absent, the limit of our own routes applies. */
  readonly idempotencyCharsMax?: number
}

/** A path that a door does not offer. */
interface DeadEnd {
  readonly path: string
  readonly message: string
  /** Present if its refusal has another form than that of the door. */
  readonly door?: Door
}

/** A door. */
export interface DoorTable {
  readonly name: CompatibleApi
  readonly door: Door
  readonly rows: readonly DoorRow[]
  /** Paths that its clients request and that it does not offer, each with a sentence that names the alternative. */
  readonly deadEnds: readonly DeadEnd[]
}

/** The schema of a body that the handler maps: our own route checks the mapped body. */
export const MAPPED = {}
