/**
 * Again and again, at random, the service or its Redis is ended with SIGKILL under load and started again. No accepted
 * message is lost, no Idempotency-Key leads to two, counters are exact. `KILLS=50` asks for more, `SEED=n` for other
 * choices; `npm run chaos` runs longer.
 */
import t from 'tap'
import { startLoad } from '../../support/clients/ledger.ts'
import { SETTLED, settle } from '../../support/clients/settle.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const KILLS = Number(process.env.KILLS ?? 20)
const MESSAGES_BETWEEN = 20
const seed = Number(process.env.SEED ?? 1)

const scene = await startScene()
const { redis, settings, firstRun, end } = scene
const { testServer, account } = firstRun
let host: Host = scene.host
t.teardown(async () => {
  await host.kill('SIGKILL')
  await end()
})

t.test(`crash: ${KILLS} kills of service and Redis under load lose and double nothing [crash.kills]`, async (t) => {
  t.comment(`SEED=${seed}`)
  const random = chance(seed)
  const load = startLoad({
    port: Number(settings.HTTP_PORT),
    token: testServer.token,
    clients: 16,
    recipient: (n) => `person${n % 500}@example.com`,
  })
  const kills = { service: 0, redis: 0 }
  for (let n = 0; n < KILLS; n += 1) {
    // Every second one comes whether or not the service has done anything since the last.
    if (n % 2 === 0) await load.passes(MESSAGES_BETWEEN)
    await pause(100 + random() * 500)
    if (random() < 0.5) {
      kills.redis += 1
      await redis.kill('SIGKILL')
      await redis.restart()
    } else {
      kills.service += 1
      await host.kill('SIGKILL')
      host = await startHost(settings)
    }
    t.ok(host.isRunning(), 'the service runs')
  }
  const ledger = await load.end()
  const { serverId } = testServer
  const found = await settle(redis.socketPath, { serverId, accountId: account.accountId, ledger })
  t.comment(JSON.stringify({ kills, found, statuses: Object.fromEntries(ledger.statuses) }))
  // If kills follow each other faster than attempts end, the fifth claim ends a recipient. It is reported, not lost.
  t.match(found, SETTLED)
  t.same(ledger.falselyRefused, [], 'no message was refused and yet made')
  t.equal(found.logged, found.told, 'every message is in the log once')
  t.equal(found.counted, found.logged, 'and was counted once')
  t.ok(found.told > (KILLS / 2) * MESSAGES_BETWEEN, 'there was load')
  const wrong = ledger.refusals.filter(({ status }) => status !== 503)
  t.same(
    wrong.map(({ status, body }) => `${status} ${body}`),
    [],
    'no refusal but 503',
  )
  const unsaid = ledger.refusals.filter(({ status, headers }) => status === 503 && headers['retry-after'] === undefined)
  t.equal(unsaid.length, 0, 'each 503 says when to come back')
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** A small seeded generator (mulberry32), numbers in [0, 1). */
function chance(start: number): () => number {
  let state = start >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
