/**
 * inspect-segment - the rows of a segment of the log as Redis would hold them, read from its object if it is sealed:
 * `sendwright inspect segment`
 *
 * Keys: `sealed:<server>`, `recalled log head status:<server>:<segment>`
 */

import { entryIdOf, idOfEntry, idOfShort, shardOf, shortId } from '../../../cluster/id.ts'
import type { Config } from '../../process/config.ts'
import { recalledKey, sealedKey, segmentsKey } from '../../state/keys.ts'
import { LOG_FIELD, unpackLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldName, unpackSealed } from '../../state/message/sealed.ts'
import { statusField } from '../../state/message/status.ts'
import type { Nodes } from '../nodes.ts'
import { withStore } from '../with-store.ts'
import { type OpenObjects, withObjects } from './open-objects.ts'

/** Messages that are read at once from Redis. */
const STEP = 500

/** A message's rows: its log text, and field and text of its head and its statuses. */
interface MessageTexts {
  readonly entryId: string
  /** The block of the object; null: its rows are in Redis. */
  readonly block: number | null
  readonly log: string
  readonly head: readonly [field: string, text: string] | null
  readonly statuses: readonly (readonly [field: string, text: string])[]
}

export interface SegmentRows {
  /** The keys that hold the rows while a segment is in Redis. */
  readonly keys: { readonly log: string; readonly head: string; readonly status: string }
  /** Null if the segment is in Redis. */
  readonly sealed: {
    readonly object: string
    readonly generation: number
    readonly size: number
    readonly blocks: number
    readonly recalled: number
  } | null
  /** Oldest first. */
  readonly messages: readonly MessageTexts[]
}

interface Place {
  readonly serverId: string
  readonly segment: string
}

/** Reads a segment; null if the server has none of that name. Throws Error, a sentence, if a store does not answer. */
export function readSegment(config: Config, place: Place): Promise<SegmentRows | null> {
  const shard = shardOf(place.serverId)
  if (shard === null) return Promise.resolve(null)
  const { serverId, segment } = place
  return withStore(config, async (nodes) => {
    const redis = nodes.nodeOf(shard)
    if ((await redis.zscore(segmentsKey(shard, serverId), segment)) === null) return null
    const row = unpackSealed(await redis.hget(sealedKey(shard, serverId), segment))
    if (row === null || row.generation === 0) return await readHot(nodes, { shard, ...place })
    const read = await withObjects(nodes, config, (open) => readSealed(open, { shard, ...place }))
    if (read === null)
      throw new Error('The segment is sealed, but the settings have no content store: set CONTENT_STORE')
    return read
  })
}

type ShardPlace = Place & { readonly shard: number }

async function readHot(nodes: Nodes, place: ShardPlace): Promise<SegmentRows> {
  const { keys } = new MessageRows(place.shard, place)
  const messages: MessageTexts[] = []
  for (let from = '-'; ; ) {
    const entries = await nodes.nodeOf(place.shard).xrange(keys.log, from, '+', 'COUNT', STEP)
    for (const [entryId, fields] of entries)
      messages.push(await textsOf(nodes, place, { entryId, log: fields[fields.indexOf(LOG_FIELD) + 1] as string }))
    const last = entries.at(-1)
    if (last === undefined || entries.length < STEP) return { keys, sealed: null, messages }
    from = `(${last[0]}`
  }
}

/** Head and statuses of a message as they are in Redis. */
async function textsOf(
  nodes: Nodes,
  place: ShardPlace,
  { entryId, log }: Pick<MessageTexts, 'entryId' | 'log'>,
): Promise<MessageTexts> {
  const { keys } = new MessageRows(place.shard, place)
  const redis = nodes.nodeOf(place.shard)
  const short = shortId(idOfEntry(entryId, place.shard))
  const fields = unpackLogEntry(log).recipients.map((_, recipient) => statusField(short, recipient))
  const head = await redis.hget(keys.head, short)
  const texts = await redis.hmget(keys.status, ...fields)
  const statuses = fields.flatMap((field, at) => (texts[at] == null ? [] : [[field, texts[at] as string] as const]))
  return { entryId, block: null, log, head: head === null ? null : [short, head], statuses }
}

async function readSealed(open: OpenObjects, place: ShardPlace): Promise<SegmentRows> {
  const { shard, serverId, segment: name } = place
  const redis = open.nodes.nodeOf(shard)
  const row = unpackSealed(await redis.hget(sealedKey(shard, serverId), name))
  if (row === null) throw new Error('The segment has just left the log')
  const recalled = await redis.hgetall(recalledKey(shard, serverId, name))
  const segment = open.segments.open(shard, row)
  const { blocks } = await segment.tail()
  const messages: MessageTexts[] = []
  for (const block of blocks.keys())
    for (const { entryId, log, head, statuses } of await segment.block(block)) {
      const short = shortId(idOfEntry(entryId, shard))
      if (recalled[short] !== undefined) continue
      const texts = statuses.map((text, recipient) => [statusField(short, recipient), text] as const)
      messages.push({ entryId, block, log, head: [short, head], statuses: texts })
    }
  for (const [short, log] of Object.entries(recalled))
    messages.push(await textsOf(open.nodes, place, { entryId: entryIdOf(idOfShort(short)), log }))
  const { generation, size } = row
  const sealed = { object: coldName(shard, row), generation, size, blocks: blocks.length }
  return {
    keys: new MessageRows(shard, place).keys,
    sealed: { ...sealed, recalled: Object.keys(recalled).length },
    messages,
  }
}
