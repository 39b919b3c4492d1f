/** event-names - the events that a webhook may hear of, in the catalogue's order */
import type { EventName } from '../../../../../schemas/webhook.ts'

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
