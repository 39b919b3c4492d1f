/**
 * tables - the exported lists: their columns, and a page of their rows, newest first
 *
 * Each is a search of the interface without its bounds: the same filters, the same rows. A new list is one entry here
 * and one route.
 *
 * Spec export.csv
 */

import { homeShard } from '../../../cluster/id.ts'
import type { ActivityExport, BounceExport, MessageExport, SuppressionExport } from '../../../schemas/export/export.ts'
import { unmaskAddress } from '../../mail/reply.ts'
import { readActs } from '../../views/dashboard/acts.ts'
import type { Cell } from '../../views/format/csv.ts'
import { formatInstant } from '../../views/instant.ts'
import { type AccountKey, keyFact, ownerOfRow, type ServerKey } from '../../views/key.ts'
import { formatRoute } from '../../views/message/recipient.ts'
import { type AddressedMessage, findAddressed } from '../../views/message/search.ts'
import { formatSummary } from '../../views/message/summary.ts'
import { searchSuppressions } from '../../views/suppression.ts'
import type { ReportDeps } from '../domain/reports.ts'
import { messageFilterOf, type SearchMessagesDeps } from '../messages.ts'
import { type SuppressionDeps, suppressionFilterOf } from '../suppressions.ts'

export type TableDeps = SearchMessagesDeps & SuppressionDeps & ReportDeps

/** Rows of a page, and the id after which the next page begins. */
export interface TablePage {
  readonly rows: readonly (readonly Cell[])[]
  readonly next: string | null
}

/** Why a page is not read: a code, or a wrong field. */
export type Unread =
  | ('unauthorized' | 'unavailable' | 'stream_not_found' | 'not_found')
  | { readonly path: string; readonly message: string }

/** A list that can be exported. */
export interface Table<Key, Body> {
  readonly columns: readonly string[]
  /** Fields of the body with whose values the export is noted; of the others only the name is. */
  readonly notedFields: readonly string[]
  readPage(
    deps: TableDeps,
    asked: {
      readonly key: Key
      readonly body: Body
      /** Those of the path. */
      readonly params: Readonly<Record<string, string>>
      readonly after: string | null
    },
  ): Promise<TablePage | Unread>
}

/** Objects of a page: a message has up to 50 recipients, each a row. */
const MESSAGES_AT_ONCE = 200
const SUPPRESSIONS_AT_ONCE = 1_000
const ACTS_AT_ONCE = 100
/** Filters of messages that name no person and no content. */
const OPEN_FIELDS = ['streamId', 'broadcastId', 'source', 'site', 'classification', 'submittedFrom', 'submittedTo']

export const MESSAGES: Table<ServerKey, MessageExport> = {
  columns: [
    ...['messageId', 'submittedAt', 'sendAt', 'streamId', 'broadcastId', 'source', 'test', 'from', 'fromName'],
    ...['subject', 'tag', 'metadata', 'sizeBytes', 'attachmentCount', 'recipient', 'recipientName', 'kind', 'status'],
    ...['statusAt', 'attempts', 'nextAttemptAt', 'code', 'response', 'complainedAt', 'unsubscribedAt'],
  ],
  notedFields: [...OPEN_FIELDS, 'status', 'event'],
  async readPage(deps, { key, body, after }) {
    const filter = messageFilterOf(deps.secrets, key, body)
    const seen = await findAddressed(deps, key, { filter, page: { limit: MESSAGES_AT_ONCE, after } })
    return typeof seen === 'string' ? seen : { rows: seen.found.flatMap(messageRows), next: seen.next }
  },
}

/** A row for each recipient. */
function messageRows({ stored, addresses }: AddressedMessage): Cell[][] {
  const { recipients, ...message } = formatSummary(stored, addresses, false)
  const { messageId, submittedAt, sendAt, streamId, broadcastId, source, test, from, subject, tag } = message
  const { metadata, sizeBytes, attachmentCount } = message
  const ofMessage = [messageId, submittedAt, sendAt, streamId, broadcastId, source, test, from.email, from.name]
  const content = [subject, tag, formatMap(metadata), sizeBytes, attachmentCount]
  return recipients.map(({ recipient, name, kind, status, statusAt, attempts, nextAttemptAt, ...last }) => {
    const { code, response, complainedAt, unsubscribedAt } = last
    const state = [status, statusAt, attempts, nextAttemptAt, code, response, complainedAt, unsubscribedAt]
    return [...ofMessage, ...content, recipient, name, kind, ...state]
  })
}

