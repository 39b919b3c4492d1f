/**
 * sendwright - the TypeScript client: `import { Sendwright } from 'sendwright/client'`
 *
 * Guarantees: no dependency, no code of the server, no state except its options; a send is repeated only with its
 * Idempotency-Key.
 *
 * Spec client.types, client.retries
 */
import type { Refused } from './errors.ts'
import { type Exchange, makeExchange } from './exchange.ts'
import { type Exports, makeExports } from './exports.ts'
import { type Events, type Messages, makeEvents, makeMessages, makeReceived, type Received } from './mail.ts'
import type { CallOptions, SendOptions, SendwrightOptions } from './options.ts'
import {
  type Broadcasts,
  type Domains,
  type Erasures,
  makeBroadcasts,
  makeDomains,
  makeErasures,
  makeSuppressions,
  type Suppressions,
} from './resources.ts'
import type { Server, Stats, StatsQuery } from './shapes/resources.ts'
import type { Email, EmailAnswer } from './shapes/sending.ts'
import { makeWebhooks, type Webhooks } from './webhooks.ts'

export {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  type Issue,
  LimitError,
  NotFoundError,
  PermissionError,
  type Refused,
  SendwrightError,
  ServiceError,
  SignatureError,
  ValidationError,
  WaitTimeoutError,
} from './errors.ts'
export type { CsvPieces, Exports } from './exports.ts'
export type { FollowOptions } from './feed.ts'
export type { EventList, Events, Messages, Received, WaitOptions } from './mail.ts'
export type { CallOptions, SendOptions, SendwrightOptions, Signal } from './options.ts'
export type { Broadcasts, Domains, Erasures, Suppressions } from './resources.ts'
export type * from './shapes/events.ts'
export type * from './shapes/exports.ts'
export type * from './shapes/inbound-event.ts'
export type * from './shapes/messages.ts'
export type * from './shapes/received.ts'
export type * from './shapes/refusals.ts'
export type * from './shapes/reports.ts'
export type * from './shapes/resources.ts'
export type * from './shapes/sending.ts'
export type * from './shapes/webhooks.ts'
export { type VerifyOptions, verifyWebhook, type WebhookHeaders } from './signature.ts'
export type { Webhooks } from './webhooks.ts'

/** Up to 100 messages. */
export interface Batch {
  readonly messages: readonly Email[]
  /** Accepts the messages that can be accepted; otherwise all or none. Default: false */
  readonly partial?: boolean
}

/** An answer for each message, in the order of the request; only a partial batch has refusals. */
export interface BatchAnswer {
  messages: (EmailAnswer | Refused)[]
}

/** A client of one server (with a server key) or of one account (with an account key). */
export class Sendwright {
  /** Sent messages. */
  readonly messages: Messages
  /** Events of messages: a search of the last 30 days, and a feed. */
  readonly events: Events
  /** Messages to many recipients. */
  readonly broadcasts: Broadcasts
  /** Addresses that get no mail. */
  readonly suppressions: Suppressions
  /** Webhooks, their deliveries, and the check of a signature. */
  readonly webhooks: Webhooks
  /** Received mail. */
  readonly inbound: Received
  /** Sending domains; they take an account key. */
  readonly domains: Domains
  /** Erasures of a person's data; they take an account key. */
  readonly erasures: Erasures
  /** Lists as CSV. */
  readonly exports: Exports
  readonly #exchange: Exchange

  /** @throws SendwrightError if an option is wrong, or in a browser unless `allowBrowser` is true */
  constructor(options: SendwrightOptions) {
    const exchange = makeExchange(options)
    this.#exchange = exchange
    this.messages = makeMessages(exchange)
    this.events = makeEvents(exchange)
    this.broadcasts = makeBroadcasts(exchange)
    this.suppressions = makeSuppressions(exchange)
    this.webhooks = makeWebhooks(exchange)
    this.inbound = makeReceived(exchange)
    this.domains = makeDomains(exchange)
    this.erasures = makeErasures(exchange)
    this.exports = makeExports(exchange)
  }

  /** Sends one message. The answer means that it is on disk. */
  send(email: Email, options?: SendOptions): Promise<EmailAnswer> {
    return this.#exchange.ask({ method: 'POST', path: '/v1/email', body: email, isSend: true, options })
  }

  /** Sends up to 100 messages: all or none, unless `partial` is true. */
  sendBatch(batch: Batch, options?: SendOptions): Promise<BatchAnswer> {
    return this.#exchange.ask({ method: 'POST', path: '/v1/email/batch', body: batch, isSend: true, options })
  }

  /** Reads how many recipients were accepted, delivered, bounced and so on, by hour or day. */
  readStats(query?: StatsQuery, options?: CallOptions): Promise<Stats> {
    return this.#exchange.ask({ method: 'GET', path: '/v1/stats', query, options })
  }

  /** Reads the server of the key: its mode, its limits and its sending domains. */
  readServer(options?: CallOptions): Promise<Server> {
    return this.#exchange.ask({ method: 'GET', path: '/v1/server', options })
  }
}
