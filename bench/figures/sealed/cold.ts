/**
 * cold - a store of thirteen months: filled by the product with a moved clock, and then copied, key by key, to what
 * 13 million messages, 1.3 million addresses and one webhook take
 *
 * Copied keys have other names, so that the product does not see them: they count for memory, for rewrites and for
 * backups. Reading, searching, erasing and starting use the messages that were really sent.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { unpackSealed } from '../../../src/state/message/sealed.ts'
import { ROOT } from '../../../test/support/machine/root.ts'
import { until } from '../../../test/support/machine/until.ts'
import { pace } from '../../load/pace.ts'
import { keysOf, measureFamilies, readInfo } from '../../store.ts'
import { formatNumber, formatTable } from '../../table.ts'
import { FEW, type Filled, fillPlace, sealedAll } from './cold-fill.ts'
import { watchMemory } from './cold-memory.ts'
import { type ColdPlace, isFilled, openPlace } from './cold-place.ts'

const WAIT_MS = 900_000
const MB = 1_000_000
/** What the store is copied to. */
const GOAL = { messages: 13_000_000, hot: 460_000, bodies: 67_000, deliveries: 1_000_000, persons: 1_300_000 }
const HOT = ['log', 'head', 'status', 'by-person', 'by-tag']
const RATE = 50
const RUN_SECONDS = 10

/** Fills a store if it was not, copies it, measures and prints. */
export async function benchCold({ messages }: { messages: number }): Promise<void> {
  const dir = join(ROOT, 'data', `cold-${messages}`)
  const say = (line: string): void => console.log(line)
  if (!isFilled(join(dir, 'd'))) {
    const place = await openPlace(join(dir, 'd'))
    await fillPlace(place, messages, say)
    await place.close()
  }
  const filled = JSON.parse(readFileSync(join(dir, 'd', 'filled.json'), 'utf8')) as Filled
  rmSync(join(dir, 'run'), { recursive: true, force: true })
  cpSync(join(dir, 'd'), join(dir, 'run'), { recursive: true })
  const place = await openPlace(join(dir, 'run'))
  try {
    await measure(place, filled, say)
  } finally {
    await place.close()
  }
}

async function measure(place: ColdPlace, filled: Filled, say: (line: string) => void): Promise<void> {
  place.clock.moveTo(filled.day)
  const first = await place.start()
  const redis = place.redis()
  await sealedAll(place)
  const rows = await sealedRows(redis)
  const sealed = rows.reduce((sum, row) => sum + row.messages, 0)
  say(`started in ${first.toFixed(2)} s; ${rows.length} segments, ${sealed} messages sealed`)
  await printFamilies(redis, { ...filled, sealed }, say)
  const disk = diskBytes(join(place.dir, 'content'), '/cold/')
  say(
    `disk: ${formatNumber(disk / sealed, 1)} bytes a sealed message, packs ${formatNumber(diskBytes(join(place.dir, 'content'), '/out/') / MB)} MB`,
  )
  await useMessages(place, filled, say)
  await copyKeys(redis, sealed, say)
  await printMemory(redis, 'copied to 13 million', say)
  await place.stop()
  say(`started again with all of it in ${(await place.start()).toFixed(2)} s`)
  await together(place, filled, say)
}

/** Reads, searches and erases. */
async function useMessages(place: ColdPlace, { few, many }: Filled, say: (line: string) => void): Promise<void> {
  const { liveServer, account } = place.firstRun()
  const search = (recipient: string) =>
    place.call<{ messages: { messageId: string }[] }>('POST /v1/messages/search', liveServer.token, {
      recipient,
      limit: 100,
    })
  await search('nobody@example.com')
  const timed = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    const [before, startedAtMs] = [cpuMs(place.pid()), performance.now()]
    await act()
    say(
      `${what}: ${formatNumber(cpuMs(place.pid()) - before)} ms of processor, ${formatNumber(performance.now() - startedAtMs)} ms`,
    )
  }
  let ids: string[] = []
  await timed(`search, ${FEW} messages, first`, async () => {
    ids = (await search(few)).messages.map(({ messageId }) => messageId)
  })
  say(`found: ${ids.length}`)
  await timed('20 searches, tails known', async () => {
    for (let n = 0; n < 20; n += 1) await search(few)
  })
  await timed('20 searches for an address without mail', async () => {
    for (let n = 0; n < 20; n += 1) await search('nobody@example.com')
  })
  await timed('100 messages read', async () => {
    for (let n = 0; n < 100; n += 1) await place.call(`GET /v1/messages/${ids[n % ids.length]}`, liveServer.token)
  })
  for (const address of [few, many])
    await timed(`erasure of ${address}`, async () => {
      const { erasureId } = await place.call<{ erasureId: string }>('POST /v1/erasures', account.token, { address })
      const done = await until(async () => {
        const seen = await place.call<{ status: string; messages: number }>(
          `GET /v1/erasures/${erasureId}`,
          account.token,
        )
        return seen.status === 'done' ? seen : null
      }, WAIT_MS)
      say(`messages erased: ${done.messages}`)
    })
}

