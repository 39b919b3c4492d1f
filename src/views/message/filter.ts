/**
 * filter - which messages a search or a count means: the filters over entries, heads and recipients
 *
 * Spec message.search
 */
import { siteOfEvents } from '../../state/message/group-count.ts'
import type { SourceLetter } from '../../state/message/log-entry.ts'
import { keepsContent } from '../../state/message/retention.ts'
import type { RecipientState, RecipientStatus, StatusEvent } from '../../state/message/status.ts'
import type { Reader, ServerKey } from '../key.ts'
import { readPersonMap } from '../person.ts'
import { readEntries, readStored } from './rows.ts'
import type { Round, Walk } from './scan.ts'
import type { StoredMessage } from './summary.ts'

/** The filters; null for one that is not given. */
export interface MessageFilter {
  readonly streamId: string | null
  readonly broadcastId: string | null
  /** HMACs of addresses within the account. */
  readonly recipient: string | null
  readonly from: string | null
  /** In lower case, part of a recipient's address or name. */
  readonly recipientContains: string | null
  readonly tag: { readonly text: string; readonly hash: string } | null
  readonly metadata: { readonly name: string; readonly value: string } | null
  /** Words in lower case, all of which occur in the subject. */
  readonly subject: readonly string[] | null
  readonly status: RecipientStatus | 'mixed' | null
  /** These three and `status` hold for one recipient. */
  readonly event: StatusEvent['event'] | null
  readonly site: string | null
  /** Class of a bounce. */
  readonly classification: string | null
  readonly source: SourceLetter | null
  readonly fromMs: number | null
  readonly toMs: number | null
}

/** The server whose log is searched. */
export interface SearchOwner extends Pick<ServerKey, 'accountId' | 'serverId' | 'mode' | 'defaultStreamId'> {
  /** The hash of the key that searches; null: an operator, whose key is checked before. */
  readonly hash: string | null
}

/** A walk through the log of a server with its filters. */
export interface Passing {
  readonly owner: SearchOwner
  readonly walk: Walk
  readonly filter: MessageFilter
  readonly nowMs: number
}

/** Whether the entry of a message does not decide alone. */
export function needsHead(filter: MessageFilter): boolean {
  const { tag, metadata, subject, status, event, site, classification, broadcastId, recipientContains } = filter
  const ofHead = [tag, metadata, subject, status, event, site, classification, broadcastId, recipientContains]
  return ofHead.some((one) => one !== null)
}

/** The candidates that pass, and how many were read with head and statuses; null if the store did not answer. */
export async function readPassing(
  read: Reader,
  passing: Passing,
  slice: Round['found'],
): Promise<{ readonly passed: readonly StoredMessage[]; readonly read: number } | null> {
  const { owner, walk, filter, nowMs } = passing
  const logged = await readEntries(read, walk, slice)
  if (logged === null) return null
  const entries = logged.filter(({ entry }) => entryPasses(entry, walk, { filter, owner }))
  const stored = await readStored(read, { owner, shard: walk.shard, entries, nowMs })
  if (stored === null) return null
  const heads = stored.filter((message) => headPasses(message, filter) && subjectPasses(message, passing))
  const passed = await namedOf(read, passing, heads)
  return passed === null ? null : { passed, read: stored.length }
}

/** Messages with a recipient whose address or name contains the wanted text; null if the store did not answer. */
async function namedOf(
  read: Reader,
  { owner: { accountId }, walk: { shard }, filter: { recipientContains: text } }: Passing,
  stored: readonly StoredMessage[],
): Promise<readonly StoredMessage[] | null> {
  if (text === null || stored.length === 0) return stored
  const numbers = stored.flatMap(({ entry }) => entry.recipients)
  const persons = await readPersonMap(read, { shard, accountId, numbers })
  if (persons === null) return null
  const has = (one: string | null | undefined) => one?.toLowerCase().includes(text) ?? false
  return stored.filter(({ entry, head }) =>
    entry.recipients.some((number, at) => has(persons.get(number)) || has(head.recipientNames[at])),
  )
}

function entryPasses(
  entry: StoredMessage['entry'],
  { sought }: Walk,
  { filter, owner }: { filter: MessageFilter; owner: SearchOwner },
): boolean {
  const { recipient, sender, tagHash } = sought
  if (recipient !== null && !entry.recipients.includes(recipient)) return false
  if (sender !== null && entry.sender !== sender) return false
  if (tagHash !== null && entry.tagHash !== tagHash) return false
  if (filter.source !== null && entry.source !== filter.source) return false
  if (filter.broadcastId !== null && entry.source !== 'b') return false
  return filter.streamId === null || (entry.streamId ?? owner.defaultStreamId) === filter.streamId
}

/** Whether the subject has all the words, and may still be read: it goes with the content. Spec message.search */
function subjectPasses(stored: StoredMessage, { filter: { subject }, nowMs }: Passing): boolean {
  const { head } = stored
  if (subject === null) return true
  if (head.subject === null || !keepsContent(stored, nowMs)) return false
  const words = head.subject.toLowerCase()
  return subject.every((word) => words.includes(word))
}

function headPasses({ head, recipients, test }: StoredMessage, filter: MessageFilter): boolean {
  const { tag, metadata, status, broadcastId } = filter
  if (broadcastId !== null && head.broadcast?.broadcastId !== broadcastId) return false
  // Hashes of tags are short, so the tag itself settles a collision.
  if (tag !== null && head.tag !== tag.text) return false
  if (
    metadata !== null &&
    !(Object.hasOwn(head.metadata, metadata.name) && head.metadata[metadata.name] === metadata.value)
  )
    return false
  if (status === 'mixed' && recipients.every((one) => one.status === recipients[0]?.status)) return false
  return recipients.some((one) => recipientPasses(one, filter, test))
}

/** Whether one recipient has everything that the filters say of recipients. */
function recipientPasses({ status, events }: RecipientState, filter: MessageFilter, test: boolean): boolean {
  const { event, site, classification } = filter
  if (filter.status !== null && filter.status !== 'mixed' && status !== filter.status) return false
  if (event !== null && !events.some((one) => one.event === event)) return false
  if (
    classification !== null &&
    !events.some((one) => one.event === 'bounced' && one.classification === classification)
  )
    return false
  return site === null || (events.length > 0 && siteOfEvents(events, test) === site)
}
