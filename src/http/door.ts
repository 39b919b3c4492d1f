/**
 * door - the adapter with which the listener serves the API of another provider: the location of the key in a request,
 * and the form of refusals
 *
 * A refusal is decided and logged with our code. Only the bytes that leave have the other form.
 */

import type { NamedHeaders, RequestHeaders } from './headers.ts'
import type { Reply } from './respond.ts'

/** The API of another provider. */
export interface Door {
  /** Names of the headers that its requests are read for, in lower case. */
  readonly headerNames: readonly string[]
  /** Makes the Authorization header of our own routes out of a request's; '' if it has no key, or two. */
  authorize(headers: RequestHeaders): string
  /** A header that its own requests alone carry: it settles whose a request for a path of two doors is. */
  readonly ownHeader?: string
  /** A door with which it has a path in common. */
  readonly joined?: Door
  /** Converts a refusal of ours to the form of the provider. `hasKey` is whether the request had a key. */
  present(refusal: Reply, hasKey: boolean): Reply
}

/** How one route of a door differs from ours. */
export interface DoorRouteOptions {
  readonly door: Door
  /** Media type of its bodies. A form is handed over as bytes. */
  readonly media: 'json' | 'form'
  /** Characters that an Idempotency-Key may have. */
  readonly idempotencyCharsMax: number
}

/** A path of a door that leads nowhere. */
export interface DoorDeadEnd {
  readonly door: Door
  /** A path as in a route. A final `/*` matches everything below. */
  readonly path: string
  /** The sentence that names the alternative. */
  readonly message: string
}

/** An answer in the client's form: a refusal of a door has the form of the door. */
export function presented(
  door: Door | null,
  answer: Reply,
  { authorization, named }: Pick<RequestHeaders, 'authorization' | 'named'>,
): Reply {
  if (door === null || answer.status < 400) return answer
  return doorFor(door, named).present(answer, authorization !== '')
}

/** Makes one door of two that have a path in common: the first has the requests that carry its own header. */
export function joinDoors(first: Door, second: Door): Door {
  const { ownHeader } = first
  if (ownHeader === undefined) return second
  return {
    ...second,
    headerNames: [...new Set([...first.headerNames, ...second.headerNames])],
    authorize: (headers) => (ownHeader in headers.named ? first : second).authorize(headers),
    joined: first,
  }
}

/** The door that a request meant. */
function doorFor(door: Door, named: NamedHeaders): Door {
  const { joined } = door
  return joined?.ownHeader !== undefined && joined.ownHeader in named ? joined : door
}
