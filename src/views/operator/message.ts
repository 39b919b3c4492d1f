/**
 * message - a message found by its id alone, as an operator looks for it: the servers of its shard are asked for it
 *
 * The view adds the lane of each recipient's work, the process that performs it, and the commands that were read, in
 * the form of redis-cli, for a closer look.
 *
 * Keys: `accounts`, `servers:<account>`, `segments sealed:<server>`, `log head status recalled:<server>:<segment>`,
 * `person:<account>:<x…>`, `claims`, `due:<lane>`, `holds`
 *
 * Spec operator.message
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shardOf, shortId } from '../../../cluster/id.ts'
import { parseClaim } from '../../../cluster/items/claim.ts'
import { claimsKey, laneKey } from '../../../cluster/keyspace.ts'
import type { FoundMessage } from '../../../schemas/operator/message.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { HOLDS_SHARD, holdsKey } from '../../state/keys.ts'
import { itemPrefix, itemSuffix, laneOf } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldName, unpackSealed } from '../../state/message/sealed.ts'
import { isOpen, messageStatus, type RecipientState, type StatusEvent } from '../../state/message/status.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { entityFact, parseState } from '../entity.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'
import type { Reader } from '../key.ts'
import { findMessageAmong, type MessagePlace } from '../message/find-message.ts'
import { type MessageDeps, readWhole } from '../message/message.ts'
import { formatRoute } from '../message/recipient.ts'
import { readEntries, readStored } from '../message/rows.ts'
import { SOURCES, type StoredMessage } from '../message/summary.ts'
import { readPersons } from '../person.ts'
import { readCommand } from '../read-command.ts'
import { readIsPast } from '../retention.ts'
import { readShardServers } from '../shard-servers.ts'

export interface FindMessageDeps extends MessageDeps {
  readonly read: Reader
}

type Unfound = 'not_found' | 'unavailable'

/** Finds the server and the segment of a message, whosever it is. In: the message's id, in either case. */
export async function findMessage(read: Reader, id: string): Promise<MessagePlace | Unfound> {
  const shard = shardOf(id.toLowerCase())
  if (shard === null) return 'not_found'
  const servers = await readShardServers(read, shard)
  return servers === null ? 'unavailable' : findMessageAmong(read, { shard, servers, id })
}

/** Reads a message that was found. With `reveals`, includes its text and its addresses. */
export async function readFoundMessage(
  deps: FindMessageDeps,
  place: MessagePlace,
  reveals: boolean,
): Promise<FoundMessage | Unfound> {
  const { shard, serverId, accountId } = place
  const reads = new Set<string>()
  const read = noting(deps.read, reads)
  const owners = await read(shard, [entityFact(shard, serverRef(serverId)), entityFact(shard, accountRef(accountId))])
  if (owners === null) return 'unavailable'
  const server = parseState<ServerState>(owners[0])
  if (server === null) return 'not_found'
  const isPast = await readIsPast(read, server, { atMs: msOf(place.messageId), nowMs: deps.nowMs() })
  if (isPast !== false) return isPast === null ? 'unavailable' : 'not_found'
  const stored = await readMessageRows(read, place, { ...server, nowMs: deps.nowMs() })
  if (typeof stored === 'string') return stored
  const isHeld = parseState<AccountState>(owners[1])?.held === true
  const works = await readWorks(read, place, { stored, isHeld })
  const sealed = await readSealedPlace(read, place)
  if (works === null || sealed === null) return 'unavailable'
  const revealed = reveals ? await readWhole({ ...deps, read }, { accountId, serverId }, stored) : null
  if (revealed === 'unavailable') return revealed
  const { entry, head } = stored
  return {
    messageId: place.messageId,
    shard,
    accountId,
    serverId,
    streamId: stored.streamId,
    broadcastId: head.broadcast?.broadcastId ?? null,
    source: SOURCES[entry.source],
    status: messageStatus(stored.recipients.map(({ status }) => status)),
    test: stored.test,
    submittedAt: formatInstant(stored.submittedAtMs),
    sizeBytes: stored.recipients[0]?.sizeBytes ?? null,
    attachmentCount: head.attachments.length,
    recipients: stored.recipients.map((state, index) => ({
      index,
      kind: entry.kinds[index] ?? 'to',
      ...formatState(state),
      ...(works[index] as Work),
    })),
    ...sealed,
    reads: [...reads],
    revealed,
  }
}

/** The object that holds the rows of a message; null when the store did not answer. */
async function readSealedPlace(
  read: Reader,
  { shard, serverId, segment, messageId }: MessagePlace,
): Promise<Pick<FoundMessage, 'sealedObject' | 'sealedGeneration'> | null> {
  const rows = new MessageRows(shard, { serverId, segment })
  const seen = await read(shard, [rows.sealedFact(), rows.recalledFact([shortId(messageId)])])
  if (seen === null) return null
  const [[text = null], [recalled = null]] = seen
  const row = unpackSealed(text)
  const isThere = row !== null && row.generation > 0 && recalled === null
  return {
    sealedObject: isThere ? coldName(shard, row) : null,
    sealedGeneration: isThere ? row.generation : null,
  }
}

