/**
 * walk-posts - responses of webhook receivers to events of erased mail are removed, and nothing else of a delivery.
 */
import t from 'tap'
import { WEBHOOK_SWEEP_TIMER, webhookSweep } from '../../../src/actors/webhook/sweep.ts'
import { UNCHECKED } from '../../../src/mail/authenticate/authentication.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/state/calendar.ts'
import type { WalkPlace } from '../../../src/state/erasure.ts'
import { blocksKey, queueKey, slicesKey } from '../../../src/state/keys.ts'
import { unpackDeliveries } from '../../../src/state/webhook/block.ts'
import { type DeliveryRecord, deadOps, deadRecord, recordOp } from '../../../src/state/webhook/delivery.ts'
import { formatItem } from '../../../src/state/webhook/item.ts'
import {
  deliverAll,
  eraseNow,
  lookAll,
  mailTo,
  openWorld,
  order,
  stateOf,
  stepOnce,
  walkOf,
  walkSteps,
} from '../../support/world/erasure.ts'
import { makeInboundStream, makeParsed, parseNext, receiveMail, SENDER } from '../../support/world/inbound.ts'
import { hmacOf, send, type Tenant } from '../../support/world/tenant.ts'
import type { World } from '../../support/world/turn.ts'
import { fire, queue, recordOf, seedWebhook, type Waiting, waiting } from '../../support/world/webhook-world.ts'

const ADA = 'ada@example.net'
const BOB = 'bob@example.org'
const FRESH: DeliveryRecord = {
  status: 'delivered',
  attempts: 1,
  lastStatusCode: 200,
  lastError: null,
  lastResponse: null,
  deliveredAtMs: null,
  nextAttemptAtMs: null,
  base: 0,
  failures: 0,
  queuedAtMs: null,
}

/** Sends a message to each of these addresses, delivers it and announces it. */
function tell(world: World, tenant: Tenant, ...addresses: string[]): void {
  for (const address of addresses) send(world, tenant, { messages: [mailTo(address)] })
  deliverAll(world, makeDelivered(250, '250 Ok'))
}

/** Stores a response for each of these; dead: the receiver accepted none of them. */
function answer(world: World, posts: readonly Waiting[], { dead = false } = {}): void {
  for (const post of posts) {
    const place = { shard: world.shard, ...post }
    const record = { ...FRESH, deliveredAtMs: world.nowMs, lastResponse: 'Ada, or Bob, has mail' }
    const item = formatItem(post)
    const ops = dead ? deadOps(place, { item, record: deadRecord(record, 'http_410') }) : [recordOp(place, record)]
    for (const op of ops) world.apply(op)
  }
}

const answersOf = (world: World, posts: readonly Waiting[]) =>
  posts.map((post) => recordOf(world, post, post.deliveryId).lastResponse)
const answered = (world: World, posts: readonly Waiting[]) =>
  answersOf(world, posts).filter((one) => one !== null).length

t.test(
  'walk-posts: answers about the person go, those about others stay [erasure.messages] [erasure.received]',
  async (t) => {
    const { world, tenant } = openWorld()
    for (const _ of [1, 2]) seedWebhook(world, tenant)
    const streamId = makeInboundStream(world, tenant)
    for (const address of [SENDER, BOB]) {
      receiveMail(world, tenant, { streamId, sender: { hmac: hmacOf(address), address } })
      parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
    }
    tell(world, tenant, ADA, BOB)
    const posts = waiting(world)
    t.equal(posts.length, 8, 'two webhooks hear of four mails')
    answer(world, posts)
    eraseNow(world, tenant, ADA)
    t.equal(answered(world, posts), 4, 'of both webhooks, sent and received')
    for (const post of posts)
      t.match(recordOf(world, post, post.deliveryId), { status: 'delivered', attempts: 1, lastStatusCode: 200 })
  },
)

