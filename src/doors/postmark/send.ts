/**
 * send - POST /email and POST /email/batch
 *
 * A batch becomes one partial batch for each 100 messages. Suppression is decided as on our own routes: a message that
 * reaches no recipient is in the log, and the client's answer marks its recipients as inactive.
 */

import { createHash } from 'node:crypto'
import type { EmailAnswer } from '../../../schemas/email.ts'
import { BATCH_MESSAGES_MAX } from '../../../schemas/limits.ts'
import type { Message } from '../../../schemas/message.ts'
import type { EdgeRequest } from '../../http/request.ts'
import { type Answer, type Reply, refusalReply } from '../../http/respond.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { isAccepted, isReply, type OwnApi, type OwnRefusal, refuseFields } from '../common/own-api.ts'
import { CODES, makePostmarkError, type PostmarkError, presentPostmark, refuseAs } from './errors.ts'
import { type MappedEmail, mapEmail, postmarkField } from './message.ts'
import { findIn, listAll } from './streams.ts'

/** Messages of one batch. */
const BATCH_MAX = 500
const DEFAULT_STREAM = 'outbound'

/** The answer to one message. */
interface Sent extends PostmarkError {
  readonly To?: string
  readonly Cc?: string
  readonly Bcc?: string
  readonly SubmittedAt?: string
  readonly MessageID?: string
}

type Item = Record<string, unknown>

/** POST /email */
export const postmarkSend: DoorHandler = async (request, own) => {
  const [mapped] = await mapAll(request, own, [request.body])
  if (mapped === undefined || 'answer' in mapped) return mapped?.answer ?? refusalReply('internal_error')
  if ('issues' in mapped) return refuseFields(mapped.issues)
  const { idempotencyKey } = request
  const asked = { body: mapped.body, idempotencyKey, rename: postmarkField, areStringsChecked: true }
  const answer = await own.call('sendEmail', request, asked)
  if (!isAccepted(answer)) return answer
  const accepted = answer.json as EmailAnswer
  const inactive = await readInactive(request, own, answer, accepted.messageId)
  const json = makeSent(request.body as Item, accepted, inactive)
  const { headers } = answer
  return {
    status: json.ErrorCode === 0 ? 200 : 422,
    json,
    ...(headers && { headers }),
    messageIds: [accepted.messageId],
  }
}

/** POST /email/batch, in which each message has its own answer, in the order of the request. */
export const postmarkSendBatch: DoorHandler = async (request, own) => {
  const { body } = request
  if (!Array.isArray(body) || body.length === 0)
    return refuseFields([{ path: '', message: 'Must be a list of emails' }])
  if (body.length > BATCH_MAX)
    return refuseAs(422, CODES.tooManyMessages, `A batch has at most ${BATCH_MAX} messages. Send several batches.`)
  const sent: Sent[] = []
  const messageIds: string[] = []
  for (let start = 0; start < body.length; start += BATCH_MESSAGES_MAX) {
    const chunk = body.slice(start, start + BATCH_MESSAGES_MAX)
    const answer = await sendChunk(request, own, { chunk, start, total: body.length })
    if (isAccepted(answer)) {
      sent.push(...(answer.json as Sent[]))
      messageIds.push(...(answer.messageIds ?? []))
    } else if (start === 0) return answer
    else sent.push(...chunk.map(() => convertFailure(answer)))
  }
  return { status: 200, json: sent, messageIds }
}

interface Chunk {
  readonly chunk: readonly unknown[]
  readonly start: number
  readonly total: number
}

async function sendChunk(request: EdgeRequest, own: OwnApi, { chunk, start, total }: Chunk): Promise<Answer> {
  const mapped = await mapAll(request, own, chunk)
  const failed = mapped.find((one) => 'answer' in one)
  if (failed !== undefined && 'answer' in failed) return failed.answer
  // A message that could not be mapped is passed on as null and is refused in its place.
  const messages = mapped.map((one) => ('body' in one ? one.body : null))
  const original = { total, start, messages: chunk }
  const asked = { body: { messages, partial: true }, original, idempotencyKey: makeKey(request, start) }
  const answer = await own.call('sendBatch', request, asked)
  if (!isAccepted(answer)) return answer
  type Outcome = Partial<EmailAnswer> & OwnRefusal
  const { messages: outcomes } = answer.json as { readonly messages: readonly Outcome[] }
  const sent: Sent[] = []
  const messageIds: string[] = []
  for (const [place, outcome] of outcomes.entries()) {
    const one = mapped[place] as MappedEmail
    if (outcome.messageId === undefined)
      sent.push(makePostmarkError('issues' in one ? { ...outcome, ...one } : renamed(outcome)))
    else {
      messageIds.push(outcome.messageId)
      const inactive = await readInactive(request, own, answer, outcome.messageId)
      sent.push(makeSent(chunk[place] as Item, outcome as EmailAnswer, inactive))
    }
  }
  return { status: 200, json: sent, messageIds }
}

