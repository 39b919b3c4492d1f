/** events - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

import type { InboundEvent } from './inbound-event.ts'

export interface DeliveredEvent {
  /** Id of the resource */
  id: string
  /** Number of the attempt, from 1 */
  attempt: number
  /** Id of the message */
  messageId: string
  /** Address of the recipient */
  recipient: string
  /** When it happened */
  occurredAt: string
  /** Id of the server */
  serverId: string
  /** Id of the stream */
  streamId: string
  /** Id of the broadcast; null for other messages */
  broadcastId: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** Whether it belongs to a test server */
  test: boolean
  /** Name of the event */
  event: 'delivered'
  /** Details of the event */
  details: {
    /** SMTP reply code; null without a reply */
    code: number | null
    /** Reply of the receiving server; null without a reply */
    response: string | null
  }
}

export interface BouncedEvent {
  /** Id of the resource */
  id: string
  /** Number of the attempt, from 1 */
  attempt: number
  /** Id of the message */
  messageId: string
  /** Address of the recipient */
  recipient: string
  /** When it happened */
  occurredAt: string
  /** Id of the server */
  serverId: string
  /** Id of the stream */
  streamId: string
  /** Id of the broadcast; null for other messages */
  broadcastId: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** Whether it belongs to a test server */
  test: boolean
  /** Name of the event */
  event: 'bounced'
  /** Details of the event */
  details: {
    /** SMTP reply code; null without a reply */
    code: number | null
    /** Reply of the receiving server; null without a reply */
    response: string | null
    /** Class of the bounce */
    classification: string | null
    /** Whether the bounce is permanent */
    hard: boolean
    /** Whether delivery ended because the time for retries was over */
    expired: boolean
  }
}

export interface DeferredEvent {
  /** Id of the resource */
  id: string
  /** Number of the attempt, from 1 */
  attempt: number
  /** Id of the message */
  messageId: string
  /** Address of the recipient */
  recipient: string
  /** When it happened */
  occurredAt: string
  /** Id of the server */
  serverId: string
  /** Id of the stream */
  streamId: string
  /** Id of the broadcast; null for other messages */
  broadcastId: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** Whether it belongs to a test server */
  test: boolean
  /** Name of the event */
  event: 'deferred'
  /** Details of the event */
  details: {
    /** SMTP reply code; null without a reply */
    code: number | null
    /** Reply of the receiving server; null without a reply */
    response: string | null
  }
}

export interface SpamComplaintEvent {
  /** Id of the resource */
  id: string
  /** Number of the attempt, from 1 */
  attempt: number
  /** Id of the message */
  messageId: string
  /** Address of the recipient */
  recipient: string
  /** When it happened */
  occurredAt: string
  /** Id of the server */
  serverId: string
  /** Id of the stream */
  streamId: string
  /** Id of the broadcast; null for other messages */
  broadcastId: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** Whether it belongs to a test server */
  test: boolean
  /** Name of the event */
  event: 'spam_complaint'
  /** Details of the event */
  details: {
    /** Feedback type of the complaint report */
    feedbackType: string | null
  }
}

export interface UnsubscribedEvent {
  /** Id of the resource */
  id: string
  /** Number of the attempt, from 1 */
  attempt: number
  /** Id of the message */
  messageId: string
  /** Address of the recipient */
  recipient: string
  /** When it happened */
  occurredAt: string
  /** Id of the server */
  serverId: string
  /** Id of the stream */
  streamId: string
  /** Id of the broadcast; null for other messages */
  broadcastId: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** Whether it belongs to a test server */
  test: boolean
  /** Name of the event */
  event: 'unsubscribed'
  /** Details of the event */
  details: {
    /** How the message was submitted, or the source of the entry */
    source: 'link' | 'one_click'
  }
}

export interface CapWarningEvent {
  /** Id of the resource */
  id: string
  /** Number of the attempt, from 1 */
  attempt: number
  /** Name of the event */
  event: 'cap_warning'
  /** Resource to which the limit applies */
  scope: 'account' | 'server' | 'test'
  /** Id of the server */
  serverId: string | null
  /** Number of messages that the account may send in a month */
  cap: number
  /** Number that counts towards the limit */
  used: number
  /** Start of the period */
  periodStart: string
  /** End of the period */
  periodEnd: string
  /** When it happened */
  occurredAt: string
}

export interface CapReachedEvent {
  /** Id of the resource */
  id: string
  /** Number of the attempt, from 1 */
  attempt: number
  /** Name of the event */
  event: 'cap_reached'
  /** Resource to which the limit applies */
  scope: 'account' | 'server' | 'test'
  /** Id of the server */
  serverId: string | null
  /** Number of messages that the account may send in a month */
  cap: number
  /** Number that counts towards the limit */
  used: number
  /** Start of the period */
  periodStart: string
  /** End of the period */
  periodEnd: string
  /** When it happened */
  occurredAt: string
}

export type Event =
  | DeliveredEvent
  | BouncedEvent
  | DeferredEvent
  | SpamComplaintEvent
  | UnsubscribedEvent
  | CapWarningEvent
  | CapReachedEvent
  | InboundEvent

export interface EventSearch {
  /** Name of the event */
  event?:
    | 'delivered'
    | 'bounced'
    | 'deferred'
    | 'spam_complaint'
    | 'unsubscribed'
    | 'cap_warning'
    | 'cap_reached'
    | 'inbound'
  /** Id of the stream */
  streamId?: string
  /** text without control characters */
  tag?: string
  /** Your own keys and values */
  metadata?: Record<string, string>
  /** Id of the message */
  messageId?: string
  /** an e-mail address */
  recipient?: string
  /** Sender, or start of the period */
  from?: string
  /** Recipients, or end of the period */
  to?: string
  /** Default: 100 */
  limit?: number
  /** Value of `next` of the previous page */
  after?: string
  /** Seconds to wait until something matches; the page is empty if nothing does. Not with `after` */
  waitSeconds?: number
}
