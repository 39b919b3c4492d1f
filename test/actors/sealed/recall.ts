/** recall - a click, a complaint and a bounce of a sealed message count as those of any other. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { unsubscribe } from '../../../src/actors/message/unsubscribe.ts'
import { UNDO_MS } from '../../../src/actors/suppression/click.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { headKey, statusKey } from '../../../src/state/keys.ts'
import { packHead, unpackHead } from '../../../src/state/message/head.ts'
import { unpackStatus } from '../../../src/state/message/status.ts'
import { withGeneration, withNewestSealing, withoutFormer } from '../../../src/state/ring/ring.ts'
import { openMailKey, wrapMailKey } from '../../../src/state/ring/sealing.ts'
import { Cold } from '../../support/world/cold.ts'
import { DAY_MS } from '../../support/world/cold-mail.ts'
import { entryOf } from '../../support/world/suppression.ts'
import {
  acceptedIds,
  changeState,
  hmacOf,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const ADA = 'ada@example.net'
const BOB = 'bob@example.net'
const SEGMENT = '202611-0-1'
const AWAY = { act: 'recall', result: 'away' } as const

interface Setting {
  readonly world: World
  readonly tenant: Tenant
  readonly cold: Cold
  readonly messageId: string
  readonly click: { readonly item: string; readonly hmac: string; readonly source: 'link' }
}

/** A message to Ada and Bob on a broadcast stream, in a segment that may be sealed. */
function begin(t: Test): Setting {
  const world = new World(Date.UTC(2026, 10, 30, 12))
  const tenant = makeTenant(world)
  const cold = new Cold(world)
  t.teardown(() => cold.close())
  seedWebhook(world, tenant, { streamId: tenant.live.streamId })
  changeState(world, 'stream', tenant.live.streamId, { kind: 'broadcast', isDefault: false })
  const { streamId } = tenant.live
  const sendTo = (addresses: readonly string[]): string => {
    const recipients = addresses.map((address) => makeRecipient(address))
    return acceptedIds(send(world, tenant, { messages: [makeItem({ streamId, recipients })] }))[0] as string
  }
  const messageId = sendTo([ADA, BOB])
  const items: string[] = []
  for (const due of world.deliveries()) {
    const claim = world.claim<AttemptJob>(prepareAttempt, due)
    if (claim === null) continue
    items.push(claim.item)
    const report = { address: claim.job.recipient.address, sizeBytes: 900, retryAfterMs: null, hmac: () => '' }
    world.end(attemptOutcome, claim, reportOutcome(makeDelivered(250, '250 Ok'), report))
  }
  world.nowMs += DAY_MS
  sendTo([BOB])
  world.nowMs += 8 * DAY_MS
  return { world, tenant, cold, messageId, click: { item: items[0] as string, hmac: hmacOf(ADA), source: 'link' } }
}

async function seal({ world, cold, tenant }: Setting): Promise<void> {
  world.fireTimers()
  await cold.settle()
  if (cold.row(tenant.live.serverId, SEGMENT)?.generation !== 1) throw new Error('It is not sealed')
}

function eventsOf({ world, tenant, messageId }: Setting, recipient = 0): string[] {
  const field = recipient === 0 ? shortId(messageId) : `${shortId(messageId)}.${recipient}`
  const row = world.hash(statusKey(world.shard, tenant.live.serverId, SEGMENT)).get(field) ?? null
  return unpackStatus(row, msOf(messageId)).events.map(({ event }) => event)
}

function later(world: World, ms: number): void {
  world.nowMs += ms
  world.fireTimers()
}

const toldOf = ({ world }: Setting, event: string): number =>
  waiting(world).filter((item) => JSON.stringify(item).includes(event)).length

t.test('a click on the link of a sealed message counts a minute later, once', async (t) => {
  const setting = begin(t)
  const { world, tenant, cold, click } = setting
  await seal(setting)
  t.same(world.run(unsubscribe, click), { kind: 'clicked' })
  t.same(await cold.settle(), ['recall found'])
  t.same(world.run(unsubscribe, click), { kind: 'clicked' })
  t.same(await cold.settle(), [], 'it is recalled once')
  later(world, UNDO_MS)
  t.match(entryOf(world, tenant, ADA), { reason: 'unsubscribe' })
  t.same(eventsOf(setting), ['delivered', 'unsubscribed'])
  t.same(eventsOf(setting, 1), ['delivered'], 'Bob clicked nothing')
  t.equal(toldOf(setting, 'unsubscribed'), 1, 'a webhook of the stream is told')
})