/** A rewrite of the file, a backup and sealing at once, beside other senders. */
async function together(place: ColdPlace, { day }: Filled, say: (line: string) => void): Promise<void> {
  const { token } = place.firstRun().testServer
  const target = { port: Number(place.environment.HTTP_PORT), keys: [token], domain: 'simulator.test' }
  const load = async () => (await pace(target, { rate: RATE, count: RATE * RUN_SECONDS })).p99Ms
  const quiet = [await load(), await load(), await load()].sort((a, b) => a - b)[1] as number
  place.clock.moveTo(day + 8)
  const memory = watchMemory([place.pid(), place.redisPid()])
  const before = (await sealedRows(place.redis())).length
  await place.redis().bgrewriteaof()
  const backup = join(place.dir, '..', 'backup')
  rmSync(backup, { recursive: true, force: true })
  const child = spawn(process.execPath, [join(ROOT, 'build/src/cli/main.js'), 'backup', backup, '--json'], {
    env: place.environment,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  memory.add(child.pid as number)
  const ended = once(child, 'exit')
  const busy: number[] = []
  let isDone = false
  void ended.then(() => {
    isDone = true
  })
  do busy.push(await load())
  while (!isDone)
  await sealedAll(place)
  const peak = memory.stop()
  const after = (await sealedRows(place.redis())).length
  say(`p99 quiet ${formatNumber(quiet, 1)} ms, together ${busy.map((ms) => formatNumber(ms, 1)).join(', ')} ms`)
  say(`sealed meanwhile: ${after - before} segments; backup there: ${existsSync(backup)}`)
  say(`peak of all processes (PSS): ${formatNumber(peak / MB)} MB`)
  await printMemory(place.redis(), 'afterwards', say)
}

/** Copies keys by DUMP and RESTORE until each family has what 13 million messages have. */
async function copyKeys(redis: Redis, sealed: number, say: (line: string) => void): Promise<void> {
  const families = await keysByFamily(redis)
  const fields = async (name: string): Promise<number> => {
    let sum = 0
    for (const key of families.get(name) ?? []) sum += await redis.hlen(key)
    return sum
  }
  const deliveries = await fields('delivery')
  const copies = new Map<string, number>([
    ['sealed', GOAL.messages / sealed],
    ['sealed-persons', GOAL.messages / sealed],
    ['person', GOAL.persons / Math.max(1, (await fields('person')) / 2)],
    ['delivery', GOAL.deliveries / Math.max(1, deliveries)],
    ['queue', GOAL.deliveries / Math.max(1, deliveries)],
    ['bodies', GOAL.bodies / Math.max(1, await fields('bodies'))],
    ...HOT.map((name) => [name, 0] as const),
  ])
  const heads = await fields('head')
  for (const name of HOT) copies.set(name, GOAL.hot / Math.max(1, heads))
  for (const [name, times] of copies) {
    say(`copy ${name}: ${families.get(name)?.length ?? 0} keys x ${times.toFixed(1)}`)
    for (const key of families.get(name) ?? []) {
      const dump = await redis.dumpBuffer(key)
      if (dump === null) continue
      const whole = Math.round(times) - 1
      for (let copy = 0; copy < whole; copy += 1)
        await redis.restore(`{s001}:copied-${name}:${copy}:${key}`, 0, dump as never)
    }
  }
}

async function keysByFamily(redis: Redis): Promise<Map<string, string[]>> {
  const families = new Map<string, string[]>()
  for (const key of await keysOf(redis, '{s*')) {
    const name = key.split(':')[1] ?? ''
    const known = families.get(name)
    if (known === undefined) families.set(name, [key])
    else known.push(key)
  }
  return families
}

async function sealedRows(redis: Redis) {
  const rows = []
  for (const key of await keysOf(redis, '{s*}:sealed:*'))
    for (const text of await redis.hvals(key)) rows.push(unpackSealed(text))
  return rows.flatMap((row) => (row !== null && row.generation > 0 ? [row] : []))
}

async function printFamilies(
  redis: Redis,
  { messages, sealed }: Filled & { readonly sealed: number },
  say: (line: string) => void,
): Promise<void> {
  const families = [...(await measureFamilies(redis))].sort(([, one], [, other]) => other.bytes - one.bytes)
  say(`${formatNumber(messages)} messages, ${formatNumber(sealed)} sealed`)
  const rows = families
    .slice(0, 16)
    .map(([name, { keys, bytes }]) => [
      name,
      formatNumber(keys),
      formatNumber(bytes / MB, 2),
      formatNumber(bytes / messages, 1),
    ])
  say(formatTable([['family', 'keys', 'MB', 'bytes a message'], ...rows]))
  const resident = families
    .filter(([name]) => name === 'sealed' || name === 'sealed-persons' || name === 'recalled')
    .reduce((sum, [, { bytes }]) => sum + bytes, 0)
  say(`Redis, bytes a sealed message: ${formatNumber(resident / sealed, 2)}`)
  await printMemory(redis, 'as filled', say)
}

async function printMemory(redis: Redis, when: string, say: (line: string) => void): Promise<void> {
  const dataset = await readInfo(redis, 'memory', 'used_memory_dataset')
  const resident = await readInfo(redis, 'memory', 'used_memory_rss')
  say(`${when}: dataset ${formatNumber(dataset / MB)} MB, Redis resident ${formatNumber(resident / MB)} MB`)
}

/** Milliseconds of processor that a process and its threads have used. */
function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function diskBytes(folder: string, part: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.includes(part))
    .map((name) => statSync(join(folder, name)))
    .reduce((sum, one) => sum + (one.isFile() ? one.size : 0), 0)
}
