/**
 * targets - the target of each path and method of a listener: a route, a 405 or a 404
 *
 * Spec refusal.order, request.head
 */

import { BODY_BYTES_MAX } from '../../schemas/limits.ts'
import type { Route } from '../../schemas/routes.ts'
import { HeldBytes } from '../process/held-bytes.ts'
import type { RequestTally } from '../process/request-tally.ts'
import { type Gate, makeDeadEnd, makeGate } from './admit.ts'
import { makeContentCheck } from './body.ts'
import type { Door, DoorDeadEnd, DoorRouteOptions } from './door.ts'
import { makeRate, type Rate } from './rate.ts'
import type { Handler, Target } from './request.ts'
import { type Reply, refusalReply } from './respond.ts'

/** Makes the target of a route. Takes the shared bound of all routes of its listener with large bodies. */
export function makeTarget(
  route: Route,
  handle: Handler,
  { tally, large, at }: { readonly tally: RequestTally; readonly large: HeldBytes; readonly at?: DoorRouteOptions },
): Target {
  return {
    tally,
    gate: makeGate(route, at),
    door: at?.door ?? null,
    route,
    check: makeContentCheck(route, at?.media),
    handle,
    paramNames: paramsOf(route.path),
    bodyBytesMax: route.bodyBytesMax,
    rate: makeRateOrNull(route),
    held: route.takesPieces ? large : null,
  }
}

/** Names of a path's parameters in their order; `*` is the whole requested path, which may be longer. */
function paramsOf(path: string): readonly string[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  return path.endsWith('/*') ? [...names, '*'] : names
}

/** Large bodies that a listener holds at once: within the common bound a few slow ones would refuse everybody. */
const LARGE_BODIES = 2

/** The shared bound of the routes with large bodies. Takes all routes of a listener. */
export function makeLargeHeld(routes: readonly Route[]): HeldBytes {
  const largest = Math.max(0, ...routes.filter(({ takesPieces }) => takesPieces).map((route) => route.bodyBytesMax))
  return new HeldBytes(LARGE_BODIES * largest)
}

function makeRateOrNull({ ratePerSecond }: Route): Rate | null {
  if (ratePerSecond === null) return null
  return makeRate({ perSecond: ratePerSecond, burst: ratePerSecond, nowMs: () => performance.now() })
}

/** The target of other methods on a known path: 405 with Allow. Spec request.head */
export function makeNoMethod(
  listener: Route['listener'],
  siblings: readonly Route[],
  { tally, door }: { tally: RequestTally; door: Door | null },
): Target {
  const methods = siblings.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  const refusal: Reply = { ...refusalReply('method_not_allowed'), headers: { Allow: methods.join(', ') } }
  const needsKey = siblings.some(({ keys, session }) => keys.length > 0 || session?.level != null)
  return makeNoTarget(makeDeadEnd(listener, refusal, needsKey, siblings[0]?.session ?? null), tally, door)
}

function makeNoTarget(gate: Gate, tally: RequestTally, door: Door | null = null): Target {
  return {
    tally,
    gate,
    door,
    route: null,
    check: null,
    handle: null,
    paramNames: [],
    bodyBytesMax: BODY_BYTES_MAX,
    rate: null,
    held: null,
  }
}

/** The path as the router of the library writes it. */
export function formatPattern(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

/** The target of unknown paths: 404, once a key is known. */
export function makeNowhere(listener: Route['listener'], tally: RequestTally): Target {
  return makeNoTarget(makeDeadEnd(listener, refusalReply('not_found', {}, 'No such route'), true), tally)
}

/** The target of a door's unknown paths. */
export function makeDoorDeadEnd({ door, message }: DoorDeadEnd, tally: RequestTally): Target {
  return makeNoTarget(makeDeadEnd('public', refusalReply('not_found', {}, message)), tally, door)
}

/** The target of paths of a disabled door: 404, before a key is read. */
export function makeClosedDoor(tally: RequestTally): Target {
  return makeNoTarget(makeDeadEnd('public', refusalReply('not_found', {}, 'No such route'), false), tally)
}

/** The target of unknown paths of the dashboard's interface: 404, once a session is known. */
export function makeNowhereSignedIn(tally: RequestTally): Target {
  const refusal = refusalReply('not_found', {}, 'No such route')
  return makeNoTarget(makeDeadEnd('public', refusal, true, { level: 'r', confirms: false, isBefore: true }), tally)
}
