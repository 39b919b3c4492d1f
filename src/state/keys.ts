/**
 * keys - the names of every key that holds mail, and of the items of its lanes.
 *
 * README.md in this folder describes the content and packing of each key.
 */
import { shardTag } from '../../cluster/keyspace.ts'
import { memoize } from './memoize.ts'

/** The shard of the list of destinations held by the operator, and of its orders. */
export const HOLDS_SHARD = 0

/** The shard of the change of SECRET_KEY. */
export const ROTATION_SHARD = 0
/** Hash: `state` -> JSON of the latest change of SECRET_KEY. */
export const rotationKey = (shard: number): string => `${shardTag(shard)}:rotation`

/** The shard of sources, pools and rules of outgoing mail. */
export const EGRESS_SHARD = 0
/** Hash: `document` -> JSON, `version`, `changed` -> ms, `password:<source>` -> password of its relay, sealed. */
export const egressKey = (): string => `${shardTag(EGRESS_SHARD)}:egress:conf`
/** Hash: `<source>|<site>` -> JSON of a source that sends nothing to a site for a while. */
export const egressRestsKey = (): string => `${shardTag(EGRESS_SHARD)}:egress-rests`
/** Hash of an hour or a day (`yyyymmddhh`, `yyyymmdd`): `<source>|<site>` -> messages taken from its ceiling. */
export const egressSentKey = (window: string): string => `${shardTag(EGRESS_SHARD)}:egress-sent:${window}`
/** Hash of a day: `<result>|<source>|<site>` -> attempts. */
export const egressDayKey = (day: string): string => `${shardTag(EGRESS_SHARD)}:egress-day:${day}`

/** Hash: record of an API key. `hash` is SHA-256 of the whole key, hex. */
export const apiKeyKey = (shard: number, hash: string): string => `${shardTag(shard)}:key:${hash}`
/** Hash of each shard: `logRetentionMonths` -> months for which the logs of all accounts are kept at most. */
export const retentionKey = (shard: number): string => `${shardTag(shard)}:retention`
/** Zset: accounts of the shard by creation. */
export const accountsKey = (shard: number): string => `${shardTag(shard)}:accounts`
/** Zset: actions of operators in a month (`yyyymm`), `<auditId> <JSON>` by time. */
export const auditKey = (shard: number, month: string): string => `${shardTag(shard)}:audit:${month}`
/** Hash: place -> address: whom to mail about the account. */
export const administratorsKey = (shard: number, accountId: string): string =>
  `${shardTag(shard)}:administrators:${accountId}`
/** Zset: servers of an account by creation. */
export const serversKey = (shard: number, accountId: string): string => `${shardTag(shard)}:servers:${accountId}`
/** Hash: `<stream>.<dd>` -> figures of the hours of a day. One key per UTC month. */
export const statsKey = (shard: number, serverId: string, month: string): string =>
  `${shardTag(shard)}:stats:${serverId}:${month}`
/** Hash: `<letter>.<dd>` -> `{name: row}` of the groups of a day. One key per UTC month. */
export const groupDaysKey = (shard: number, serverId: string, month: string): string =>
  `${shardTag(shard)}:group-days:${serverId}:${month}`
/** Hash: `<letter>.<hour of the day>` -> `{name: row}` of the groups of an hour. One key per UTC day. */
export const groupHoursKey = (shard: number, serverId: string, day: string): string =>
  `${shardTag(shard)}:group-hours:${serverId}:${day}`
/** Hash: `d.<dd>`, `t.<dd>` -> what DMARC and TLS reports say about a domain's day. One key per UTC month. */
export const reportsKey = (shard: number, domainId: string, month: string): string =>
  `${shardTag(shard)}:reports:${domainId}:${month}`
/** Hash: report -> what is known of it. One key per UTC month of the reception. */
export const reportLogKey = (shard: number, domainId: string, month: string): string =>
  `${shardTag(shard)}:report-log:${domainId}:${month}`
/** Zset: removed servers of an account with remaining data, by creation. */
export const removedServersKey = (shard: number, accountId: string): string => `${shardTag(shard)}:removed:${accountId}`
/** Zset: pending erasures of an account, by creation; the first one is being executed. */
export const erasuresKey = (shard: number, accountId: string): string => `${shardTag(shard)}:erasures:${accountId}`
/** Hash: HMAC of an address under erasure -> id of its latest erasure. */
export const erasingKey = (shard: number, accountId: string): string => `${shardTag(shard)}:erasing:${accountId}`
/** Hash of the erasures of a shard: `ordered done messages received` -> how many; `ms` -> when one was done last. */
export const erasedKey = (shard: number): string => `${shardTag(shard)}:erased`
/** Zset: `<lane> <attempts> <item>` of mail that waits until its account is resumed, by when it came to wait. */
export const heldKey = (shard: number, accountId: string): string => `${shardTag(shard)}:held:${accountId}`
/** Hash: tokenId -> JSON of the token, live and revoked. */
export const tokensKey = (shard: number, ownerId: string): string => `${shardTag(shard)}:tokens:${ownerId}`
/** Zset: tokenIds of an owner by creation. */
export const tokenIdsKey = (shard: number, ownerId: string): string => `${shardTag(shard)}:token-ids:${ownerId}`
/** Zset: streams of a server by creation. */
export const streamsKey = (shard: number, serverId: string): string => `${shardTag(shard)}:streams:${serverId}`
/**
 * Hash: `server/<name>`, `stream/<serverId>/<name>`, `domain/<domain>`, `inbound/<serverId>` (its live inbound stream)
 * -> id.
 */
