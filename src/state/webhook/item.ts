/**
 * item - the name of one delivery in its webhook's lane, with the delivery and its event.
 *
 * `<deliveryId>.<slice>.<reference>`, and a reference is one of
 *
 *   <letter>.<segment>.<message short>.<recipient n>.<event n>   an event of a message; n from 0
 *   i.<segment>.<message short>                                  a received message
 *   <letter>.<scope>.<cap>.<used>.<occurred at ms>               an event of a cap
 *   T<letter>.<made-up short>                                    an example
 *
 * Names sort by the delivery's id. A signal about the event contains only the reference. No personal data in it.
 */

import type { Entry } from '../../../cluster/behaviour.ts'
import { idOfShort, shortId } from '../../../cluster/id.ts'
import type { CapEventName, EventName, MessageEventName } from '../../../schemas/webhook.ts'
import type { LimitScope } from '../quota.ts'

/** An event of a recipient of a message, by its place. */
export interface MessageReference {
  readonly kind: 'message'
  readonly event: MessageEventName
  readonly segment: string
  readonly messageId: string
  readonly recipient: number
  /** Among the recipient's events. */
  readonly index: number
}

/** A received message. */
export interface InboundReference {
  readonly kind: 'inbound'
  readonly event: 'inbound'
  readonly segment: string
  readonly messageId: string
}

/** A reference to a server's mail, sent or received. */
export type MailReference = MessageReference | InboundReference

/** An event of a cap, whole. */
export interface CapReference {
  readonly kind: 'cap'
  readonly event: CapEventName
  readonly scope: LimitScope
  readonly cap: number
  readonly used: number
  readonly occurredAtMs: number
}

/** An example of an event. */
export interface ExampleReference {
  readonly kind: 'example'
  readonly event: EventName
  /** An id that names nothing. */
  readonly madeUpId: string
}

export type EventReference = MailReference | CapReference | ExampleReference

export interface WebhookItem {
  readonly deliveryId: string
  readonly slice: string
  readonly reference: EventReference
}

/** Field of a queue's entry: the item. */
export const QUEUE_FIELD = 'i'
/** Family of the lanes of webhooks. */
export const POST_LANE = 'post'

const LETTERS = {
  delivered: 'd',
  bounced: 'b',
  deferred: 'l',
  spam_complaint: 'c',
  unsubscribed: 'u',
  cap_warning: 'w',
  cap_reached: 'r',
  inbound: 'i',
} as const satisfies Record<EventName, string>
const NAMES = new Map<string, EventName>(Object.entries(LETTERS).map(([name, letter]) => [letter, name as EventName]))
const SCOPES = { a: 'account', s: 'server', t: 'test' } as const satisfies Record<string, LimitScope>
const EXAMPLE = 'T'
const ID_CHARS = 36

/** The lane of a webhook. */
export function postLane(webhookId: string): string {
  return `${POST_LANE}/${webhookId}`
}

/** The webhook of a lane. */
export function webhookOfLane(lane: string): string {
  return lane.slice(POST_LANE.length + 1)
}

export function formatItem({ deliveryId, slice, reference }: WebhookItem): string {
  return `${deliveryId}.${slice}.${formatReference(reference)}`
}

/** Reads the result of `formatItem`. */
export function parseDeliveryItem(item: string): WebhookItem {
  const sliceEnd = item.indexOf('.', ID_CHARS + 1)
  const slice = item.slice(ID_CHARS + 1, sliceEnd)
  return { deliveryId: item.slice(0, ID_CHARS), slice, reference: parseReference(item.slice(sliceEnd + 1)) }
}

/** The delivery of a queue's entry, with the name of its item. */
export function itemOf({ fields }: Entry): WebhookItem & { readonly name: string } {
  const name = fields[fields.indexOf(QUEUE_FIELD) + 1] ?? ''
  return { name, ...parseDeliveryItem(name) }
}

export function formatReference(reference: EventReference): string {
  const letter = LETTERS[reference.event]
  if (reference.kind === 'example') return `${EXAMPLE}${letter}.${shortId(reference.madeUpId)}`
  if (reference.kind === 'cap') {
    const { scope, cap, used, occurredAtMs } = reference
    return `${letter}.${scope[0]}.${cap}.${used}.${occurredAtMs}`
  }
  if (reference.kind === 'inbound') return `${letter}.${reference.segment}.${shortId(reference.messageId)}`
  const { segment, messageId, recipient, index } = reference
  return `${letter}.${segment}.${shortId(messageId)}.${recipient}.${index}`
}

/** Reads the result of `formatReference`. */
export function parseReference(text: string): EventReference {
  const [kind = '', first = '', second = '', third = '', fourth = ''] = text.split('.')
  const event = NAMES.get(kind.at(-1) ?? '') as EventName
  if (kind.startsWith(EXAMPLE)) return { kind: 'example', event, madeUpId: idOfShort(first) }
  if (event === 'cap_warning' || event === 'cap_reached') {
    const scope = SCOPES[first as keyof typeof SCOPES]
    return { kind: 'cap', event, scope, cap: Number(second), used: Number(third), occurredAtMs: Number(fourth) }
  }
  if (event === 'inbound') return { kind: 'inbound', event, segment: first, messageId: idOfShort(second) }
  const place = { segment: first, messageId: idOfShort(second), recipient: Number(third), index: Number(fourth) }
  return { kind: 'message', event: event as MessageEventName, ...place }
}
