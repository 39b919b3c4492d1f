/**
 * broadcast - broadcasts of a server as they are read and listed
 *
 * The text of a broadcast is in its content. The state, which is a stream, holds neither subject nor address.
 *
 * Keys: `broadcast:<id>`, `broadcasts:<server>`, `counters`, `content:<contentId>:head`, `person:<account>`,
 * `key:<sha256>`
 *
 * Spec broadcast.read, broadcast.list, list.page
 */

import { homeShard, shardOf } from '../../../cluster/id.ts'
import type { Broadcast } from '../../../schemas/broadcast.ts'
import {
  type BroadcastState,
  broadcastOwner,
  broadcastRef,
  computeCounts,
  type Progress,
} from '../../state/broadcast/broadcast.ts'
import { broadcastsKey } from '../../state/keys.ts'
import { type Head, spelledAddress, unpackHead } from '../../state/message/head.ts'
import { countersFact, entityFact, parseCounters, parseState, type Unseen } from '../entity.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from '../key.ts'
import { type Page, readNewest } from '../newest.ts'
import { readPersonMap } from '../person.ts'
import { sharedHeadFact } from './rows.ts'

/** Broadcasts that one request looks at. */
const LOOKED_AT_MAX = 1_000

/** The filters of a list. */
export interface BroadcastFilter {
  readonly streamId: string | null
  readonly status: string | null
}

/** A broadcast and its progress. */
export interface FoundBroadcast {
  readonly state: BroadcastState
  /** Null if the broadcast has ended. */
  readonly progress: Progress | null
}

/** A broadcast of the key's server; null if the server has none with that id. */
export async function readBroadcast(
  read: Reader,
  owner: ServerKey,
  broadcastId: string,
): Promise<Broadcast | null | Unseen> {
  const shard = homeShard(owner.accountId)
  const id = broadcastId.toLowerCase()
  // An id of another shard belongs to another account, and its key name would not be valid on this shard.
  const found = await readStates(read, owner, shardOf(id) === shard ? [id] : [])
  if (typeof found === 'string') return found
  const [only] = found
  if (only === undefined) return null
  const shown = await showBroadcasts(read, owner, [only])
  return shown === null ? 'unavailable' : (shown[0] as Broadcast)
}

/** A page of the server's broadcasts, newest first. */
export async function listBroadcasts(
  read: Reader,
  owner: ServerKey,
  { limit, after, filter }: Page & { readonly filter: BroadcastFilter },
): Promise<{ broadcasts: readonly Broadcast[]; next: string | null } | Unseen> {
  const shard = homeShard(owner.accountId)
  const keys = [{ shard, key: broadcastsKey(shard, owner.serverId) }]
  const passed: FoundBroadcast[] = []
  let last = after
  let isEnd = false
  for (let looked = 0; looked < LOOKED_AT_MAX && passed.length < limit && !isEnd; looked += limit) {
    const ids = await readNewest(read, keys, { limit: limit + 1, after: last })
    if (ids === null) return 'unavailable'
    const found = await readStates(read, owner, ids.slice(0, limit))
    if (typeof found === 'string') return found
    const matching = found.filter(({ state }) => passes(state, filter))
    const taken = matching.slice(0, limit - passed.length)
    passed.push(...taken)
    const isFull = passed.length === limit
    const lastRead = isFull ? taken.at(-1)?.state.broadcastId : ids[limit - 1]
    last = lastRead ?? last
    isEnd = ids.length <= limit && (!isFull || found.at(-1) === taken.at(-1))
  }
  const broadcasts = await showBroadcasts(read, owner, passed)
  return broadcasts === null ? 'unavailable' : { broadcasts, next: isEnd ? null : last }
}

/** The resources. Null if the store did not answer. */
async function showBroadcasts(
  read: Reader,
  { accountId }: Pick<ServerKey, 'accountId'>,
  found: readonly FoundBroadcast[],
): Promise<readonly Broadcast[] | null> {
  const shard = homeShard(accountId)
  const [heads, persons] = await Promise.all([
    read(
      shard,
      found.map(({ state }) => sharedHeadFact(shard, state.contentId)),
    ),
    readPersonMap(read, { shard, accountId, numbers: found.map(({ state }) => state.sender) }),
  ])
  if (heads === null || persons === null) return null
  return found.map((one, index) => {
    const packed = heads[index] ?? null
    return formatBroadcast(one, packed === null ? null : unpackHead(packed, 0), persons.get(one.state.sender) ?? '')
  })
}

/** One resource. In: the head, null once it is removed; the sender's address. */
export function formatBroadcast({ state, progress }: FoundBroadcast, head: Head | null, sender: string): Broadcast {
  const address = head === null ? sender : spelledAddress(head, 0, sender)
  const name = head?.senderName ?? null
  const { released, failed } = computeCounts(state, progress)
  return {
    broadcastId: state.broadcastId,
    streamId: state.streamId,
    status: state.status,
    pausedAt: formatInstantOrNull(state.pausedAtMs),
    from: showMailbox({ address, name }),
    subject: head?.subject ?? null,
    tag: head?.tag ?? null,
    metadata: { ...head?.metadata },
    total: state.total,
    released,
    failed,
    suppressed: state.suppressed,
    submittedAt: formatInstant(state.submittedAtMs),
    sendAt: formatInstantOrNull(state.sendAtMs ?? null),
    completedAt: formatInstantOrNull(state.endedAtMs),
  }
}

/** An address as an answer shows it, with its name before it. */
export function showMailbox({ address, name }: { readonly address: string; readonly name: string | null }): string {
  return name === null ? address : `${name} <${address}>`
}

async function readStates(
  read: Reader,
  owner: ServerKey,
  ids: readonly string[],
): Promise<readonly FoundBroadcast[] | Unseen> {
  const shard = homeShard(owner.accountId)
  if (ids.length === 0) {
    const [key] = (await read(shard, [keyFact(shard, owner.hash)])) ?? [null]
    if (key === null) return 'unavailable'
    return ownerOfRow(owner.hash, key) === null ? 'unauthorized' : []
  }
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    countersFact(shard, ids.map(broadcastOwner)),
    ...ids.map((id) => entityFact(shard, broadcastRef(id))),
  ])
  if (seen === null) return 'unavailable'
  const [key, packed, ...states] = seen
  if (ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  const counters = parseCounters<Progress>(packed)
  return states.flatMap((value, index) => {
    const state = parseState<BroadcastState>(value)
    return state?.serverId === owner.serverId ? [{ state, progress: counters[index] ?? null }] : []
  })
}

function passes({ streamId, status }: BroadcastState, filter: BroadcastFilter): boolean {
  if (filter.streamId !== null && streamId !== filter.streamId) return false
  return filter.status === null || status === filter.status
}
