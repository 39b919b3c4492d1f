/** pack-bounds - which messages a look at bodies reaches, and how many go into one pack. */
import t, { type Test } from 'tap'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { packDue } from '../../../src/actors/sealed/pack.ts'
import { packBodies } from '../../../src/content/sealed/pack.ts'
import type { ColdDeps } from '../../../src/content/sealed/written.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { DAY_MS, HOUR_MS } from '../../../src/state/calendar.ts'
import { unpackHead } from '../../../src/state/message/head.ts'
import { Cold } from '../../support/world/cold.ts'
import { type } from '../../support/world/cold-mail.ts'
import { deliverAll, mailTo, openWorld } from '../../support/world/erasure.ts'
import { ringOf } from '../../support/world/rings.ts'
import { acceptedIds, hmacOf, send } from '../../support/world/tenant.ts'
import type { World } from '../../support/world/turn.ts'

const OK = makeDelivered(250, '250 2.0.0 ok')

function open(t: Test) {
  const { world, tenant } = openWorld()
  const cold = new Cold(world)
  t.teardown(() => cold.close())
  return { world, tenant, cold }
}

function valuesOf(world: World, part: string): string[] {
  return [...world.keys.keys()].filter((key) => key.includes(part)).flatMap((key) => [...world.hash(key).values()])
}

/** Bodies that are still in Redis, and those that are in packs. */
function countsOf(world: World): { left: number; packed: number } {
  const packed = valuesOf(world, ':head:').filter((text) => unpackHead(text, 1).stored?.packed !== undefined)
  return { left: valuesOf(world, ':bodies:').length, packed: packed.length }
}

t.test('a look that ends within a day packs every segment of that day', async (t) => {
  const { world, tenant, cold } = open(t)
  const { accountId, live } = tenant
  for (let n = 0; n < 90; n += 1) {
    world.nowMs += 20_000
    acceptedIds(send(world, tenant, { messages: [mailTo('ada@example.net')] }, { type }))
  }
  deliverAll(world, OK)
  t.ok(cold.segmentsOf(live.serverId).length > 2)
  world.nowMs += 2 * HOUR_MS
  const look = packDue(accountId, { serverId: live.serverId, look: 0 }, 0)
  world.items.set(`${look.lane} ${look.item}`, { ...look, claims: 0 })
  await cold.settle()
  t.same(countsOf(world), { left: 0, packed: 90 })
})

t.test('a pack ends before the heads of one commit are many megabytes', async (t) => {
  const { world, tenant, cold } = open(t)
  const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`key${n}`, 'é'.repeat(500)]))
  for (let n = 0; n < 600; n += 1) {
    world.nowMs += 500
    acceptedIds(send(world, tenant, { messages: [{ ...mailTo('ada@example.net'), metadata }] }))
  }
  deliverAll(world, OK)
  world.nowMs += DAY_MS
  world.fireTimers()
  const claim = cold.claim('pack')
  const outcome = claim && (await cold.perform(claim))
  if (claim === null || outcome?.act !== 'pack' || outcome.result !== 'packed') throw new Error('Nothing is packed')
  t.ok(outcome.bodies.length >= 200 && outcome.bodies.length < 500, String(outcome.bodies.length))
  cold.end(claim, outcome)
  world.nowMs += 1_000
  await cold.settle()
  t.same(countsOf(world), { left: 0, packed: 600 })
})

t.test('few large bodies are read at once', async (t) => {
  const { world, tenant, cold } = open(t)
  for (let n = 0; n < 30; n += 1) {
    world.nowMs += 500
    acceptedIds(send(world, tenant, { messages: [mailTo('ada@example.net')] }))
  }
  for (const due of world.deliveries().filter(({ lane }) => lane.startsWith('deliver'))) {
    const claim = world.claim<AttemptJob>(prepareAttempt, due)
    if (claim === null) continue
    const { address } = claim.job.recipient
    const report = { address, sizeBytes: 2_000_000, retryAfterMs: null, hmac: () => hmacOf(address) }
    world.end(attemptOutcome, claim, reportOutcome(OK, report))
  }
  world.nowMs += DAY_MS
  world.fireTimers()
  const { job } = cold.claim('pack') ?? {}
  if (job?.act !== 'pack') throw new Error('Nothing is packed')
  let [reading, most] = [0, 0]
  const readBody: ColdDeps['readBody'] = async () => {
    reading += 1
    most = Math.max(most, reading)
    await new Promise(setImmediate)
    reading -= 1
    return { chunks: [Buffer.from('text')], isSliced: false }
  }
  const { read, contents, segments } = cold
  const deps = { read, contents, segments, readBody, ring: ringOf('cold'), nowMs: () => world.nowMs }
  t.match(await packBodies(deps, job), { result: 'packed', isEnd: true, bodies: { length: 30 } })
  t.equal(most, 3)
})