export const namesKey = (shard: number, accountId: string): string => `${shardTag(shard)}:names:${accountId}`
/**
 * Hash: verified sending domain, or `test/` and one that test servers use -> JSON [domainId, failingSinceMs or 0,
 * since when its DKIM key signs].
 */
export const sendingKey = (shard: number, accountId: string): string => `${shardTag(shard)}:sending:${accountId}`
/** Zset: sending domains of an account by creation. */
export const domainsKey = (shard: number, accountId: string): string => `${shardTag(shard)}:domains:${accountId}`
/** Zset: verified domains of the shard with an inconclusive lookup -> ms since when. */
export const undecidedKey = (shard: number): string => `${shardTag(shard)}:undecided`
/**
 * Hash: DKIM selector -> JSON [in use since, public key, private key sealed]; also of removed domains, for a while.
 */
export const dkimKey = (shard: number, accountId: string, domain: string): string =>
  `${shardTag(shard)}:dkim:${accountId}:${domain}`
/** Hash, of the first persons of an account: HMAC -> number; number -> address; `#` -> numbers given out in it. */
export function firstPersonsKey(shard: number, accountId: string): string {
  const name = personNames(accountId)
  if (name.shard !== shard) {
    name.shard = shard
    name.key = `${shardTag(shard)}:person:${accountId}`
  }
  return name.key
}
/** The same of all others, by the first digits of their HMAC. */
export const personKey = (shard: number, accountId: string, digits: string): string =>
  `${shardTag(shard)}:person:${accountId}:${digits}`
/** Zset: segment -> its first millisecond. */
export const segmentsKey = (shard: number, serverId: string): string => `${shardTag(shard)}:segments:${serverId}`
/** Stream: one entry per message. */
export const logKey = (shard: number, serverId: string, segment: string): string =>
  segmentNames(shard, serverId, segment).log
/** Hash: message -> its head, the text written by persons. */
export const headKey = (shard: number, serverId: string, segment: string): string =>
  segmentNames(shard, serverId, segment).head
/** Hash: message and recipient -> status and events; a recipient without events has no field. */
export const statusKey = (shard: number, serverId: string, segment: string): string =>
  segmentNames(shard, serverId, segment).status
/** Hash: sealed segment -> JSON with the place of its object. */
export const sealedKey = (shard: number, serverId: string): string => `${shardTag(shard)}:sealed:${serverId}`
/** String: Bloom filter of the persons of a sealed segment. */
export const sealedPersonsKey = (shard: number, serverId: string, segment: string): string =>
  `${shardTag(shard)}:sealed-persons:${serverId}:${segment}`
/** Hash: recalled message of a sealed segment -> its packed log entry. */
export const recalledKey = (shard: number, serverId: string, segment: string): string =>
  `${shardTag(shard)}:recalled:${serverId}:${segment}`
/** Stream: postings of persons, one entry per message and bucket. Busy segments alone have postings. */
export const byPersonKey = (shard: number, serverId: string, segment: string, bucket: number): string =>
  `${shardTag(shard)}:by-person:${serverId}:${segment}:${bucket}`
/** Stream: postings of tags. */
export const byTagKey = (shard: number, serverId: string, segment: string, bucket: number): string =>
  `${shardTag(shard)}:by-tag:${serverId}:${segment}:${bucket}`
/** Hash: hash(server, Idempotency-Key) -> JSON [fingerprint, ms, answers]. One key per UTC day and sixteenth. */
export const idempotencyKey = (shard: number, day: string, slice: string): string =>
  `${shardTag(shard)}:idempotency:${day}:${slice}`
/** Hash: HMAC of a suppressed address -> JSON of the entry. One key per sixteenth of a stream's list. */
export const suppressedKey = (shard: number, streamId: string, slice: string): string =>
  `${shardTag(shard)}:suppressed:${streamId}:${slice}`
/** Stream: one entry per suppression ever made, entry id = suppression id. */
export const suppressionsKey = (shard: number, serverId: string): string =>
  `${shardTag(shard)}:suppressions:${serverId}`
/** Hash: destination -> ms when the operator wanted it tried although its site was left alone; the last minute's. */
export const wakesKey = (): string => `${shardTag(HOLDS_SHARD)}:wakes`
/** Hash: destination that the operator holds -> ms since when. One list for all, on shard 0. */
export const holdsKey = (): string => `${shardTag(HOLDS_SHARD)}:holds`
/** Hash: contentId -> text and html of a message, if they are small and came with its command. One key per slice. */
export const bodiesKey = (shard: number, slice: number, test: boolean): string =>
  `${shardTag(shard)}:bodies:${slice}:${test ? 'test' : 'live'}`
