/**
 * answer - turns results of the cluster into answers
 *
 * Guarantees: 503 only if nothing was and nothing will be accepted; if the outcome is unknown, the connection is
 * closed.
 */

import type { Ask, AskResult } from '../../cluster/work.ts'
import type { Issue } from '../../schemas/error.ts'
import { PAGE_DEFAULT, SEND_AT_DAYS_MAX, TEST_SEND_AT_DAYS_MAX } from '../../schemas/limits.ts'
import { isRefused, type Refused } from '../actors/authorization/refusal.ts'
import { type Answer, type Reply, refusalReply } from '../http/respond.ts'
import { sentenceOfRefusal } from '../sending/refusal-sentence.ts'
import { formatInstant } from '../views/instant.ts'
import type { Page } from '../views/newest.ts'

/** The answer for a result; `make` converts an actor's reply. */
export function makeAnswer<ActorReply>(result: AskResult, make: (reply: ActorReply) => Answer): Answer {
  return result.kind === 'answer' ? make(result.reply as ActorReply) : answerUnsaid(result)
}

/** The answer if no actor replied. */
function answerUnsaid(result: Exclude<AskResult, { readonly kind: 'answer' }>): Answer {
  if (result.kind === 'unavailable') return refusalReply('unavailable')
  if (result.kind === 'silent') return { close: true }
  return refusalReply(result.isDamaged === true ? 'data_damaged' : 'internal_error')
}

/** An actor's reply, or the answer in its place: a refusal, or an unknown outcome. */
export type Replied<ActorReply> =
  | { readonly reply: ActorReply; readonly answer?: never; readonly refused?: never }
  | { readonly answer: Answer; readonly reply?: never; readonly refused: Refused | null }

/** Dependencies for giving an order. */
export interface OrderDeps {
  readonly ask: Ask
  readonly newCmdId: () => string
  readonly nowMs: () => number
}

/** A command by its name, and its body. */
export interface Order {
  readonly name: string
  readonly body: object
}

/** Sends a command to a shard. Returns its actor's reply, or the answer in its place. */
export async function giveOrder<ActorReply extends { readonly kind: string }>(
  { ask, newCmdId, nowMs }: OrderDeps,
  shard: number,
  order: Order,
): Promise<Replied<ActorReply>> {
  return makeReply(await ask(shard, { ...order, cmdId: newCmdId() }), nowMs())
}

/** The reply to an order, or the answer of a refusal or of a missing reply. `nowMs` is the store's time. */
function makeReply<ActorReply extends { readonly kind: string }>(
  result: AskResult,
  nowMs: number,
): Replied<ActorReply> {
  if (result.kind !== 'answer') return { answer: answerUnsaid(result), refused: null }
  const reply = result.reply as ActorReply | Refused
  return isRefused(reply) ? { answer: answerRefused(reply, nowMs), refused: reply } : { reply }
}

/** The answer of a refusal by an actor. `nowMs` is the store's time, from which `Retry-After` counts. */
export function answerRefused({ code, extra }: Refused, nowMs: number): Reply {
  const fields = fieldsOf(extra)
  return refusalReply(code, fields, sentenceOfRefusal(code, extra), nowMs)
}

const SEND_TIME_MESSAGES = {
  past: 'Must not be more than 60 seconds in the past',
  late: `Must be at most ${SEND_AT_DAYS_MAX} days after acceptance, ${TEST_SEND_AT_DAYS_MAX} on a test server`,
} as const

/** The issue of a time that a turn refuses, because only the store's clock decides it. Spec send.at */
function sendTimeFields({ sendAt, index }: Refused['extra']): Record<string, unknown> {
  const message = SEND_TIME_MESSAGES[sendAt as keyof typeof SEND_TIME_MESSAGES]
  return { issues: [{ path: index === undefined ? 'sendAt' : `messages.${index}.sendAt`, message }] }
}

/** The body of a refusal inside an answer. Takes the actor's refusal, or the issues of a malformed message. */
export function refusalBody({ code, extra }: Pick<Refused, 'code' | 'extra'>, issues?: readonly Issue[]): object {
  const fields = { ...fieldsOf(extra), ...(issues && { issues }) }
  return refusalReply(code, fields, sentenceOfRefusal(code, extra)).json as object
}

/** Fields of the body; an extra that only changes the sentence adds none. */
function fieldsOf(extra: Refused['extra']): Record<string, unknown> {
  if ('sendAt' in extra) return sendTimeFields(extra)
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(extra)) {
    if (name === 'mode') continue
    if (name.endsWith('AtMs')) fields[name.slice(0, -2)] = formatInstant(value as number)
    else fields[name] = value
  }
  return fields
}

/** In: `limit` and `after`, checked. */
export function parsePage({ limit, after }: Readonly<Record<string, string>>): Page {
  return { limit: limit === undefined ? PAGE_DEFAULT : Number(limit), after: after?.toLowerCase() ?? null }
}
