/**
 * email - POST /v1/email and POST /v1/email/batch
 *
 * A batch is one request, one decision and one commit. Either all of its messages are accepted or none is; in a
 * partial batch each is decided on its own.
 *
 * Spec send.normal, batch.all, batch.answer, batch.partial, limit.headers, request.idempotency
 */

import { EMAIL_BODY, type EmailAnswer, type EmailBody } from '../../schemas/email.ts'
import type { Accepted, AcceptedMessage, SendReply } from '../actors/message/send.ts'
import type { HandlerOf, RequestOf } from '../http/request.ts'
import { type Answer, refusalReply, type SuppressedRecipients } from '../http/respond.ts'
import { compileBody } from '../http/shape/validate.ts'
import { computeFingerprint, normaliseEmail, type SendMessage } from '../sending/email-form.ts'
import { type SendDeps, type SendResult, sendAll } from '../sending/send.ts'
import type { SendOrder } from '../sending/send-command.ts'
import { sendEach } from '../sending/send-each.ts'
import { formatInstant } from '../views/instant.ts'
import { answerRefused, makeAnswer, refusalBody } from './answer.ts'

/** Checks one message of a partial batch as POST /v1/email checks its body. */
const checkEmail = compileBody<EmailBody>(EMAIL_BODY)

/** Dependencies of the routes of sends. */
export interface EmailDeps extends SendDeps {
  readonly newCmdId: () => string
  readonly nowMs: () => number
}

/** The body of the answer for accepted messages, in their order. */
type AnswerBody = (accepted: readonly EmailAnswer[]) => object | undefined

/** POST /v1/email */
export function makeSendEmail(deps: EmailDeps): HandlerOf<'sendEmail'> {
  return function sendEmail(request) {
    const order = makeOrder(deps, request, false, () => [normaliseEmail(request.body)])
    return answerSend(deps, order, ([only]) => only)
  }
}

/** POST /v1/email/batch. Spec batch.all, batch.answer */
export function makeSendBatch(deps: EmailDeps): HandlerOf<'sendBatch'> {
  return function sendBatch(request) {
    const { body } = request
    if (body.partial) return sendPartial(deps, request, body.messages)
    const order = makeOrder(deps, request, true, () => body.messages.map(normaliseEmail))
    return answerSend(deps, order, (accepted) => ({ messages: accepted }))
  }
}

// Spec batch.partial
async function sendPartial(
  deps: EmailDeps,
  request: RequestOf<'sendBatch'>,
  messages: readonly unknown[],
): Promise<Answer> {
  const checked = messages.map((message) => checkEmail(message))
  const order = makeOrder(deps, request, true, () => checked.map((one) => (one.ok ? normaliseEmail(one.value) : null)))
  const result = await sendEach(deps, order)
  if (result.kind === 'refused') return answerRefused(result, deps.nowMs())
  if (result.kind !== 'each') return makeAnswer(result, () => refusalReply('internal_error'))
  const { test } = result
  const answers = result.outcomes.map((outcome, place) => {
    const shape = checked[place]
    if (shape?.ok === false) return refusalBody({ code: 'invalid_request', extra: {} }, shape.issues)
    if (outcome === null) return refusalBody({ code: 'internal_error', extra: {} })
    return 'code' in outcome ? refusalBody(outcome) : answerOfMessage(outcome, test)
  })
  const headers = sendHeaders(result, deps.nowMs())
  const suppressed = suppressedIn(order.messages, result.outcomes)
  return { status: 200, json: { messages: answers }, headers, ...(suppressed && { suppressed }) }
}

function makeOrder<Message extends SendMessage | null>(
  { newCmdId }: EmailDeps,
  { key, body, original = body, route, idempotencyKey }: RequestOf<'sendEmail' | 'sendBatch'>,
  batch: boolean,
  messages: () => readonly Message[],
): Omit<SendOrder, 'messages'> & { readonly messages: readonly Message[] } {
  const startedAtMs = performance.now()
  return {
    startedAtMs,
    key,
    source: 'a',
    cmdId: newCmdId(),
    messages: messages(),
    batch,
    idempotency:
      idempotencyKey === null ? null : { key: idempotencyKey, fingerprint: computeFingerprint(route.path, original) },
  }
}

function answerSend(
  deps: EmailDeps,
  order: Omit<SendOrder, 'messages'> & { readonly messages: readonly SendMessage[] },
  make: AnswerBody,
): Answer | Promise<Answer> {
  const { nowMs } = deps
  const conclude = (result: SendResult) =>
    makeAnswer<SendReply>(result, (reply) => {
      if (reply.kind === 'refused') return answerRefused(reply, nowMs())
      const json = make(makeAnswers(reply))
      if (json === undefined) return refusalReply('internal_error')
      const headers = sendHeaders(reply, nowMs())
      const suppressed = suppressedIn(order.messages, reply.messages)
      return suppressed === null ? { status: 200, json, headers } : { status: 200, json, headers, suppressed }
    })
  const sent = sendAll(deps, order)
  return sent instanceof Promise ? sent.then(conclude) : conclude(sent)
}

/** Suppressed recipients that a door names: the decision has their places, the request their addresses. */
function suppressedIn(
  messages: readonly (SendMessage | null)[],
  outcomes: readonly (AcceptedMessage | { readonly code: string } | null)[],
): Map<string, SuppressedRecipients> | null {
  let suppressed: Map<string, SuppressedRecipients> | null = null
  for (const [place, outcome] of outcomes.entries()) {
    if (outcome === null || 'code' in outcome || outcome.suppressed === undefined) continue
    const { recipients = [] } = messages[place] ?? {}
    const addresses = outcome.suppressed.map((at) => recipients[at]?.address ?? '')
    suppressed ??= new Map()
    suppressed.set(outcome.messageId, { addresses, isAll: addresses.length === recipients.length })
  }
  return suppressed
}

function makeAnswers({ messages, test }: Accepted): EmailAnswer[] {
  const answers: EmailAnswer[] = []
  for (const message of messages) answers.push(answerOfMessage(message, test))
  return answers
}

function answerOfMessage({ messageId, submittedAtMs }: AcceptedMessage, test: boolean): EmailAnswer {
  return { messageId, status: 'accepted', submittedAt: formatInstant(submittedAtMs), test }
}

function sendHeaders(reply: Pick<Accepted, 'rate' | 'replayed'>, nowMs: number): Record<string, string> {
  const headers = limitHeaders(reply, nowMs)
  if (reply.replayed) headers['Idempotent-Replayed'] = 'true'
  return headers
}

/** Spec limit.headers */
function limitHeaders({ rate }: Pick<Accepted, 'rate'>, nowMs: number): Record<string, string> {
  if (rate.length === 0) return {}
  let policies = ''
  let states = ''
  for (const { scope, limit, left, resetsAtMs } of rate) {
    const comma = policies === '' ? '' : ', '
    policies += `${comma}"${scope}";q=${limit};w=60`
    states += `${comma}"${scope}";r=${left};t=${Math.max(0, Math.ceil((resetsAtMs - nowMs) / 1000))}`
  }
  return { 'RateLimit-Policy': policies, RateLimit: states }
}
