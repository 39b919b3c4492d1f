/**
 * send - POST /v3/{domain}/messages
 */

import type { EdgeRequest } from '../../http/request.ts'
import { type Answer, refuse } from '../../http/respond.ts'
import { formatMessageId } from '../../mail/compose/compose.ts'
import type { ServerKey } from '../../views/key.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { answerWith, isAccepted, type OwnApi, refuseFields } from '../common/own-api.ts'
import { decodeParam } from '../common/path-address.ts'
import { mailgunField, mapForm } from './message.ts'

/** Names the headers that a form is read by. */
export const FORM_HEADER = 'content-type'

/** POST /v3/{domain}/messages */
export const mailgunSend: DoorHandler = async (request, own) => {
  const form = await readForm(request)
  if (form === null) return refuseFields([{ path: '', message: 'Body is not a valid form' }])
  const mapped = await mapForm(form, (request.key as ServerKey).mode)
  if ('issues' in mapped) return refuseFields(mapped.issues)
  const missing = await refuseDomain(request, own)
  if (missing !== null) return missing
  const { body } = mapped
  // Each repeat has another boundary, so an Idempotency-Key is bound to the fields of the form.
  const asked = { body: structuredClone(body), idempotencyKey: request.idempotencyKey, rename: mailgunField }
  const answer = await own.call('sendEmail', { ...request, body }, asked)
  return answerWith<{ messageId: string }>(answer, ({ messageId }) => {
    const { from } = body as { from: string | { email: string } }
    const address = typeof from === 'string' ? from : from.email
    const id = formatMessageId({ messageId, from: { address: address.toLowerCase(), name: null } })
    return { json: { id, message: 'Queued. Thank you.' }, messageIds: [messageId] }
  })
}

/** The refusal of a domain that the key's server may not use; null if it may. */
export async function refuseDomain(request: EdgeRequest, own: OwnApi): Promise<Answer | null> {
  const domain = decodeParam(request, 'domain').toLowerCase()
  const answer = await own.call('readServer', request)
  if (!isAccepted(answer)) return answer
  const { sendingDomains } = answer.json as { sendingDomains: readonly { domain: string }[] }
  return sendingDomains.some((one) => one.domain === domain) ? null : refuse('not_found', {}, 'Domain not found')
}

/** Fields of a form, and occurrences of the text that divides parts: text files may have it too. */
const FIELDS_MAX = 1_000
const PART_ENDS_MAX = 10_000

/** RFC 7578, or the form of a URL. The body is at most 10 MiB; null for one with too many fields as well. */
async function readForm({ body, named }: EdgeRequest): Promise<FormData | null> {
  const headers = { [FORM_HEADER]: named[FORM_HEADER] ?? '' }
  const isMultipart = /^\s*multipart\//i.test(headers[FORM_HEADER])
  const [end, endsMax] = isMultipart ? ['\r\n--', PART_ENDS_MAX] : ['&', FIELDS_MAX]
  if (hasMore(body as Buffer, end, endsMax)) return null
  try {
    return await new Response(new Uint8Array(body as Buffer), { headers }).formData()
  } catch {
    return null
  }
}

function hasMore(bytes: Buffer, text: string, max: number): boolean {
  let count = 0
  for (let at = bytes.indexOf(text); at >= 0 && count <= max; at = bytes.indexOf(text, at + text.length)) count += 1
  return count > max
}
