/**
 * segments - whether the sealed segments of the log can be read: a row names an object of its size for each, the newest
 * object opens whole, and no segment waits for days or stays frozen
 *
 * Only the newest objects are asked for. `sendwright doctor --deep` opens all of them, and the packs of bodies.
 *
 * Keys: `accounts`, `servers:<account>`, `segments sealed:<server>`
 *
 * Spec operator.health
 */

import type { FactOf } from '../../cluster/behaviour.ts'
import { SHARDS } from '../../cluster/id.ts'
import type { Finding } from '../../schemas/operator/health.ts'
import type { Contents } from '../content/contents.ts'
import { sealedSize } from '../content/frame.ts'
import { SealedSegments } from '../content/sealed/segment.ts'
import { openSegmentWhole } from '../content/sealed/whole.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'
import { DAY_MS, HOUR_MS } from '../state/calendar.ts'
import { sealedKey, segmentsKey } from '../state/keys.ts'
import { coldName, isWrittenOff, namedAtMs, type SealedRow, unpackSealed } from '../state/message/sealed.ts'
import type { SealingRing } from '../state/ring/sealing.ts'
import type { Reader } from '../views/key.ts'
import { readShardServers } from '../views/shard-servers.ts'
import { failed, warning, well } from './finding.ts'

/** Objects that are asked for, the newest ones, and how many at once. */
const ASKED_MAX = 500
const AT_ONCE = 16
/** The sweep offers every server's segments once a day. */
const LATE_MS = 3 * DAY_MS
const FROZEN_MS = HOUR_MS
const SEGMENTS_MAX = 10_000
const NAME = 'segments'
const DEEP = 'Run sendwright doctor --deep, then sendwright repair objects --from <backup>'

export interface LogSegmentsDeps {
  readonly read: Reader
  /** Null if all content is in Redis. */
  readonly contents: Contents | null
  readonly ring: SealingRing
  readonly config: Pick<Config, 'hotDays'>
  readonly nowMs: () => number
}

/** A segment of a server's log. */
interface Found {
  readonly shard: number
  readonly name: string
  readonly row: SealedRow | null
  /** When the next one began; null for the last one. */
  readonly endMs: number | null
}

/** Checks them. Rejects if the store does not answer. */
export async function examineSegments({ read, contents, ring, config, nowMs }: LogSegmentsDeps): Promise<Finding> {
  const { hotDays } = config
  if (contents === null || hotDays === null) {
    const why = contents === null ? 'content is in Redis' : 'HOT_DAYS is off'
    return well(NAME, `The message log stays in Redis for its whole retention, because ${why}`)
  }
  const shards = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => readShard(read, shard)))
  const all = shards.flat()
  const sealed = all.filter(({ row }) => row !== null && row.generation > 0) as (Found & { row: SealedRow })[]
  const lost = sealed.filter(({ row }) => isWrittenOff(row))
  const there = sealed.filter(({ row }) => !isWrittenOff(row)).sort((a, b) => b.row.lastMs - a.row.lastMs)
  const wrong = await firstUnreadable(contents, ring, there)
  if (wrong !== null) return failed(NAME, `A segment of the message log cannot be read: ${wrong}`, DEEP)
  if (lost.length > 0)
    return warning(
      NAME,
      `${lost.length} segments of the message log were written off, and their messages answer 503 data_damaged`,
      'They leave with their retention. If a backup has their objects, restore it beside this installation to read them',
    )
  const frozen = all.filter(({ row }) => row?.generation === 0 && nowMs() - namedAtMs(row) > FROZEN_MS)
  if (frozen.length > 0)
    return warning(
      NAME,
      `${frozen.length} segments of the message log have been frozen for over an hour: nothing is lost, but erasures wait for them`,
      'Check the log for "A segment of the log was not sealed", then run sendwright repair objects',
    )
  const lateMs = nowMs() - hotDays * DAY_MS - LATE_MS
  const waiting = all.filter(({ row, endMs }) => row === null && endMs !== null && endMs < lateMs)
  const messages = sealed.reduce((sum, { row }) => sum + row.messages, 0)
  const those = `${sealed.length} segments of the message log with ${messages} messages are in the content store`
  if (waiting.length > 0)
    return warning(
      NAME,
      `${those}; ${waiting.length} are past HOT_DAYS and still use memory`,
      'Messages of held accounts and destinations keep their segment in memory: release or end them. Otherwise check the log for "A segment of the log was not sealed"',
    )
  return well(NAME, those)
}

async function readShard(read: Reader, shard: number): Promise<Found[]> {
  const servers = await readShardServers(read, shard)
  if (servers === null) throw new Error('the store does not answer')
  if (servers.length === 0) return []
  const facts = servers.flatMap(({ serverId }) => [
    allOf(segmentsKey(shard, serverId)),
    { read: 'hash', key: sealedKey(shard, serverId) } satisfies FactOf<'hash'>,
  ])
  const seen = await read(shard, facts)
  if (seen === null) throw new Error('the store does not answer')
  return servers.flatMap((_, at) => {
    const listed = seen[at * 2] as readonly (readonly [string, number])[]
    const rows = seen[at * 2 + 1] as ReadonlyMap<string, string>
    return listed.map(([name], place): Found => {
      return { shard, name, row: unpackSealed(rows.get(name) ?? null), endMs: listed[place + 1]?.[1] ?? null }
    })
  })
}

function allOf(key: string): FactOf<'sorted'> {
  return { read: 'sorted', key, min: 0, max: Number.MAX_SAFE_INTEGER, count: SEGMENTS_MAX }
}

/** The first segment that cannot be read, and why; null if there is none. Takes them newest first. */
async function firstUnreadable(
  contents: Contents,
  ring: SealingRing,
  segments: readonly (Found & { readonly row: SealedRow })[],
): Promise<string | null> {
  const asked = segments.slice(0, ASKED_MAX)
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const found = await Promise.all(asked.slice(from, from + AT_ONCE).map((one) => sizeFault(contents, one)))
    const first = found.find((one) => one !== null)
    if (first !== undefined) return first
  }
  const [newest] = asked
  if (newest === undefined) return null
  const opened = new SealedSegments({ contents, ring, nowMs: monotonicMs }).open(newest.shard, newest.row)
  const damage = await openSegmentWhole(opened, newest.row)
  return damage === null ? null : `the object ${coldName(newest.shard, newest.row)} is ${damage}`
}

async function sizeFault(contents: Contents, { shard, row }: Found & { row: SealedRow }): Promise<string | null> {
  const name = coldName(shard, row)
  const front = await contents.front(name)
  if (front === 'gone') return `the object ${name} is missing`
  if (front === 'away') return `the content store did not answer for ${name}`
  return front.size === sealedSize(row.size) ? null : `the object ${name} has another size than its row states`
}
