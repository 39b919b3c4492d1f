/**
 * Limits are exact on all processes: 64 clients send to two listening processes while two others decide, and exactly
 * the number of messages of the minute's limit is accepted. `LIMITS=n` sets the number of rounds.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { seedAccounts } from '../../../bench/contestants/seed.ts'
import { postEmail } from '../../support/clients/ledger.ts'
import { FLEET_SECRET, startFleet } from '../../support/service/fleet.ts'

const ROUNDS = Number(process.env.LIMITS ?? 2)
const CLIENTS = 64
const LIMIT = 300
const REQUESTS = 360
const TRIES_MAX = 8
/** Rounds take turns on this many shards, so that each of the two deciding processes owns some of them. */
const SHARDS = 16
/** A round that would not end within its minute begins with the next one. */
const ROUND_MS_MAX = 15_000
const MINUTE_MS = 60_000
/** The clock of a process may be off the store's by less than this. */
const CLOCK_MS = 1_000

t.setTimeout(600_000 + ROUNDS * 60_000)
const fleet = await startFleet(['actors', 'actors', 'http', 'http'])
const redis = new Redis({ path: fleet.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await fleet.end()
})

t.test(`limit: ${CLIENTS} clients in 4 processes against ${LIMIT} a minute, exactly [crash.limit]`, async (t) => {
  const { socketPath } = fleet.redis
  const keys = await seedAccounts({
    socketPath,
    accounts: ROUNDS,
    mode: 'test',
    secretKey: FLEET_SECRET,
    perMinute: LIMIT,
    over: SHARDS,
  })
  const results: string[] = []
  for (const token of keys) results.push(await round(token))
  t.same(new Set(results), new Set([`${LIMIT} accepted, ${REQUESTS - LIMIT} refused`]))
  t.comment(`${results.length} rounds`)
})

/**
 * Sends all requests of one account within a minute. Starts again in the next minute if they were spread over two, or
 * if a request was not decided in time.
 */
async function round(token: string): Promise<string> {
  const ports = fleet.with('http').map(({ httpPort }) => httpPort)
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const atMs = (await storeMs()) % MINUTE_MS
    const isNext = tries > 0 || MINUTE_MS - atMs < ROUND_MS_MAX
    await pause(Math.max(0, (isNext ? MINUTE_MS : 0) + CLOCK_MS - atMs))
    const beganAtMs = await storeMs()
    const statuses = new Map<number, number>()
    let sent = 0
    const client = async (n: number): Promise<void> => {
      while (sent < REQUESTS) {
        sent += 1
        const body = { from: 'you@simulator.test', to: ['one@example.com'], subject: 'Hello', text: 'x' }
        const answer = await postEmail({ port: ports[n % ports.length] as number, token }, body, null)
        statuses.set(answer?.status ?? 0, (statuses.get(answer?.status ?? 0) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, n) => client(n)))
    const decided = (statuses.get(200) ?? 0) + (statuses.get(429) ?? 0)
    const isOneMinute = Math.floor(beganAtMs / MINUTE_MS) === Math.floor(((await storeMs()) + CLOCK_MS) / MINUTE_MS)
    if (isOneMinute && (statuses.get(200) ?? 0) > LIMIT) return 'more than the limit'
    if (decided === REQUESTS && isOneMinute)
      return `${statuses.get(200) ?? 0} accepted, ${statuses.get(429) ?? 0} refused`
    t.comment(`once more: ${isOneMinute ? '' : 'two minutes, '}${JSON.stringify(Object.fromEntries(statuses))}`)
  }
  return 'no round was decided within one minute'
}

async function storeMs(): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Number(micros) / 1000
}