/** String: one chunk of one part of a message's content. */
export const contentKey = (shard: number, contentId: string, part: string, chunk: number): string =>
  `${shardTag(shard)}:content:${contentId}:${part}${chunk === 0 ? '' : `.${chunk}`}`

/**
 * Zset: open broadcasts of a stream -> turn. The lowest is released next, and paused ones are after all running ones.
 */
export const runningKey = (shard: number, streamId: string): string => `${shardTag(shard)}:running:${streamId}`
/** Zset: broadcasts of a server by creation. */
export const broadcastsKey = (shard: number, serverId: string): string => `${shardTag(shard)}:broadcasts:${serverId}`
/** Zset: streams of an account with open broadcasts, by creation. */
export const broadcastingKey = (shard: number, accountId: string): string =>
  `${shardTag(shard)}:broadcasting:${accountId}`

/** Stream: one entry per received message. */
export const receivedKey = (shard: number, serverId: string, segment: string): string =>
  `${shardTag(shard)}:received:${serverId}:${segment}`
/** Zset: segment of received messages -> its first millisecond. */
export const receivedSegmentsKey = (shard: number, serverId: string): string =>
  `${shardTag(shard)}:received-segments:${serverId}`
/** Hash: received message -> data kept as long as its reference. */
export const receivedStateKey = (shard: number, serverId: string, segment: string): string =>
  `${shardTag(shard)}:received-state:${serverId}:${segment}`
/** Zset: packed received messages of a segment -> score of the last one. */
export const receivedBlocksKey = (shard: number, serverId: string, segment: string): string =>
  `${shardTag(shard)}:received-blocks:${serverId}:${segment}`
/** Hash: bucket of a packed segment -> its postings, packed. */
export const receivedPostingsKey = (shard: number, serverId: string, segment: string): string =>
  `${shardTag(shard)}:received-postings:${serverId}:${segment}`
/** Hash: received message -> data kept as long as its content. There is one key per UTC day and sixteenth. */
export const receivedHeadKey = (shard: number, serverId: string, slice: string): string =>
  `${shardTag(shard)}:received-head:${serverId}:${slice}`
/** Stream: postings of the senders of received messages of a busy segment. */
export const receivedByPersonKey = (shard: number, serverId: string, segment: string, bucket: number): string =>
  `${shardTag(shard)}:received-by-person:${serverId}:${segment}:${bucket}`
/** Stream: postings of the texts after the plus sign of their addresses. */
export const receivedByHashKey = (shard: number, serverId: string, segment: string, bucket: number): string =>
  `${shardTag(shard)}:received-by-hash:${serverId}:${segment}:${bucket}`

/** Stream: references of the events of a server with a live feed, entry id = id of the feed's entry. */
export const heardKey = (shard: number, serverId: string): string => `${shardTag(shard)}:heard:${serverId}`
/** Stream: the events of a server in one slice. */
export const eventsKey = (shard: number, serverId: string, slice: string): string =>
  `${shardTag(shard)}:events:${serverId}:${slice}`
/** Zset: slice of a server's events -> its first millisecond. */
export const eventSlicesKey = (shard: number, serverId: string): string => `${shardTag(shard)}:event-slices:${serverId}`

/** Zset: slices of a webhook's deliveries -> first ms. */
export const slicesKey = (shard: number, webhookId: string): string => `${shardTag(shard)}:slices:${webhookId}`
/** Stream: deliveries of a slice, entry id = delivery id. */
export const queueKey = (shard: number, webhookId: string, slice: string): string =>
  `${shardTag(shard)}:queue:${webhookId}:${slice}`
/** Zset: packed deliveries of an older slice -> score of the last one. */
export const blocksKey = (shard: number, webhookId: string, slice: string): string =>
  `${shardTag(shard)}:blocks:${webhookId}:${slice}`
/** Hash: delivery -> its state; one without an attempt has no field. */
export const deliveryKey = (shard: number, webhookId: string, slice: string): string =>
  `${shardTag(shard)}:delivery:${webhookId}:${slice}`
/** Zset: deliveries of a slice that are dead -> ms of their creation. */
export const deadKey = (shard: number, webhookId: string, slice: string): string =>
  `${shardTag(shard)}:dead:${webhookId}:${slice}`

/** The names that every message of an account or of a server's open segment needs, made once. */
const personNames = memoize(() => ({ shard: -1, key: '' }))
const lastSegments = memoize(() => ({ shard: -1, segment: '', log: '', head: '', status: '' }))

function segmentNames(shard: number, serverId: string, segment: string) {
  const names = lastSegments(serverId)
  if (names.segment !== segment || names.shard !== shard) {
    const [tag, rest] = [shardTag(shard), `${serverId}:${segment}`]
    names.shard = shard
    names.segment = segment
    names.log = `${tag}:log:${rest}`
    names.head = `${tag}:head:${rest}`
    names.status = `${tag}:status:${rest}`
  }
  return names
}