t.test('walk-posts: a dead delivery that has left the queue by its age loses its response too', async (t) => {
  const { world, tenant } = openWorld()
  const webhook = seedWebhook(world, tenant)
  for (let minute = 0; minute < 9; minute += 1) {
    tell(world, tenant, ...Array.from({ length: 120 }, (_, n) => (n === 0 ? BOB : ADA)))
    world.nowMs += MINUTE_MS
  }
  const posts = waiting(world)
  t.equal(posts.length, 1_080, 'two steps of the walk do not reach the end')
  answer(world, posts, { dead: true })
  world.nowMs += 32 * DAY_MS
  fire(world, webhookSweep, `${WEBHOOK_SWEEP_TIMER}:${webhook.webhookId}`)
  t.same(world.stream(queueKey(world.shard, webhook.webhookId, posts[0]?.slice ?? '')), [], 'the queue has gone')
  t.match(eraseNow(world, tenant, ADA), { messages: 9 * 119 })
  t.equal(answered(world, posts), 9)
  t.match(recordOf(world, webhook, posts.at(-1)?.deliveryId ?? ''), { status: 'dead', lastError: 'http_410' })
})

/** Erases a person whose slice moves to blocks before a step of the walk. Returns the steps, and what blocks hold. */
function eraseWithBlocks(movesAt: number) {
  const { world, tenant } = openWorld()
  const { webhookId } = seedWebhook(world, tenant)
  for (let minute = 0; minute < 6; minute += 1) {
    tell(world, tenant, ...Array.from({ length: 120 }, (_, n) => (n === 0 ? BOB : ADA)))
    world.nowMs += MINUTE_MS
  }
  const posts = waiting(world)
  answer(world, posts)
  const slice = posts[0]?.slice ?? ''
  world.nowMs += 6 * DAY_MS
  const sweep = () => fire(world, webhookSweep, `${WEBHOOK_SWEEP_TIMER}:${webhookId}`)
  order(world, tenant, ADA)
  let steps = 0
  do {
    if (steps === movesAt) sweep()
    steps += 1
  } while (stepOnce(world))
  sweep()
  // By what is opened: a search finds no deflated text.
  const blocks = [...world.sorted(blocksKey(world.shard, webhookId, slice)).keys()]
  const opened = blocks.flatMap((block) => unpackDeliveries(slice, block))
  return { steps, opened, posts }
}

t.test('walk-posts: answers in blocks go, whenever deliveries move there [erasure.messages]', async (t) => {
  const { steps } = eraseWithBlocks(-1)
  for (const movesAt of [0, ...Array.from({ length: 8 }, (_, at) => steps - 8 + at)]) {
    const { opened, posts } = eraseWithBlocks(movesAt)
    t.equal(opened.length, posts.length)
    const answers = opened.filter(({ record }) => record.includes('Ada')).length
    t.equal(answers, 6, `moved before step ${movesAt} of ${steps}: those about another person stay`)
    t.ok(opened.every(({ record }) => record.startsWith('["v",1,200')))
  }
})

t.test(
  'walk-posts: received mail from the person, and mail whose header names the person once it was read',
  async (t) => {
    const { world, tenant } = openWorld()
    seedWebhook(world, tenant)
    const streamId = makeInboundStream(world, tenant)
    for (const [address, isWhole] of [
      [BOB, true],
      [ADA, true],
      [BOB, false],
    ] as const) {
      receiveMail(world, tenant, { streamId, sender: { hmac: hmacOf(address), address } })
      world.nowMs += 5 * MINUTE_MS
      // For the person's own mail the time of the check is known.
      const check = address === ADA ? { authentication: UNCHECKED, checkedAtMs: world.nowMs - 1_000 } : null
      parseNext(world, { result: 'parsed', parsed: makeParsed(world, { named: { hashes: '', isWhole }, check }) })
      world.nowMs += 20 * MINUTE_MS
    }
    const posts = waiting(world)
    answer(world, posts)
    const id = order(world, tenant, ADA)
    world.fireTimers()
    t.match(stateOf(world, id), { completedAtMs: null })
    t.same(
      answersOf(world, posts).map((one) => one === null),
      [false, false, false],
    )
    t.equal(lookAll(world, { result: 'named' }).length, 1)
    t.match(stateOf(world, id), { receivedMessages: 2, completedAtMs: world.nowMs })
    t.same(
      answersOf(world, posts).map((one) => one === null),
      [false, true, true],
    )
  },
)

