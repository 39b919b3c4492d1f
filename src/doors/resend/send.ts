/**
 * send - POST /emails, POST /emails/batch, PATCH /emails/{id} and POST /emails/{id}/cancel
 */

import { createHash } from 'node:crypto'
import type { Issue } from '../../../schemas/error.ts'
import { BATCH_MESSAGES_MAX, IDEMPOTENCY_KEY_CHARS_MAX } from '../../../schemas/limits.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { readFields } from '../common/fields.ts'
import { answerWith, type OwnApi, type OwnRefusal, refuseFields } from '../common/own-api.ts'
import { formatRefusal } from './errors.ts'
import { convertInstant, type MappedMessage, mapMessage, resendField } from './message.ts'

/** Resend allows one character more than our own routes: such a key goes by its hash. */
export const RESEND_KEY_CHARS_MAX = 256

interface Sent {
  readonly messageId: string
}

/** POST /emails */
export const sendOne: DoorHandler = async (request, own) => {
  const mapped = mapMessage(request.body, own.nowMs())
  if ('issues' in mapped) return refuseFields(mapped.issues)
  const asked = {
    body: mapped.body,
    idempotencyKey: makeKey(request),
    rename: resendField,
    areStringsChecked: true,
  }
  return answerWith<Sent>(await own.call('sendEmail', request, asked), ({ messageId }) => {
    return { json: { id: messageId }, messageIds: [messageId] }
  })
}

/** POST /emails/batch, either as a whole or each message on its own. */
export const sendMany: DoorHandler = async (request, own) => {
  const { body, named } = request
  const mode = named['x-batch-validation'] ?? 'strict'
  if (mode !== 'strict' && mode !== 'permissive')
    return refuseFields([{ path: 'x-batch-validation', message: 'Must be strict or permissive' }])
  if (!Array.isArray(body) || body.length === 0 || body.length > BATCH_MESSAGES_MAX)
    return refuseFields([{ path: '', message: `Must be a list of 1 to ${BATCH_MESSAGES_MAX} emails` }])
  const nowMs = own.nowMs()
  const mapped = body.map((message) => mapMessage(message, nowMs))
  // An Idempotency-Key is bound to the mode as well, so that the answer of a partial batch is not replayed for a
  // strict one.
  const original = { mode, messages: body }
  return mode === 'strict'
    ? sendStrict(request, own, { mapped, original })
    : sendPermissive(request, own, { mapped, original })
}

interface Batch {
  readonly mapped: readonly MappedMessage[]
  readonly original: object
}

async function sendStrict(request: EdgeRequest, own: OwnApi, { mapped, original }: Batch): Promise<Answer> {
  const issues = mapped.flatMap((one, place) => ('issues' in one ? one.issues.map((issue) => at(place, issue)) : []))
  if (issues.length > 0) return refuseFields(issues)
  const messages = mapped.map((one) => ('body' in one ? one.body : null))
  const asked = { body: { messages }, original, idempotencyKey: makeKey(request), rename: resendField }
  return answerWith<{ messages: readonly Sent[] }>(await own.call('sendBatch', request, asked), (answer) => {
    const messageIds = answer.messages.map(({ messageId }) => messageId)
    return { json: { data: messageIds.map((id) => ({ id })) }, messageIds }
  })
}

async function sendPermissive(request: EdgeRequest, own: OwnApi, { mapped, original }: Batch): Promise<Answer> {
  // A message that could not be mapped is passed on as null and is refused in its place.
  const messages = mapped.map((one) => ('body' in one ? one.body : null))
  const asked = { body: { messages, partial: true }, original, idempotencyKey: makeKey(request) }
  type Outcome = Partial<Sent> & OwnRefusal
  return answerWith<{ messages: readonly Outcome[] }>(await own.call('sendBatch', request, asked), (answer) => {
    const messageIds: string[] = []
    const errors: { index: number; message: string }[] = []
    for (const [index, outcome] of answer.messages.entries()) {
      const one = mapped[index] as MappedMessage
      if (outcome.messageId !== undefined) messageIds.push(outcome.messageId)
      else errors.push({ index, message: formatRefusal('issues' in one ? { issues: one.issues } : renamed(outcome)) })
    }
    return { json: { data: messageIds.map((id) => ({ id })), errors }, messageIds }
  })
}

function renamed(refusal: OwnRefusal): OwnRefusal {
  const { issues } = refusal
  return issues === undefined
    ? refusal
    : { ...refusal, issues: issues.map((issue) => ({ ...issue, path: resendField(issue.path) })) }
}

function at(place: number, { path, message }: Issue): Issue {
  return { path: path === '' ? String(place) : `${place}.${path}`, message }
}

/** PATCH /emails/{id} */
export const reschedule: DoorHandler = async (request, own) => {
  const { fields, issues } = readFields(request.body, new Set(['scheduled_at']))
  if (issues.length > 0) return refuseFields(issues)
  const { scheduled_at: time } = fields
  const body = time === undefined ? {} : { sendAt: convertInstant(time, own.nowMs()) }
  return answerObject(await own.call('patchMessage', request, { params: request.params, body, rename: resendField }))
}

/** POST /emails/{id}/cancel */
export const cancel: DoorHandler = async (request, own) => {
  return answerObject(await own.call('cancelMessage', request, { params: request.params }))
}

function answerObject(answer: Answer): Answer {
  return answerWith<Sent>(answer, ({ messageId }) => ({ json: { object: 'email', id: messageId } }))
}

function makeKey({ idempotencyKey }: EdgeRequest): string | null {
  if (idempotencyKey === null || idempotencyKey.length <= IDEMPOTENCY_KEY_CHARS_MAX) return idempotencyKey
  return `resend-${createHash('sha256').update(idempotencyKey).digest('hex')}`
}
