/** event-names - the events that a webhook may get, in the catalogue's order */
import type { EventName, WebhookFormat } from '../../../../../schemas/webhook.ts'

export const EVENT_NAMES: readonly EventName[] = [
  'delivered',
  'bounced',
  'deferred',
  'spam_complaint',
  'unsubscribed',
  'cap_warning',
  'cap_reached',
  'inbound',
]

/** The events that each format has. */
export const FORMAT_EVENTS: Readonly<Record<WebhookFormat, readonly EventName[]>> = {
  sendwright: EVENT_NAMES,
  resend: ['delivered', 'bounced', 'deferred', 'spam_complaint', 'inbound'],
  postmark: ['delivered', 'bounced', 'spam_complaint', 'unsubscribed', 'inbound'],
}
