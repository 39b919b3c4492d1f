/**
 * send - POST /v3/{domain}/messages
 */

import type { Stream } from '../../../schemas/stream.ts'
import type { EdgeRequest } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import { formatMessageId } from '../../mail/compose/compose.ts'
import type { ServerKey } from '../../views/key.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { answerWith, isReply, type OwnApi, type OwnRefusal, refuseFields } from '../common/own-api.ts'
import { pageFrom } from '../common/pages.ts'
import { decodeParam } from '../common/path-address.ts'
import { broadcastField, mapBroadcast } from './broadcast.ts'
import { refuseDomain } from './domain.ts'
import { readForm } from './form.ts'
import { mailgunField, mapForm } from './message.ts'

const STREAM_NAME = 'mailgun'

/** POST /v3/{domain}/messages */
export const mailgunSend: DoorHandler = async (request, own) => {
  // A form of a URL is there at once, and each wait would cost.
  const read = readForm(request)
  const form = read instanceof Promise ? await read : read
  if (form === null) return refuseFields([{ path: '', message: 'Body is not a valid form' }])
  const mapping = mapForm(form.fields, (request.key as ServerKey).mode)
  const mapped = mapping instanceof Promise ? await mapping : mapping
  if ('issues' in mapped) return refuseFields(mapped.issues)
  const { body, variables } = mapped
  // A message from the domain of the path is refused by our own route if the domain may not be used.
  const isOwn = findDomain(body) === decodeParam(request, 'domain').toLowerCase()
  const missing = isOwn && variables === null ? null : await refuseDomain(request, own)
  if (missing !== null) return missing
  if (variables !== null) return sendToMany(request, own, { body, variables })
  // Each repeat has another boundary, so an Idempotency-Key is bound to the fields of the form.
  const { idempotencyKey } = request
  const checked = idempotencyKey === null ? body : structuredClone(body)
  const areStringsChecked = !form.mayHoldNul
  const asked = { body: checked, original: body, idempotencyKey, rename: mailgunField, areStringsChecked }
  const answer = await own.call('sendEmail', request, asked)
  if (isOwn && isReply(answer) && (answer.json as OwnRefusal | undefined)?.error === 'domain_not_verified')
    return refusalReply('not_found', {}, 'Domain not found')
  return answerWith<{ messageId: string }>(answer, ({ messageId }) => {
    return { json: makeSent(messageId, body), messageIds: [messageId] }
  })
}

/** Sends a form with `recipient-variables` as one broadcast, whose id represents all of its messages. */
async function sendToMany(
  request: EdgeRequest,
  own: OwnApi,
  { body, variables }: { readonly body: Readonly<Record<string, unknown>>; readonly variables: string },
): Promise<Answer> {
  const stream = await findBroadcastStream(request, own)
  if ('answer' in stream) return stream.answer
  const mapped = mapBroadcast(body, { variables, streamId: stream.streamId })
  if ('issues' in mapped) return refuseFields(mapped.issues)
  const { idempotencyKey } = request
  const pieces = [Buffer.from(JSON.stringify(mapped.body))]
  const rename = (path: string) => mailgunField(broadcastField(path))
  const answer = await own.call('createBroadcast', request, { pieces, idempotencyKey, rename })
  return answerWith<{ broadcastId: string }>(answer, ({ broadcastId }) => ({ json: makeSent(broadcastId, body) }))
}

/** The broadcast stream that represents a Mailgun domain. */
async function findBroadcastStream(request: EdgeRequest, own: OwnApi): Promise<Stream | { readonly answer: Answer }> {
  const query = { kind: 'broadcast', archived: 'false', limit: '100' }
  const page = pageFrom<Stream>(await own.call('listStreams', request, { query }), 'streams')
  if ('answer' in page) return page
  const { items } = page
  const found = items.length === 1 ? items[0] : items.find(({ name }) => name.toLowerCase() === STREAM_NAME)
  if (found !== undefined) return found
  const message =
    `recipient-variables need a broadcast stream: create one, or name one of several "${STREAM_NAME}" ` +
    '(POST /v1/streams, or the dashboard)'
  return { answer: refuseFields([{ path: '', message }]) }
}

function findDomain({ from }: Readonly<Record<string, unknown>>): string {
  const address = typeof from === 'string' ? from : (from as { readonly email: string } | undefined)?.email
  return (address ?? '').slice((address ?? '').lastIndexOf('@') + 1).toLowerCase()
}

function makeSent(messageId: string, { from }: Readonly<Record<string, unknown>>): object {
  const address = typeof from === 'string' ? from : (from as { readonly email: string }).email
  const id = formatMessageId({ messageId, from: { address: address.toLowerCase(), name: null } })
  return { id, message: 'Queued. Thank you.' }
}