t.test('a message that is recalled in a rotation has its key under the one that seals [secret.rotate]', async (t) => {
  const setting = begin(t)
  const { world, tenant, cold, click, messageId } = setting
  const heads = () => world.hash(headKey(world.shard, tenant.live.serverId, SEGMENT)) as Map<string, string>
  const mailKey = randomBytes(32)
  const stored = { key: wrapMailKey(cold.ring, mailKey), body: true, files: false }
  const head = unpackHead(heads().get(shortId(messageId)) as string, 2)
  heads().set(shortId(messageId), packHead({ ...head, stored }))
  await seal(setting)
  world.run(unsubscribe, click)
  cold.ring.replace(withNewestSealing(withGeneration(cold.ring.keys, randomBytes(64))))
  t.same(await cold.settle(), ['recall found'])
  cold.ring.replace(withoutFormer(cold.ring.keys))
  cold.ring.forget()
  const { stored: now } = unpackHead(heads().get(shortId(messageId)) as string, 2)
  t.same(openMailKey(cold.ring, now?.key as string), mailKey, 'it opens once the former key is gone')
})

t.test('a click waits for a content store that is away', async (t) => {
  const setting = begin(t)
  const { world, tenant, cold, click } = setting
  await seal(setting)
  world.run(unsubscribe, click)
  const claim = cold.claim('recall')
  if (claim === null) throw new Error('Nothing is recalled')
  cold.end(claim, AWAY)
  later(world, UNDO_MS)
  t.equal(entryOf(world, tenant, ADA), null)
  await cold.settle()
  later(world, 10_000)
  t.match(entryOf(world, tenant, ADA), { reason: 'unsubscribe' })
  t.same(eventsOf(setting), ['delivered', 'unsubscribed'])
})

t.test('a segment that is sealed within the minute of a click gives the message back', async (t) => {
  const setting = begin(t)
  const { world, tenant, cold, click } = setting
  world.run(unsubscribe, click)
  await seal(setting)
  t.same(eventsOf(setting), [], 'it has left Redis')
  later(world, UNDO_MS)
  t.same(await cold.settle(), ['recall found'])
  later(world, 10_000)
  t.match(entryOf(world, tenant, ADA), { reason: 'unsubscribe' })
  t.same(eventsOf(setting), ['delivered', 'unsubscribed'])
  t.equal(toldOf(setting, 'unsubscribed'), 1)
})

t.test('a complaint lists the address, counts, and is announced to webhooks of the stream', async (t) => {
  const setting = begin(t)
  const { world, tenant, cold, click } = setting
  await seal(setting)
  const report = { kind: 'complaint', feedbackType: 'abuse' } as const
  const body = { item: click.item, hmac: click.hmac, report }
  t.equal(world.run(recordReport, body), 'sealed')
  t.equal(world.run(recordReport, body), 'sealed', 'it may be asked again meanwhile')
  await cold.settle()
  t.equal(world.run(recordReport, body), 'recorded')
  t.match(entryOf(world, tenant, ADA), { reason: 'spam_complaint' })
  t.same(eventsOf(setting), ['delivered', 'spam_complaint'])
  t.equal(toldOf(setting, 'spam_complaint'), 1)
})

t.test('a hard bounce after days bounces the recipient', async (t) => {
  const setting = begin(t)
  const { world, tenant, cold, click } = setting
  await seal(setting)
  const report = {
    kind: 'bounce',
    code: 550,
    response: '550 5.1.1 gone',
    classification: 'Invalid',
    hard: true,
  } as const
  const body = { item: click.item, hmac: click.hmac, report: { ...report, expired: false } }
  t.equal(world.run(recordReport, body as never), 'sealed')
  await cold.settle()
  t.equal(world.run(recordReport, body as never), 'recorded')
  t.match(entryOf(world, tenant, ADA), { reason: 'hard_bounce' })
  t.same(eventsOf(setting), ['delivered', 'bounced'])
})
