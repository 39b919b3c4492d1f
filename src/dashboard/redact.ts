/**
 * redact - removes personal content from mirrored reads of live servers
 *
 * The content of mail has separate, recorded routes (`content-routes.ts`). Received mail is shown by its reference;
 * downloads require permission to read, and are recorded. An account may hide all content, on its test servers too. An
 * export holds the addresses of a live server in one file, and requires the permission to write.
 *
 * Spec member.content, export.role
 */

import { homeShard, isId } from '../../cluster/id.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import { settingsFact, settingsOfRow } from '../state/dashboard/member.ts'
import { holdsLevel } from '../state/dashboard/session.ts'
import type { ServerState } from '../state/server.ts'
import type { SessionKey } from '../views/key.ts'
import type { DashboardDeps } from './deps.ts'

/** The rule for an answer, or the refusal. */
export type ContentRule =
  | { readonly shown: <One extends Answer>(answer: One) => One | Answer }
  | { readonly refusal: Answer }

type Json = Record<string, unknown>

/** Position of a file in a mail. */
const POSITION = /^\d{1,9}$/
const AS_IT_IS: ContentRule = { shown: (answer) => answer }
/** A download is nothing that a browser runs or shows. */
const DOWNLOAD_HEADERS = {
  'Content-Security-Policy': "sandbox; default-src 'none'",
  'Content-Disposition': 'attachment',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
}
const NOTHING_RECEIVED = {
  envelope: null,
  from: null,
  replyTo: [],
  to: [],
  toCount: 0,
  cc: [],
  ccCount: 0,
  subject: null,
  date: null,
  messageIdHeader: null,
  inReplyTo: null,
  references: [],
  headers: [],
  text: null,
  html: null,
  attachments: [],
}

/** Removes content from the answers of a route. */
const HIDING: Readonly<Record<string, (json: Json) => Json>> = {
  readMessage: (json) => ({ ...json, text: null, html: null, links: [], images: [] }),
  readReceived: hideReceived,
  searchReceived: (json) => ({ ...json, messages: (json.messages as Json[]).map(hideReceived) }),
  readDelivery: (json) => ({ ...json, body: isInbound(json) ? hideEvent(json.body as Json | null) : json.body }),
}
const EXPORTS = ['exportMessages', 'exportBounces', 'exportSuppressions']
const DOWNLOADS = ['readReceivedRaw', 'readReceivedFile', 'readMessageRaw', 'readMessageFile', 'checkMessage']

/** The rule for an answer of a route about a server; null for other routes. */
export async function findRule(
  deps: DashboardDeps,
  session: SessionKey,
  of: {
    readonly name: string
    readonly server: ServerState | null
    readonly params: Readonly<Record<string, string>>
  },
): Promise<ContentRule> {
  const { name, server } = of
  const hide = HIDING[name]
  const isDownload = DOWNLOADS.includes(name)
  if (server?.mode === 'live' && EXPORTS.includes(name) && !holdsLevel(session.row.level, 'w'))
    return { refusal: refusalReply('role_not_allowed') }
  if (server === null || (hide === undefined && !isDownload)) return AS_IT_IS
  if (isDownload) {
    const refusal = await refuseContent(deps, session, { server, act: name, targets: of.params })
    return refusal === null ? { shown: asDownload } : { refusal }
  }
  const isHidden = server.mode === 'live' || (await isContentHidden(deps, session.accountId))
  if (isHidden === null) return { refusal: refusalReply('unavailable') }
  return isHidden ? { shown: (answer) => hidden(answer, hide as (json: Json) => Json) } : AS_IT_IS
}

/** Refuses content without permission, and records the reader; null if it may be shown. */
export async function refuseContent(
  deps: DashboardDeps,
  { accountId, row }: SessionKey,
  of: { readonly server: ServerState; readonly act: string; readonly targets: Readonly<Record<string, string>> },
): Promise<Answer | null> {
  // Records contain only ids and numbers, so any other text in the path is refused.
  if (!Object.values(of.targets).every((target) => isId(target.toLowerCase()) || POSITION.test(target)))
    return refusalReply('not_found')
  const isHidden = await isContentHidden(deps, accountId)
  if (isHidden === null) return refusalReply('unavailable')
  if (isHidden) return refusalReply('content_hidden')
  if (of.server.mode === 'live' && !holdsLevel(row.level, 'w')) return refusalReply('role_not_allowed')
  const body = { accountId, userId: row.userId, act: of.act, targets: { ...of.targets } }
  const { answer } = await giveOrder(deps, homeShard(accountId), { name: 'note-act', body })
  return answer ?? null
}

/** Whether an account shows no content; null when the store did not answer. */
async function isContentHidden({ read }: DashboardDeps, accountId: string): Promise<boolean | null> {
  const shard = homeShard(accountId)
  const seen = await read(shard, [settingsFact(shard, accountId)])
  return seen === null ? null : settingsOfRow(seen[0]).hideContent
}

function hidden<One extends Answer>(answer: One, hide: (json: Json) => Json): One | Answer {
  return 'json' in answer ? { ...answer, json: hide(answer.json as Json) } : answer
}

function asDownload<One extends Answer>(answer: One): One | Answer {
  return 'read' in answer ? { ...answer, headers: { ...answer.headers, ...DOWNLOAD_HEADERS } } : answer
}

function hideReceived(json: Json): Json {
  const kept = Object.entries(NOTHING_RECEIVED).filter(([name]) => name in json)
  return { ...json, ...Object.fromEntries(kept) }
}

function isInbound({ event }: Json): boolean {
  return event === 'inbound'
}

/** The form of a webhook that takes references only. */
function hideEvent(body: Json | null): Json | null {
  if (body === null) return null
  const names = [...Object.keys(NOTHING_RECEIVED), 'contentOmitted']
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
}
