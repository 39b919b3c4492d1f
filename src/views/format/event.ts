/**
 * event - the body of a webhook in its format: ours, Resend's or Postmark's
 *
 * Spec webhook.format
 */

import type { EventBody, WebhookFormat } from '../../../schemas/webhook.ts'
import { postmarkBody } from './postmark.ts'
import { resendBody } from './resend.ts'
import type { EventSource } from './source.ts'

/** Id of a delivery, and the number of the attempt. */
interface DeliveryNumber {
  readonly id: string
  readonly attempt: number
}

/** Makes the body of a delivery from the event, and from its source unless the format is our own. */
export function formatEvent(
  format: WebhookFormat,
  event: EventBody,
  { id, attempt, source }: DeliveryNumber & { readonly source: EventSource | null },
): object {
  if (format === 'sendwright' || source === null) return { id, attempt, ...event }
  return format === 'resend' ? resendBody(event, source) : postmarkBody(event, source)
}