t.test('walk-posts: only what was announced with events of the person is looked at', async (t) => {
  const { world, tenant } = openWorld()
  const steps = () => {
    order(world, tenant, ADA)
    return walkSteps(world).length
  }
  const none = steps()
  const { webhookId } = seedWebhook(world, tenant)
  const posts: Waiting[] = []
  for (let day = 0; day < 3; day += 1) {
    queue(world, webhookId, 1_200)
    if (day > 0) {
      world.nowMs += 5 * MINUTE_MS
      tell(world, tenant, ADA, BOB)
      posts.push(...waiting(world).slice(-2))
      world.nowMs += 61 * MINUTE_MS
      queue(world, webhookId, 1_200)
    }
    world.nowMs += DAY_MS
    if (day === 0) t.equal(steps(), none, 'nothing of the person is there')
  }
  answer(world, posts)
  const some = steps()
  t.same(
    answersOf(world, posts).map((one) => one === null),
    [true, false, true, false],
  )
  // For each of two spans: the open slice, a step in it, and its end. Before them a step in a segment.
  t.ok(some <= none + 2 * 3 + 3, `${some} steps, ${none} without`)
})

t.test('walk-posts: of very many events the nearest to each other are looked at together', async (t) => {
  const { world, tenant } = openWorld()
  seedWebhook(world, tenant)
  for (let n = 0; n < 210; n += 1) {
    tell(world, tenant, n % 10 === 0 ? BOB : ADA)
    tell(world, tenant, ADA)
    world.nowMs += 63 * MINUTE_MS
  }
  const posts = waiting(world)
  answer(world, posts)
  const id = order(world, tenant, ADA)
  const places: number[] = []
  while (stateOf(world, id).completedAtMs === null) {
    places.push(walkOf(world, id)?.place?.told?.length ?? 0)
    stepOnce(world)
  }
  t.equal(Math.max(...places), 200, 'what is kept of them is bounded')
  t.equal(answered(world, posts), 21)
})

// Places as earlier versions stored them: without spans, and with an entry of a slice in place of the span's number.
for (const phase of ['log', 'posts'] as const)
  t.test(`walk-posts: a walk that an earlier version brought to its ${phase} continues and ends`, async (t) => {
    const { world, tenant } = openWorld()
    const webhooks = [1, 2]
      .map(() => seedWebhook(world, tenant))
      .sort((one, other) => (one.webhookId < other.webhookId ? -1 : 1))
    tell(world, tenant, ADA, BOB)
    const posts = waiting(world)
    answer(world, posts)
    const id = order(world, tenant, ADA)
    const reached = () => walkOf(world, id)?.place
    while (reached()?.phase !== phase) stepOnce(world)
    const { told: _, ...before } = reached() as WalkPlace
    const [slice = '', segmentMs = 0] = [...world.sorted(slicesKey(world.shard, webhooks[0]?.webhookId ?? ''))][0] ?? []
    const inSlice = { segment: slice, segmentMs, after: `${webhooks[0]?.webhookId} -` }
    const place = phase === 'posts' ? { ...before, ...inSlice } : before
    world.counters.set(`erasure:${id}`, { ...walkOf(world, id), place })
    world.fireTimers()
    t.match(stateOf(world, id), { messages: 1, completedAtMs: world.nowMs })
    t.equal(answered(world, posts), 2, 'of both webhooks')
  })

t.test(
  'walk-posts: events that are announced long after the check of their sender, and ids ahead of the clock',
  async (t) => {
    const { world, tenant } = openWorld()
    const { webhookId } = seedWebhook(world, tenant)
    const streamId = makeInboundStream(world, tenant)
    receiveMail(world, tenant, { streamId, sender: { hmac: hmacOf(ADA), address: ADA } })
    const checkedAtMs = world.nowMs
    world.nowMs += 20 * HOUR_MS
    parseNext(world, {
      result: 'parsed',
      parsed: makeParsed(world, { check: { authentication: UNCHECKED, checkedAtMs } }),
    })
    world.nowMs += 10 * DAY_MS
    queue(world, webhookId, 1)
    world.nowMs -= 30 * MINUTE_MS
    tell(world, tenant, ADA, BOB)
    world.nowMs += DAY_MS
    const posts = waiting(world).filter(({ reference }) => reference.kind === 'inbound' || reference.kind === 'message')
    answer(world, posts)
    eraseNow(world, tenant, ADA)
    t.same(
      answersOf(world, posts).map((one) => one === null),
      [true, true, false],
    )
  },
)
