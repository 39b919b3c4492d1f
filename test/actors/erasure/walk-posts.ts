/** walk-posts - what receivers of webhooks answered to events of erased mail goes, and nothing else of a delivery. */
import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { attemptOutcome, reportOutcome } from '../../../src/actors/message/attempted.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { deliveryKey } from '../../../src/state/keys.ts'
import { type DeliveryRecord, recordOp, unpackRecord } from '../../../src/state/webhook/delivery.ts'
import { eraseNow } from '../../support/world/erasure.ts'
import { makeInboundStream, makeParsed, parseNext, receiveMail, SENDER } from '../../support/world/inbound.ts'
import { hmacOf, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const ADA = 'ada@example.net'
const BOB = 'bob@example.org'

t.test(
  'walk-posts: answers about the person go, those about others stay [erasure.messages] [erasure.received]',
  async (t) => {
    const world = new World(Date.UTC(2026, 10, 20, 12))
    const tenant = makeTenant(world)
    seedWebhook(world, tenant)
    seedWebhook(world, tenant)
    const streamId = makeInboundStream(world, tenant)
    for (const address of [ADA, BOB])
      send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient(address)] })] })
    for (const due of world.deliveries().filter(({ lane }) => lane.startsWith('deliver'))) {
      const claim = world.claim<AttemptJob>(prepareAttempt, due)
      const report = {
        address: claim?.job.recipient.address ?? '',
        sizeBytes: 9,
        retryAfterMs: null,
        hmac: () => hmacOf(ADA),
      }
      if (claim !== null) world.end(attemptOutcome, claim, reportOutcome(makeDelivered(250, '250 Ok'), report))
    }
    for (const address of [SENDER, BOB]) {
      receiveMail(world, tenant, { streamId, sender: { hmac: hmacOf(address), address } })
      parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
    }
    const posts = waiting(world)
    t.equal(posts.length, 8, 'two webhooks hear of four mails')
    const fields = {
      status: 'delivered',
      attempts: 1,
      lastStatusCode: 200,
      lastError: null,
      nextAttemptAtMs: null,
      base: 0,
      failures: 0,
      queuedAtMs: null,
    } as const
    for (const place of posts) {
      const record: DeliveryRecord = { ...fields, deliveredAtMs: world.nowMs, lastResponse: 'Ada, or Bob, has mail' }
      world.apply(recordOp({ shard: world.shard, ...place }, record))
    }
    eraseNow(world, tenant, ADA)
    const records = posts.map(({ webhookId, slice, deliveryId }) =>
      unpackRecord(
        world.hash(deliveryKey(world.shard, webhookId, slice)).get(shortId(deliveryId)) ?? null,
        msOf(deliveryId),
      ),
    )
    t.equal(
      records.filter(({ lastResponse }) => lastResponse === null).length,
      4,
      'of both webhooks, sent and received',
    )
    for (const record of records) t.match(record, { status: 'delivered', attempts: 1, lastStatusCode: 200 })
  },
)
