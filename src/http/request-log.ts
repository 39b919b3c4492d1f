/**
 * request-log - the log entry of an answered request, without body and address
 *
 * Spec request.log
 */

import { BATCH_MESSAGES_MAX } from '../../schemas/limits.ts'
import { capText, maskAddress } from '../mail/reply.ts'
import type { RequestRow } from '../state/request-row.ts'
import type { KeyOwner } from '../views/key.ts'
import type { ClientAddress } from './client-address.ts'
import type { ListenerContext, RequestHead, Target } from './request.ts'

/** Characters of a user agent, and of the path of an issue, that are kept. */
const TEXT_CHARS_MAX = 100
/** Maximum number of cached user agents in their shown form, because a client has one for all its requests. */
const AGENTS_MAX = 1_000
/** A longer one is not cached. */
const AGENT_CHARS_MAX = 512

const agents = new Map<string, string>()

/** A request and its answer. */
export interface AnsweredRequest {
  readonly requestId: string
  /** Null if the key is unknown. */
  readonly owner: KeyOwner | null
  readonly head: RequestHead
  readonly target: Target
  readonly status: number
  readonly json: unknown
  /** Undefined: they are in the body. */
  readonly messageIds: readonly string[] | undefined
  readonly ms: number
}

interface AnswerBody {
  readonly error?: unknown
  readonly issues?: readonly { readonly path: string }[]
  readonly messageId?: unknown
  readonly messages?: readonly { readonly messageId?: unknown }[]
}

/** Records an answer in the log of its account, and logs refusals and failures for the operator. */
export function logAnswer(desk: ListenerContext, answered: AnsweredRequest): void {
  noteRequest(desk, answered)
  const { requestId, status, ms, json, target } = answered
  if (status < 400) return
  const code = (json as { readonly error?: string } | undefined)?.error ?? null
  const { method, route } = target.tally
  desk.refused({ requestId, method, route, status, code, ms: Math.round(ms) })
}

/** Records a request in the log of its account. Requests with an unknown key, or with a session, are not recorded. */
function noteRequest({ requests, clientAddress }: ListenerContext, answered: AnsweredRequest): void {
  const { owner } = answered
  if (requests === null || owner === null) return
  if (owner.kind === 'server') requests.note(owner.accountId, makeRow(answered, owner.serverId, clientAddress))
  else if (owner.kind === 'account') requests.note(owner.accountId, makeRow(answered, null, clientAddress))
}

function makeRow(answered: AnsweredRequest, serverId: string | null, clientAddress: ClientAddress): RequestRow {
  const { requestId, head, target, status, ms } = answered
  const { route, tally } = target
  const { authorization, forwardedFor, userAgent } = head.headers
  const json = (answered.json ?? {}) as AnswerBody
  const issue = json.issues?.[0]?.path
  return {
    requestId,
    serverId,
    method: route?.method ?? tally.method,
    path: route?.path ?? null,
    status,
    error: typeof json.error === 'string' ? json.error : null,
    issue: issue === undefined ? null : shown(issue),
    prefix: authorization.slice(authorization.lastIndexOf(' ') + 1, authorization.lastIndexOf('_')),
    ms: Math.round(ms),
    // Without a rate of the listener, the client's address is not determined.
    client: head.peer === '' ? null : clientAddress(head.peer, forwardedFor),
    userAgent: userAgent === '' ? null : clipAgent(userAgent),
    messageIds:
      status < 300 && route?.isIdempotent === true
        ? (answered.messageIds ?? messagesOf(json)).slice(0, BATCH_MESSAGES_MAX)
        : [],
  }
}

function messagesOf({ messageId, messages }: AnswerBody): string[] {
  const ids = messages === undefined ? [messageId] : messages.slice(0, BATCH_MESSAGES_MAX).map((one) => one.messageId)
  return ids.filter((id) => typeof id === 'string')
}

function clipAgent(userAgent: string): string {
  if (userAgent.length > AGENT_CHARS_MAX) return shown(userAgent)
  const known = agents.get(userAgent)
  if (known !== undefined) return known
  if (agents.size >= AGENTS_MAX) agents.clear()
  const agent = shown(userAgent)
  agents.set(userAgent, agent)
  return agent
}

/**
 * A client may have written an address there. It is a copy, because a substring would keep the whole text in memory.
 */
function shown(text: string): string {
  const line = capText(maskAddress(text.slice(0, 2 * TEXT_CHARS_MAX), '')).slice(0, TEXT_CHARS_MAX)
  return Buffer.from(line).toString()
}