/** A reader that records its reads. */
function noting(read: Reader, reads: Set<string>): Reader {
  return ((shard, facts) => {
    for (const fact of facts) reads.add(readCommand(fact))
    return read(shard, facts)
  }) as Reader
}

/** The rows of a message; a word if there are none, or the store did not answer. */
export async function readMessageRows(
  read: Reader,
  { shard, messageId, segment }: MessagePlace,
  { accountId, serverId, mode, defaultStreamId, nowMs }: ServerState & { readonly nowMs: number },
): Promise<StoredMessage | Unfound> {
  const found = { messageId, entryId: entryIdOf(messageId), segment, packed: null }
  const entries = await readEntries(read, { shard, serverId }, [found])
  const owner = { accountId, serverId, mode, defaultStreamId }
  const stored = entries === null ? null : await readStored(read, { owner, shard, entries, nowMs })
  if (stored === null) return 'unavailable'
  return stored[0] ?? 'not_found'
}

/** Where the work for a recipient waits. */
type Work = Pick<FoundMessage['recipients'][number], 'item' | 'lane' | 'dueAt' | 'worker' | 'heldBy'>

interface Found {
  readonly stored: StoredMessage
  /** Mail of its account is held. */
  readonly isHeld: boolean
}

/** The work of each recipient, in their order; null when the store did not answer. */
async function readWorks(read: Reader, place: MessagePlace, { stored, isHeld }: Found): Promise<Work[] | null> {
  const { shard, accountId } = place
  const items = await readItems(read, place, stored)
  const persons = await readPersons(read, { shard, accountId, numbers: stored.entry.recipients })
  if (items === null || persons === null) return null
  const domains = persons.map((address) => address.slice(address.lastIndexOf('@') + 1))
  const seen = await read(shard, [
    { read: 'fields', key: claimsKey(shard), fields: items },
    ...items.flatMap((item, index) =>
      lanesOf(stored.test, domains[index] as string).map((lane): FactOf<'score'> => {
        return { read: 'score', key: laneKey(shard, lane), member: item }
      }),
    ),
  ])
  const holds = await read(HOLDS_SHARD, [{ read: 'fields', key: holdsKey(), fields: domains }])
  if (seen === null || holds === null) return null
  const [claims, ...scores] = seen
  const lanesEach = scores.length / items.length
  return items.map((item, index) => {
    const lanes = lanesOf(stored.test, domains[index] as string)
    const at = lanes.findIndex((_, lane) => (scores[index * lanesEach + lane] ?? null) !== null)
    const claim = parseClaim(claims[index] ?? null)
    const state = stored.recipients[index] as RecipientState
    const waits = isOpen(state.status)
    const heldBy = !waits ? null : isHeld ? 'account' : (holds[0][index] ?? null) === null ? null : 'destination'
    return {
      item,
      lane: lanes[at] ?? null,
      dueAt: formatInstantOrNull(scores[index * lanesEach + at] ?? null),
      worker: claim === null || claim.worker === '' ? null : claim.worker,
      heldBy,
    }
  })
}

/** The lanes in which a recipient's work may be, under any settings at its acceptance. */
function lanesOf(test: boolean, domain: string): readonly string[] {
  return test ? [laneOf('simulate', domain)] : [laneOf('deliver', domain), laneOf('relay', domain)]
}

/** The names of the recipients' items; null when the store did not answer. */
async function readItems(
  read: Reader,
  { shard, serverId, segment, messageId }: MessagePlace,
  { streamId, head, entry }: StoredMessage,
): Promise<string[] | null> {
  const seen = await read(shard, [entityFact(shard, streamRef(streamId))])
  if (seen === null) return null
  const isBroadcast = parseState<StreamState>(seen[0])?.kind === 'broadcast'
  const of = {
    recipients: entry.recipients.length,
    hasAttachments: head.broadcast === null && (head.attachments.length > 0 || head.raw !== null),
    broadcastStreamId: isBroadcast ? streamId : null,
    sendAtMs: head.sendAtMs ?? null,
  }
  const prefix = itemPrefix(serverId, segment, shortId(messageId))
  return entry.recipients.map((_, index) => prefix + itemSuffix(index, of))
}

function formatState({ status, statusAtMs, attempts, nextAttemptAtMs, events }: RecipientState) {
  const answered = events.findLast((event) => 'response' in event)
  return {
    status,
    statusAt: formatInstant(statusAtMs),
    attempts,
    nextAttemptAt: formatInstantOrNull(nextAttemptAtMs),
    code: answered?.code ?? null,
    response: answered?.response ?? null,
    events: events.map(formatEvent),
  }
}

function formatEvent(event: StatusEvent): FoundMessage['recipients'][number]['events'][number] {
  return {
    event: event.event,
    occurredAt: formatInstant(event.occurredAtMs),
    code: 'code' in event ? event.code : null,
    response: 'response' in event ? event.response : null,
    classification: event.event === 'bounced' ? event.classification : null,
    route: formatRoute(event),
  }
}
