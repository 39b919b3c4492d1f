/**
 * unlink - attachments in the content store go with the last recipient, tried until they are gone or their day has
 * come.
 */
import t from 'tap'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { prepareUnlink, type UnlinkOutcome, unlinkFilesDue, unlinkOutcome } from '../../../src/actors/message/unlink.ts'
import { HOUR_MS, MINUTE_MS } from '../../../src/state/calendar.ts'
import { acceptedIds, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 22)
const CMD_ID = newCmdId(NOW_MS, () => 0.5)
const CONTENT_ID = `${CMD_ID}-0`
const ATTACHMENTS = [{ name: 'f', contentType: null, contentId: null, inline: false, size: 100_000 }]
const STORED = { key: 'sealed', body: false, files: true }
const delivered = {
  result: 'delivered',
  code: 250,
  response: null,
  classification: null,
  hard: false,
  expired: false,
  unbuildable: false,
  sizeBytes: null,
  retryAfterMs: null,
  hmac: null,
} as const

/** A message of several recipients whose attachments are in the content store. */
function begin(names: readonly string[]) {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const recipients = names.map((name) => makeRecipient(`${name}@example.net`))
  const content = { parts: [{ part: 'body', chunks: 1, blob: 0 }], stored: STORED }
  const messages = [makeItem({ recipients, attachments: ATTACHMENTS, content })]
  acceptedIds(send(world, tenant, { messages }, { blobs: [Buffer.from('x')], cmdId: CMD_ID }))
  return { world, item: () => world.items.get(`unlink ${CONTENT_ID}`) }
}

t.test('unlink: placed by the commit that ends the last recipient [retention.attachments]', async (t) => {
  const { world, item } = begin(['a', 'b'])
  const [first, second] = world.deliveries()
  t.same(world.claim(prepareAttempt, first!)?.attempt, 1)
  world.end(attemptOutcome, { ...first!, attempt: 1 }, delivered)
  t.equal(item(), undefined, 'one waits')
  world.claim(prepareAttempt, second!)
  world.end(attemptOutcome, { ...second!, attempt: 1 }, null)
  t.match(item(), { atMs: NOW_MS })
  t.match(
    unlinkFilesDue({ shard: world.shard, nowMs: NOW_MS }, { contentId: CONTENT_ID, test: false }).job,
    world.run(prepareUnlink, item()!),
  )
})

t.test('unlink: a message that came whole goes with the last recipient, from either store', async (t) => {
  const raw = { bytes: 300_000, messageId: null }
  const body = { part: 'body', chunks: 1, blob: 0 }
  const inRedis = { parts: [body, { part: 'raw', chunks: 2, blob: 1 }], stored: null }
  for (const content of [inRedis, { parts: [body], stored: STORED }]) {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const recipients = ['a', 'b'].map((name) => makeRecipient(`${name}@example.net`))
    const blobs = ['body', 'raw', 'raw.1'].map((text) => Buffer.from(text))
    acceptedIds(send(world, tenant, { messages: [makeItem({ recipients, raw, content })] }, { blobs, cmdId: CMD_ID }))
    const left = () => world.keyNames().filter((key) => key.includes(':raw'))
    const [first, second] = world.deliveries()
    t.same(world.claim(prepareAttempt, first!)?.job.message.raw, raw)
    world.end(attemptOutcome, { ...first!, attempt: 1 }, delivered)
    const isInRedis = content === inRedis
    t.same(left().length, isInRedis ? 2 : 0, 'one waits')
    t.equal(world.items.has(`unlink ${CONTENT_ID}`), false)
    // As a later attempt finds it: from the head.
    t.same(world.run(prepareAttempt, second!)?.message.raw, raw)
    world.claim(prepareAttempt, second!)
    world.end(attemptOutcome, { ...second!, attempt: 1 }, delivered)
    t.same(left(), [])
    t.equal(world.items.has(`unlink ${CONTENT_ID}`), !isInRedis)
  }
})

t.test('unlink: a message names what it has in the content store, from its head', async (t) => {
  const { world } = begin(['a'])
  const [due] = world.deliveries()
  const job = world.run(prepareAttempt, { lane: due!.lane, item: due!.item })
  t.same(job?.message.stored, STORED)
})

t.test('unlink: gone is gone; away is tried again, at most by the hour, until the day has come', async (t) => {
  const { world, item } = begin(['a'])
  const [due] = world.deliveries()
  world.claim(prepareAttempt, due!)
  world.end(attemptOutcome, { ...due!, attempt: 1 }, delivered)
  const away: UnlinkOutcome = { removed: false }
  const waits: number[] = []
  for (let tries = 0; tries < 200 && item() !== undefined; tries += 1) {
    const from = item()!.atMs
    world.nowMs = Math.max(world.nowMs, from)
    world.end(unlinkOutcome, world.claim(prepareUnlink, item()!)!, away)
    if (item() !== undefined) waits.push(item()!.atMs - world.nowMs)
  }
  t.equal(item(), undefined, 'it goes with its day')
  t.same(
    waits.slice(0, 7),
    [1, 2, 4, 8, 16, 32, 60].map((minutes) => minutes * MINUTE_MS),
  )
  t.equal(Math.max(...waits), HOUR_MS)
  t.ok(world.nowMs - NOW_MS > 60 * HOUR_MS, 'not before')
  for (const outcome of [{ removed: true }, null]) {
    const again = begin(['a'])
    const [only] = again.world.deliveries()
    again.world.claim(prepareAttempt, only!)
    again.world.end(attemptOutcome, { ...only!, attempt: 1 }, delivered)
    again.world.end(unlinkOutcome, again.world.claim(prepareUnlink, again.item()!)!, outcome)
    t.equal(again.item(), undefined)
  }
})
