/**
 * doors - the doors by name, and their routes as the listener serves them
 *
 * A path of a disabled door answers 404 before a key is read.
 */

import type { CompatibleApi } from '../../schemas/config.ts'
import { IDEMPOTENCY_KEY_CHARS_MAX } from '../../schemas/limits.ts'
import { type DoorDeadEnd, joinDoors } from '../http/door.ts'
import type { RouteHandler } from '../http/listener.ts'
import type { DoorTable } from './common/door-table.ts'
import { makeOwnApi, type OwnApiDeps } from './common/own-api.ts'
import { MAILGUN } from './mailgun/door.ts'
import { POSTMARK } from './postmark/door.ts'
import { RESEND } from './resend/door.ts'

/** Every door. */
export const DOORS: readonly DoorTable[] = [RESEND, POSTMARK, MAILGUN]

/** The open doors as the listener serves them. */
export interface OpenDoors {
  readonly routes: readonly RouteHandler[]
  readonly deadEnds: readonly DoorDeadEnd[]
  /** Paths of doors that are switched off. */
  readonly closed: readonly string[]
}

/** Opens the doors of a setting. */
export function openDoors(names: readonly CompatibleApi[], deps: OwnApiDeps): OpenDoors {
  const own = makeOwnApi(deps)
  const open = DOORS.filter(({ name }) => names.includes(name))
  const routes = open.flatMap(({ door, rows }) =>
    rows.map(({ route, handle, media, idempotencyCharsMax = IDEMPOTENCY_KEY_CHARS_MAX }): RouteHandler => {
      const at = { door, media: media ?? ('json' as const), idempotencyCharsMax }
      return { route, handle: (request) => handle(request, own), at }
    }),
  )
  const paths = new Set(routes.map(({ route }) => route.path))
  const ends = new Map<string, DoorDeadEnd>()
  for (const { door: own, deadEnds: some } of open) {
    for (const { path, message, door = own } of some) {
      const before = ends.get(path)
      ends.set(path, before === undefined ? { door, path, message } : { ...before, door: joinDoors(door, before.door) })
    }
  }
  const deadEnds = [...ends.values()].filter(({ path }) => !paths.has(path))
  for (const { path } of deadEnds) paths.add(path)
  const off = DOORS.filter((one) => !open.includes(one)).flatMap((one) => pathsOf(one))
  return { routes, deadEnds, closed: [...new Set(off)].filter((path) => !paths.has(path)) }
}

function pathsOf({ rows, deadEnds }: DoorTable): string[] {
  return [...rows.map(({ route }) => route.path), ...deadEnds.map(({ path }) => path)]
}
