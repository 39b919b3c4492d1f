/**
 * request - the interface between the edge and the handlers of routes, and the shared state of a listener's requests
 *
 * Spec request.id, refusal.order
 */

import type { BodyOf, KeysOf, Route, RouteName } from '../../schemas/routes.ts'
import type { HeldBytes } from '../process/held-bytes.ts'
import type { Records } from '../process/records.ts'
import type { RequestTally } from '../process/request-tally.ts'
import type { RequestLog } from '../store/requests/request-log.ts'
import type { AccountKey, KeyOwner, OperatorKey, ServerKey } from '../views/key.ts'
import type { Gate } from './admit.ts'
import type { ContentCheck } from './body.ts'
import type { ClientAddress } from './client-address.ts'
import type { DashboardEdge } from './dashboard-edge.ts'
import type { Door } from './door.ts'
import type { NamedHeaders, RequestHeaders } from './headers.ts'
import type { KeyFinder } from './key.ts'
import type { KnownKeys } from './known-keys.ts'
import type { Rate } from './rate.ts'
import type { Answer } from './respond.ts'

/** Input of a handler: the key of a kind that its route takes, and a body that fits the route's schema. */
export interface EdgeRequest<Key = KeyOwner | null, Body = unknown> {
  readonly requestId: string
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** Checked against the route's schema, defaults filled in; undefined if the route takes none. */
  readonly body: Body
  readonly idempotencyKey: string | null
  /** Null if the route does not use it, or the request does not have it. */
  readonly lastEventId: string | null
  /** The media types that its client takes; '' if missing. */
  readonly accept: string
  /** The preferred languages; '' if missing. */
  readonly acceptLanguage: string
  /** The encodings that its client takes; '' if missing. */
  readonly acceptEncoding: string
  /** Null only if the route takes no key. */
  readonly key: Key
  /** The raw body, if the route takes it so; empty elsewhere. */
  readonly pieces: readonly Buffer[]
  /** The client's network, of the dashboard's routes; '' elsewhere. */
  readonly client: string
  /** Its cookies, of the dashboard's routes; '' elsewhere. */
  readonly cookies: string
  /** The browser's user agent and fetch destination; for the dashboard's routes. */
  readonly userAgent: string
  readonly fetchDest: string
  /** Headers that the route's door names; empty elsewhere. */
  readonly named: NamedHeaders
  /** The client's own body, if a door has converted it; an Idempotency-Key is bound to it. */
  readonly original?: unknown
  /** Becomes true when the client is gone. */
  readonly aborted: boolean
  /** The connection of a request over HTTP. */
  readonly connection?: Connection
}

/** The connection that a request came on, as its handler sees it. */
export interface Connection {
  /**
   * Calls back when the client is gone, or when the listener stops, while the request has no answer; at once if
   * that is so already. At most one call a request. From then on the bytes of its body do not count as held.
   */
  onEnd(end: () => void): void
}

/** Answers one request. */
export type Handler<Request = EdgeRequest> = (request: Request) => Promise<Answer> | Answer

interface KeyOfKind {
  readonly S: ServerKey
  readonly A: AccountKey
  readonly O: OperatorKey
}

/** The key of a route's requests; null if it takes no key. */
type KeyOf<Name extends RouteName> = [KeysOf<Name>] extends [never] ? null : KeyOfKind[KeysOf<Name>]

/** A request of a route, or of one of several. */
export type RequestOf<Name extends RouteName> = EdgeRequest<KeyOf<Name>, BodyOf<Name>>

/** The handler of a route's requests. */
export type HandlerOf<Name extends RouteName> = Handler<RequestOf<Name>>

/** A handler for each route: it does not compile if one is missing, or takes a different key or body. */
export type Handlers<Name extends RouteName = RouteName> = { readonly [One in Name]: HandlerOf<One> }

/** The destination of log lines, such as a pino logger. */
export interface EdgeLog {
  error(facts: object, text: string): void
  debug(facts: object, text: string): void
}

/** The target of a path. */
export interface Target {
  readonly gate: Gate
  /** Null for a path of our own API. */
  readonly door: Door | null
  /** Null if there is no route. */
  readonly route: Route | null
  readonly check: ContentCheck | null
  readonly handle: Handler | null
  readonly paramNames: readonly string[]
  readonly bodyBytesMax: number
  /** Null: that of the listener. */
  readonly rate: Rate | null
  /** The bound of its bodies; null for the common one. */
  readonly held: HeldBytes | null
  /** Where its answers are counted. */
  readonly tally: RequestTally
}

/** A request that can be cut off while its body is coming. */
export interface Receiving {
  /** Monotonic ms. */
  readonly startedAtMs: number
  /** Whether it may take longer than others: it is a large one. */
  readonly isLarge: boolean
  cut(): void
}

/** Shared state of all requests of a listener. */
export interface ListenerContext {
  readonly keys: KeyFinder
  readonly knownKeys: KnownKeys
  readonly rate: Rate | null
  readonly clientAddress: ClientAddress
  /** Null if no dashboard is served. */
  readonly dashboard: DashboardEdge | null
  readonly log: EdgeLog
  /** Keeps a log of requests; null to keep none. */
  readonly requests: Pick<RequestLog, 'note'> | null
  /** Logs a refused or failed request for the operator. */
  readonly refused: Records['refused']
  /** Bytes of bodies that are held. */
  readonly held: HeldBytes
  /** Requests not yet answered. */
  inHand: number
  /** Requests begun in all; a shutdown waits until the number stops growing. */
  opened: number
  isClosing: boolean
  /** Functions that end the streamed answers. */
  readonly feeds: Set<() => void>
  /** Requests whose body came in more than one piece and is not whole. */
  readonly receiving: Set<Receiving>
}

/** Data copied from a request before its handler returned. */
export interface RequestHead {
  readonly headers: RequestHeaders
  readonly isHead: boolean
  readonly query: string
  readonly params: Readonly<Record<string, string>>
  /** Address of the peer; '' if not needed. */
  readonly peer: string
}