type Mapped = MappedEmail | { readonly answer: Answer }

/** Maps messages. The streams of the server are read once, if a message names one. */
async function mapAll(request: EdgeRequest, own: OwnApi, values: readonly unknown[]): Promise<readonly Mapped[]> {
  const mapped = values.map((value) => mapEmail(value))
  if (!mapped.some((one) => 'stream' in one && isOther(one.stream))) return mapped
  const streams = await listAll(request, own)
  if ('answer' in streams) return mapped.map(() => streams)
  return mapped.map((one) => {
    if ('issues' in one || !isOther(one.stream)) return one
    const found = typeof one.stream === 'string' ? findIn(streams, one.stream) : undefined
    return found === undefined
      ? { issues: [MISSING_STREAM] }
      : { ...one, body: { ...one.body, streamId: found.streamId } }
  })
}

/** Whether a message names a stream that is not the default one. */
function isOther(stream: unknown): boolean {
  return stream !== null && !(typeof stream === 'string' && stream.toLowerCase() === DEFAULT_STREAM)
}

const MISSING_STREAM = { path: 'MessageStream', message: 'This server has no stream with that name' }

/** Suppressed addresses of a message, from the decision or, for a replay, from the log. */
async function readInactive(request: EdgeRequest, own: OwnApi, answer: Reply, id: string): Promise<Inactive> {
  if (answer.headers?.['Idempotent-Replayed'] === undefined)
    return answer.suppressed?.get(id) ?? { addresses: [], isAll: false }
  const read = await own.call('readMessage', request, { params: { id } })
  if (!isAccepted(read)) return { addresses: [], isAll: false }
  const { recipients } = read.json as Message
  const addresses = recipients.filter(({ status }) => status === 'suppressed').map(({ recipient }) => recipient)
  return { addresses, isAll: addresses.length === recipients.length }
}

type Inactive = NonNullable<ReturnType<NonNullable<Reply['suppressed']>['get']>>

function makeSent(item: Item, { messageId, submittedAt, test }: EmailAnswer, { addresses, isAll }: Inactive): Sent {
  const list = addresses.join(', ')
  const sent: Record<string, unknown> = {}
  for (const name of ['To', 'Cc', 'Bcc']) if (item[name]) sent[name] = item[name]
  sent.SubmittedAt = submittedAt
  sent.MessageID = messageId
  sent.ErrorCode = isAll ? CODES.inactiveRecipient : 0
  if (isAll)
    sent.Message =
      'You tried to send to recipient(s) that have been marked as inactive. ' +
      `Found inactive addresses: ${list}. Inactive recipients are ones on the suppression list of the stream.`
  else if (list !== '') sent.Message = `Message OK, but will not deliver to these inactive addresses: ${list}`
  else sent.Message = test ? 'Test job accepted' : 'OK'
  return sent as unknown as Sent
}

function renamed(refusal: OwnRefusal): OwnRefusal {
  const { issues } = refusal
  return issues === undefined
    ? refusal
    : { ...refusal, issues: issues.map(({ path, message }) => ({ path: postmarkField(path), message })) }
}

/** The answer to each message of a chunk that was refused as a whole, or whose outcome is unknown. */
function convertFailure(answer: Answer): PostmarkError {
  if (isReply(answer) && answer.status !== 503) return presentPostmark(answer).json as PostmarkError
  return { ErrorCode: 500, Message: 'The service failed after a part of the batch. Send this message again.' }
}

/** Each chunk of a batch has its own key. */
function makeKey({ idempotencyKey }: EdgeRequest, start: number): string | null {
  if (idempotencyKey === null) return null
  return `postmark-${start}-${createHash('sha256').update(idempotencyKey).digest('hex')}`
}
