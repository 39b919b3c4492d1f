/**
 * A process of which one connection to the store is held or slow, while the others work: what its shards owe is served by
 * another one soon; a process that only listens says that it is not ready, and says that it is again once all is well.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { seedAccounts } from '../../bench/contestants/seed.ts'
import { type Flow, FREE, HELD, openValve, type Valve } from '../chaos/valve.ts'
import { postEmail } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { FLEET_SECRET, isReady, startFleet, type Vessel } from '../support/service/fleet.ts'

const SHARDS = 256
/** On a machine that does nothing else: 20 s and 5 s. */
const SERVED_MS_MAX = 40_000
const READY_MS_MAX = 20_000
const SLOW: Flow = { held: false, delayMs: 5_000 }
/** Shards move some at a time, twice a second. */
const CALM_MS = 1_500
/** Within ten minutes. */
const ILLNESSES_MAX = 3
const BODY = { from: 'you@simulator.test', to: ['ann@example.com'], subject: 'Hello', text: 'A text.' }

const dir = mkdtempSync(join(tmpdir(), 'sendwright-valve-'))
const store = { path: '' }
const valves = new Map<string, Valve>()
for (const name of ['actors-0', 'http-2']) valves.set(name, await openValve(join(dir, name), () => store.path))
const fleet = await startFleet(['actors', 'actors', 'http', 'http'], {
  address: (name, redis) => {
    store.path = redis.socketPath
    return valves.has(name) ? join(dir, name) : undefined
  },
})
const redis = new Redis({ path: fleet.redis.socketPath })
const [owner, , asker, other] = fleet.vessels as [Vessel, Vessel, Vessel, Vessel]
const tokens = await seedAccounts({
  socketPath: fleet.redis.socketPath,
  accounts: 16,
  over: 16,
  mode: 'test',
  secretKey: FLEET_SECRET,
})
t.teardown(async () => {
  for (const valve of valves.values()) valve.close()
  redis.disconnect()
  await fleet.end()
  rmSync(dir, { recursive: true, force: true })
})

const FAULTS: readonly (readonly [string, readonly string[], { toStore: Flow; fromStore: Flow }])[] = [
  ['reads of which the answers are held', ['read'], { toStore: FREE, fromStore: HELD }],
  ['commits that take five seconds', ['commit'], { toStore: FREE, fromStore: SLOW }],
  ['commits that are held', ['commit'], { toStore: HELD, fromStore: FREE }],
  ['views that are held', ['views'], { toStore: HELD, fromStore: HELD }],
]

let illnesses = 0
for (const [what, names, flows] of FAULTS)
  t.test(`crash: an owner with ${what}: others serve its shards soon [crash.half-dead]`, async (t) => {
    await balanced()
    const valve = valves.get('actors-0') as Valve
    const sinceMs = performance.now()
    valve.set({ names, severs: false, ...flows })
    await until(async () => (await heldBy(owner)) === 0, SERVED_MS_MAX)
    await until(() => allAccepted(), SERVED_MS_MAX)
    t.comment(`${what}: served by another after ${Math.round(performance.now() - sinceMs)} ms`)
    valve.set(null)
    illnesses = (illnesses + 1) % ILLNESSES_MAX
    if (illnesses > 0) t.ok(owner.host.isRunning(), 'it may become well again')
    else {
      t.equal(await owner.host.exited, 1, 'the third time ends the process')
      await fleet.start(owner)
    }
  })

const PARTS = ['commit', 'read', 'enqueue', 'told', 'views'] as const
for (const name of PARTS)
  t.test(
    `crash: who only listens, with ${name} held, is not ready, and is again afterwards [crash.half-dead]`,
    async (t) => {
      await balanced()
      await isReady(asker)
      await postEmail({ port: asker.httpPort, token: tokens[0] as string }, BODY, `ready-${name}`)
      const valve = valves.get('http-2') as Valve
      const sinceMs = performance.now()
      valve.set({ names: [name], severs: false, toStore: HELD, fromStore: FREE })
      await until(async () => !(await saysReady(asker)), READY_MS_MAX)
      const heldMs = Math.round(performance.now() - sinceMs)
      t.ok(await saysReady(other), 'the other one is')
      valve.set(null)
      const healedMs = performance.now()
      await until(() => saysReady(asker), READY_MS_MAX)
      t.comment(
        `${name}: not ready after ${heldMs} ms, ready again after ${Math.round(performance.now() - healedMs)} ms`,
      )
    },
  )

/** Each of the two owners holds its part of the shards, and none moves any more. */
async function balanced(): Promise<void> {
  await Promise.all(fleet.vessels.map(isReady))
  let before = -1
  await until(async () => {
    const held = await heldBy(owner)
    const isCalm = held === before && held > SHARDS / 4
    before = held
    if (!isCalm) await pause(CALM_MS)
    return isCalm
  }, 60_000)
}

async function heldBy({ host }: Vessel): Promise<number> {
  const records = Object.entries(await redis.hgetall('{cl}:workers'))
  const mine = records.find(([, text]) => (JSON.parse(text) as { pid: number }).pid === host.pid)?.[0]
  const pipeline = redis.pipeline()
  for (let shard = 0; shard < SHARDS; shard += 1) pipeline.hget(`{s${String(shard).padStart(3, '0')}}:meta`, 'owner')
  const owners = ((await pipeline.exec()) ?? []).map(([, one]) => String(one))
  return owners.filter((one) => one === mine).length
}

/** Every account's send is accepted, asked at the process that nothing befalls. */
async function allAccepted(): Promise<boolean> {
  const answers = await Promise.all(
    tokens.map((token, n) => postEmail({ port: other.httpPort, token }, BODY, `served-${n}-${performance.now()}`)),
  )
  return answers.every((answer) => answer?.status === 200)
}

async function saysReady({ operatorPort }: Vessel): Promise<boolean> {
  const url = `http://127.0.0.1:${operatorPort}/readyz`
  return (await fetch(url, { headers: { connection: 'close' } }).catch(() => null))?.status === 200
}
