/**
 * email - POST /v1/email and POST /v1/email/batch
 *
 * A batch is one request, one decision and one commit: its messages are accepted together or not at all.
 *
 * Spec send.normal, batch.all, batch.answer, limit.headers, request.idempotency
 */

import type { EmailAnswer } from '../../schemas/email.ts'
import type { Accepted, SendReply } from '../actors/message/send.ts'
import type { HandlerOf, RequestOf } from '../http/request.ts'
import { type Answer, refuse } from '../http/respond.ts'
import { fingerprintOf, normaliseEmail, type SendMessage } from '../sending/email-form.ts'
import { type SendDeps, type SendResult, sendAll } from '../sending/send.ts'
import type { SendOrder } from '../sending/send-command.ts'
import { formatInstant } from '../views/instant.ts'
import { answerOf, answerRefused } from './answer.ts'

/** What the routes of sends need. */
export interface EmailDeps extends SendDeps {
  readonly newCmdId: () => string
  readonly nowMs: () => number
}

/** The answer's body of what was accepted, in the order of the messages. */
type AnswerBody = (accepted: readonly EmailAnswer[]) => object | undefined

/** POST /v1/email */
export function makeSendEmail(deps: EmailDeps): HandlerOf<'sendEmail'> {
  return function sendEmail(request) {
    const order = orderOf(deps, request, false, () => [normaliseEmail(request.body)])
    return answerSend(deps, sendAll(deps, order), ([only]) => only)
  }
}

/** POST /v1/email/batch. Spec batch.all, batch.answer */
export function makeSendBatch(deps: EmailDeps): HandlerOf<'sendBatch'> {
  return function sendBatch(request) {
    const order = orderOf(deps, request, true, () => request.body.messages.map(normaliseEmail))
    return answerSend(deps, sendAll(deps, order), (accepted) => ({ messages: accepted }))
  }
}

function orderOf(
  { newCmdId }: EmailDeps,
  { key, body, route, idempotencyKey }: RequestOf<'sendEmail' | 'sendBatch'>,
  batch: boolean,
  messages: () => readonly SendMessage[],
): SendOrder {
  const startedAtMs = performance.now()
  return {
    startedAtMs,
    key,
    source: 'a',
    cmdId: newCmdId(),
    messages: messages(),
    batch,
    idempotency: idempotencyKey === null ? null : { key: idempotencyKey, fingerprint: fingerprintOf(route.path, body) },
  }
}

function answerSend(
  { nowMs }: EmailDeps,
  sent: SendResult | Promise<SendResult>,
  make: AnswerBody,
): Answer | Promise<Answer> {
  const conclude = (result: SendResult) =>
    answerOf<SendReply>(result, (reply) =>
      reply.kind === 'refused' ? answerRefused(reply, nowMs()) : answerAccepted(reply, nowMs(), make),
    )
  return sent instanceof Promise ? sent.then(conclude) : conclude(sent)
}

function answerAccepted(reply: Accepted, nowMs: number, make: AnswerBody): Answer {
  const json = make(answersOf(reply))
  if (json === undefined) return refuse('internal_error')
  const headers = limitHeaders(reply, nowMs)
  if (reply.replayed) headers['Idempotent-Replayed'] = 'true'
  return { status: 200, json, headers }
}

function answersOf({ messages, test }: Accepted): EmailAnswer[] {
  const answers: EmailAnswer[] = []
  for (const { messageId, submittedAtMs } of messages)
    answers.push({ messageId, status: 'accepted', submittedAt: formatInstant(submittedAtMs), test })
  return answers
}

/** Spec limit.headers */
function limitHeaders({ rate }: Accepted, nowMs: number): Record<string, string> {
  let policies = ''
  let states = ''
  for (const { scope, limit, left, resetsAtMs } of rate) {
    const comma = policies === '' ? '' : ', '
    policies += `${comma}"${scope}";q=${limit};w=60`
    states += `${comma}"${scope}";r=${left};t=${Math.max(0, Math.ceil((resetsAtMs - nowMs) / 1000))}`
  }
  return { 'RateLimit-Policy': policies, RateLimit: states }
}
