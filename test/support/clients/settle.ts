/** settle - what must hold once a load has ended and everything has calmed down, read from API and store alone. */
import { Redis } from 'ioredis'
import { withoutSum } from '../../../cluster/sum.ts'
import { until } from '../machine/until.ts'
import type { Ledger } from './ledger.ts'

const SETTLE_MS_MAX = 240_000
const SHOWN_MAX = 3
const CLAIMS_MAX = 5

/** The required findings, whatever was killed. */
export const SETTLED = { doubled: 0, lost: 0, unclear: 0, miscounted: 0, torn: 0, open: 0 }

export interface Found {
  /** Messages in the log. */
  readonly logged: number
  /** Distinct messages in the clients' answers. */
  readonly told: number
  /** Keys whose answers named more than one message, or none. */
  readonly doubled: number
  /** Messages in some client's answer that are not in the log. */
  readonly lost: number
  /** Recipients counted this month. */
  readonly counted: number
  /** By how many recipients the server's figures, accepted and delivered, differ from its log. */
  readonly miscounted: number
  /** Recipients whose events are not one `delivered`. */
  readonly unclear: number
  /** Recipients that were given up: five times a process died that had their attempt under way. */
  readonly abandoned: number
  /** Some of the unclear ones, as they are stored. */
  readonly unclearOnes: readonly string[]
  /** Shards whose journal and sequence number disagree. */
  readonly torn: number
  /** Items still claimed or waiting, timers left out. */
  readonly open: number
}

export interface SettleOptions {
  readonly serverId: string
  readonly accountId: string
  readonly ledger: Ledger
  /** Whether it is a live server. */
  readonly live?: boolean
}

/** Waits until nothing is open, then compares the store with the ledger of a server's messages. */
export async function settle(
  socketPath: string,
  { serverId, accountId, ledger, live = false }: SettleOptions,
): Promise<Found> {
  const redis = new Redis({ path: socketPath })
  try {
    const [tag] = (await redis.keys(`*:server:${serverId}`)).map((key) => key.slice(0, 6))
    await until(async () => (await openItems(redis, String(tag))) === 0, SETTLE_MS_MAX)
    const logged = await logOf(redis, `${tag}:log:${serverId}:*`)
    const ids = new Set([...ledger.told.values()].flatMap((told) => [...told]))
    const counters = parse((await redis.hget(`${tag}:counters`, `account:${accountId}`)) ?? '{}')
    const unclear = await unclearOf(redis, `${tag}:log:${serverId}:*`)
    const abandoned = unclear.filter(isAbandoned)
    return {
      logged: logged.size,
      told: ids.size,
      doubled: [...ledger.told.values()].filter(({ size }) => size !== 1).length,
      lost: [...ids].filter((id) => !logged.has(id)).length,
      counted: countOf(live ? counters.month : counters.testMonth),
      miscounted: await miscountedOf(redis, String(tag), serverId),
      unclear: unclear.length - abandoned.length,
      abandoned: abandoned.length,
      unclearOnes: unclear.filter((one) => !abandoned.includes(one)).slice(0, SHOWN_MAX),
      torn: await tornOf(redis),
      open: await openItems(redis, String(tag)),
    }
  } finally {
    redis.disconnect()
  }
}

/** Ids of all messages in all logs. */
export function messagesLogged(redis: Redis): Promise<Set<string>> {
  return logOf(redis, '*:log:*')
}

/** Recipients of all messages without exactly one `delivered`: the abandoned ones, and all others. */
export async function uncertainRecipients(redis: Redis): Promise<{ unclear: string[]; abandoned: string[] }> {
  const all = await unclearOf(redis, '*:log:*')
  return { unclear: all.filter((one) => !isAbandoned(one)), abandoned: all.filter(isAbandoned) }
}

/** Shards whose journal and sequence number disagree. */
export function tornShards(redis: Redis): Promise<number> {
  return tornOf(redis)
}

/** The count of a monthly counter in its two periods. */
function countOf(period: readonly number[] | undefined): number {
  return (period?.[1] ?? 0) + (period?.[2] ?? 0)
}

async function openItems(redis: Redis, tag: string): Promise<number> {
  const lanes = (await redis.keys(`${tag}:due:*`)).filter((key) => key !== `${tag}:due:timers`)
  const waiting = await Promise.all(lanes.map((lane) => redis.zcard(lane)))
  return waiting.reduce((sum, count) => sum + count, await redis.hlen(`${tag}:claims`))
}

async function logOf(redis: Redis, pattern: string): Promise<Set<string>> {
  const ids = new Set<string>()
  for (const key of await redis.keys(pattern))
    for (const [id] of await redis.xrange(key, '-', '+')) ids.add(uuidOf(id, Number(key.slice(2, 5))))
  return ids
}

/** The object id of a log entry, computed apart from the product's own code. */
function uuidOf(entryId: string, shard: number): string {
  const [ms, low] = entryId.split('-') as [string, string]
  const tail = (BigInt(low) | (2n << 62n)).toString(16).padStart(16, '0')
  const head = Number(ms).toString(16).padStart(12, '0')
  const third = `7${shard.toString(16).padStart(3, '0')}`
  return `${head.slice(0, 8)}-${head.slice(8)}-${third}-${tail.slice(0, 4)}-${tail.slice(4)}`
}

