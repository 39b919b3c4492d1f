/**
 * recipient - one recipient of a message and its events, as the API shows them
 *
 * A reply that quoted the address was stored without it; the present address, or its pseudonym, is inserted here.
 *
 * Spec message.recipient, event.catalogue
 */

import type { MessageEvent, RecipientEntry } from '../../../schemas/message.ts'
import { unpackRoute } from '../../mail/attempt-route.ts'
import { unmaskAddress } from '../../mail/reply.ts'
import type { RecipientState, StatusEvent } from '../../state/message/status.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'

/** A recipient with its stored state. */
export interface Person {
  readonly address: string
  readonly name: string | null
  readonly kind: 'to' | 'cc' | 'bcc'
  readonly state: RecipientState
}

/** The entry of a recipient. */
export function formatRecipient({ address, name, kind, state }: Person): RecipientEntry {
  const { events } = state
  const answered = events.findLast((event) => 'response' in event)
  const at = (name: StatusEvent['event']) => events.findLast(({ event }) => event === name)?.occurredAtMs ?? null
  return {
    recipient: address,
    name,
    kind,
    status: state.status,
    statusAt: formatInstant(state.statusAtMs),
    attempts: state.attempts,
    nextAttemptAt: formatInstantOrNull(state.nextAttemptAtMs),
    code: answered?.code ?? null,
    response: showResponse(answered?.response ?? null, address),
    complainedAt: formatInstantOrNull(at('spam_complaint')),
    unsubscribedAt: formatInstantOrNull(at('unsubscribed')),
  }
}

/** The events of all recipients that the catalogue knows, oldest first. */
export function formatEvents(people: readonly Person[]): MessageEvent[] {
  return people
    .flatMap(({ address, state }) => state.events.map((event) => ({ address, event })))
    .sort((one, other) => one.event.occurredAtMs - other.event.occurredAtMs)
    .flatMap(({ address, event }) => {
      if (event.event === 'cancelled') return []
      const at = { event: event.event, recipient: address, occurredAt: formatInstant(event.occurredAtMs) }
      return [{ ...at, route: formatRoute(event), details: formatDetails(event, address) }]
    })
}

/** The route of the attempt that brought an event. */
export function formatRoute(event: StatusEvent): MessageEvent['route'] {
  if (!('route' in event) || event.route === undefined) return null
  const { isVerified, isReused, ...route } = unpackRoute(event.route)
  return { ...route, certificateVerified: isVerified, connectionReused: isReused }
}

/** An event of the catalogue. */
export type Told = Exclude<StatusEvent, { event: 'cancelled' }>

/** The details of an event other than its kind. In: the recipient's address, which is inserted into a reply. */
export function formatDetails(event: Told, address: string): MessageEvent['details'] {
  switch (event.event) {
    case 'delivered':
    case 'deferred':
      return { code: event.code, response: showResponse(event.response, address) }
    case 'bounced': {
      const { code, classification, hard, expired } = event
      return { code, response: showResponse(event.response, address), classification, hard, expired }
    }
    case 'spam_complaint':
      return { feedbackType: event.feedbackType }
    case 'unsubscribed':
      return { source: event.source }
  }
}

function showResponse(response: string | null, address: string): string | null {
  return response === null ? null : unmaskAddress(response, address)
}