export const BOUNCES: Table<ServerKey, BounceExport> = {
  columns: [
    ...['messageId', 'submittedAt', 'streamId', 'broadcastId', 'from', 'subject', 'tag', 'recipient', 'bouncedAt'],
    ...['classification', 'hard', 'expired', 'code', 'response', 'mailServer'],
  ],
  notedFields: OPEN_FIELDS,
  async readPage(deps, { key, body, after }) {
    const filter = messageFilterOf(deps.secrets, key, { ...body, status: 'bounced' })
    const seen = await findAddressed(deps, key, { filter, page: { limit: MESSAGES_AT_ONCE, after } })
    if (typeof seen === 'string') return seen
    return { rows: seen.found.flatMap((found) => bounceRows(found, body.classification)), next: seen.next }
  },
}

/** A row for each recipient that bounced, with the class that is asked for. */
function bounceRows({ stored, addresses }: AddressedMessage, asked: string | undefined): Cell[][] {
  const { messageId, submittedAtMs, streamId, head, recipients } = stored
  const { broadcast, subject, tag } = head
  const at = [messageId, formatInstant(submittedAtMs), streamId, broadcast?.broadcastId ?? null]
  const ofMessage = [...at, addresses[0] ?? '', subject, tag]
  return recipients.flatMap(({ status, events }, place) => {
    const bounce = events.findLast((event) => event.event === 'bounced')
    if (status !== 'bounced' || bounce === undefined) return []
    const address = addresses[place + 1] ?? ''
    const { code, classification, hard, expired } = bounce
    if (asked !== undefined && classification !== asked) return []
    const response = bounce.response === null ? null : unmaskAddress(bounce.response, address)
    const why = [classification, hard, expired, code, response, formatRoute(bounce)?.host ?? null]
    return [[...ofMessage, address, formatInstant(bounce.occurredAtMs), ...why]]
  })
}

export const SUPPRESSIONS: Table<ServerKey, SuppressionExport> = {
  columns: [
    'suppressionId',
    'createdAt',
    'streamId',
    'recipient',
    'reason',
    'messageId',
    'code',
    'response',
    'liftable',
  ],
  notedFields: ['streamId', 'reason', 'createdFrom', 'createdTo'],
  async readPage({ read, secrets }, { key, body, after }) {
    const search = { ...body, limit: SUPPRESSIONS_AT_ONCE, ...(after !== null && { after }) }
    const filter = suppressionFilterOf(secrets, key, search)
    const pseudonymOf = (hmac: string) => secrets.pseudonymOf(hmac)
    const seen = await searchSuppressions(read, key, { keyHash: key.hash, filter, pseudonymOf })
    if (typeof seen === 'string') return seen
    const rows = seen.suppressions.map((one) => {
      const { suppressionId, createdAt, streamId, recipient, reason, messageId, code, response, liftable } = one
      return [suppressionId, createdAt, streamId, recipient, reason, messageId, code, response, liftable]
    })
    return { rows, next: seen.next }
  },
}

export const ACTIVITY: Table<AccountKey, ActivityExport> = {
  columns: ['auditId', 'at', 'act', 'userId', 'userName', 'targets'],
  notedFields: ['from', 'to'],
  async readPage({ read, nowMs }, { key, body, after }) {
    const shard = homeShard(key.accountId)
    const seen = await read(shard, [keyFact(shard, key.hash)])
    if (seen === null) return 'unavailable'
    if (ownerOfRow(key.hash, seen[0]) === null) return 'unauthorized'
    const page = await readActs(read, key.accountId, { limit: ACTS_AT_ONCE, after, nowMs: nowMs() })
    if (page === null) return 'unavailable'
    const fromMs = body.from === undefined ? 0 : Date.parse(body.from)
    const toMs = body.to === undefined ? Number.POSITIVE_INFINITY : Date.parse(body.to)
    const rows = page.acts
      .filter(({ at }) => Date.parse(at) >= fromMs && Date.parse(at) < toMs)
      .map(({ auditId, at, act, userId, userName, targets }) => [
        ...[auditId, at, act, userId, userName],
        formatMap(targets),
      ])
    const isPast = page.acts.some(({ at }) => Date.parse(at) < fromMs)
    return { rows, next: isPast ? null : page.next }
  },
}

/** Several values in one cell, as JSON; nothing for none. */
function formatMap(map: Readonly<Record<string, string>>): string {
  return Object.keys(map).length === 0 ? '' : JSON.stringify(map)
}