/** Their stored form, which holds no address. A recipient in the log without a row was never attempted. */
async function unclearOf(redis: Redis, pattern: string): Promise<string[]> {
  const unclear: string[] = []
  for (const key of await redis.keys(pattern)) {
    const rows = Object.values(await redis.hgetall(key.replace(':log:', ':status:')))
    for (const packed of rows) {
      const events = (parse(packed) as unknown[]).filter(Array.isArray)
      if (events.filter(([letter]) => letter === 'd').length !== 1) unclear.push(packed)
    }
    const named = await recipientsOf(redis, key)
    for (let n = rows.length; n < named; n += 1) unclear.push('no row')
    for (let n = named; n < rows.length; n += 1) unclear.push('a row of nobody')
  }
  return unclear
}

/** A packed row. */
// biome-ignore lint/suspicious/noExplicitAny: the caller knows the row.
function parse(packed: string): any {
  return JSON.parse(withoutSum(packed, 'row'))
}

type Hour = [hour: number, streams: Record<string, number[]>]

/** By how much figures and log of a server differ, and the figures of all streams from those of each. */
async function miscountedOf(redis: Redis, tag: string, serverId: string): Promise<number> {
  const owners = [`server:${serverId}`, `hour:${serverId}`]
  const [server, hour] = (await redis.hmget(`${tag}:counters`, ...owners)).map((text) => parse(text ?? '{}'))
  let [accepted, delivered, apart] = [0, 0, 0]
  for (const running of [server.hour, hour] as (Hour | undefined)[])
    for (const row of Object.values(running?.[1] ?? {})) {
      accepted += row[0] ?? 0
      delivered += row[1] ?? 0
    }
  for (const key of await redis.keys(`${tag}:stats:${serverId}:*`))
    for (const [field, text] of Object.entries(await redis.hgetall(key)))
      for (const [, taken = 0, gone = 0] of JSON.parse(text) as number[][]) {
        const sign = field.startsWith('*') ? -1 : 1
        apart += sign * (taken + gone)
        if (sign === 1) accepted += taken
        if (sign === 1) delivered += gone
      }
  let [named, ended] = [0, 0]
  for (const key of await redis.keys(`${tag}:log:${serverId}:*`)) {
    named += await recipientsOf(redis, key)
    for (const packed of Object.values(await redis.hgetall(key.replace(':log:', ':status:'))))
      if ((parse(packed) as unknown[]).some((event) => Array.isArray(event) && event[0] === 'd')) ended += 1
  }
  const grouped = await deliveredGroups(redis, tag, serverId)
  const outside = ['s', 'm'].map((letter) => Math.abs((grouped.get(letter) ?? 0) - ended))
  return [accepted - named, delivered - ended, apart, ...outside].reduce((sum, by) => sum + Math.abs(by), 0)
}

/** Deliveries of a server by the letter of their groups: sites and streams have every one of them. */
async function deliveredGroups(redis: Redis, tag: string, serverId: string): Promise<Map<string, number>> {
  const sums = new Map<string, number>()
  const add = (letter: string, row: readonly number[]) => sums.set(letter, (sums.get(letter) ?? 0) + (row[0] ?? 0))
  const running = parse((await redis.hget(`${tag}:counters`, `groups:${serverId}`)) ?? '[0,{}]') as Hour
  for (const [group, row] of Object.entries(running[1])) add(group.slice(0, 1), row)
  for (const key of await redis.keys(`${tag}:group-days:${serverId}:*`))
    for (const [field, text] of Object.entries(await redis.hgetall(key)))
      for (const row of Object.values(JSON.parse(text) as Record<string, number[]>)) add(field.slice(0, 1), row)
  return sums
}

/** Recipients that a log names. */
async function recipientsOf(redis: Redis, key: string): Promise<number> {
  let count = 0
  for (const [, [, packed = '[]']] of await redis.xrange(key, '-', '+')) {
    const [, , , numbers] = parse(packed) as [string, unknown, number, number[]]
    count += numbers.length
  }
  return count
}

/** Five claims without an outcome, whose one event says that the item failed. */
function isAbandoned(packed: string): boolean {
  if (!packed.startsWith('[')) return false
  const [attempts, , ...rest] = parse(packed) as [number, number, ...unknown[]]
  const letters = rest.filter(Array.isArray).map(([letter]) => letter)
  return attempts === CLAIMS_MAX && letters.join('') === 'f'
}

async function tornOf(redis: Redis): Promise<number> {
  let torn = 0
  for (const key of await redis.keys('*:meta')) {
    const [seq, topId] = await endsOf(redis, key)
    if (seq > 0 && topId !== `${seq}-0`) torn += 1
  }
  return torn
}

/**
 * A shard's sequence number and its journal's last id, read at once, because its owner may commit between two reads.
 */
async function endsOf(redis: Redis, key: string): Promise<[seq: number, topId: string | undefined]> {
  const journal = key.replace(':meta', ':journal')
  const answers = await redis.multi().hget(key, 'seq').xrevrange(journal, '+', '-', 'COUNT', 1).exec()
  const [seq, top] = (answers ?? []).map(([error, value]) => {
    if (error !== null) throw error
    return value
  }) as [string | null, [id: string, fields: string[]][]]
  return [Number(seq ?? 0), top[0]?.[0]]
}
