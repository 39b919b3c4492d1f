/** bounce-mail - the reports that events cause, in the commit of the event, and what ends one that waits. */
import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { bounceMailOutcome, prepareBounceMail } from '../../../src/actors/bounce-mail/bounce-mail.ts'
import { type AttemptOutcome, reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { sendingKey } from '../../../src/state/keys.ts'
import { BOUNCE_MAIL_LANE, NOTIFY, type ReportsWanted } from '../../../src/state/message/bounce-mail.ts'
import { erasedHead, unpackHead } from '../../../src/state/message/head.ts'
import { serverOwner } from '../../../src/state/server.ts'
import { acceptedIds, changeState, hmacOf, makeItem, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000
const ADA = 'ada@example.net'
const REST = { address: ADA, sizeBytes: 900, retryAfterMs: null, hmac: () => hmacOf(ADA) }
const delivered = reportOutcome(makeDelivered(250, '250 2.0.0 Ok'), REST)
const deferred = reportOutcome(makeRefused({ phase: 'rcpt', response: '451 4.3.0 Later' }), REST)
const bounced = reportOutcome(makeRefused({ phase: 'rcpt', response: '550 5.7.1 Blocked' }), REST)
const ALL = NOTIFY.success | NOTIFY.failure | NOTIFY.delay

function setUp(reports: ReportsWanted | null = { envid: 'order 17', notify: [ALL | NOTIFY.same] }, isOn = true) {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'server', tenant.live.serverId, { bounceMail: isOn })
  const raw = { bytes: 10, messageId: '<1@acme.example>', ...(reports && { reports }) }
  const accept = (): string => acceptedIds(send(world, tenant, { source: 's', messages: [makeItem({ raw })] }))[0] ?? ''
  /** Ends the next attempt of the only message under way. */
  const end = (outcome: AttemptOutcome | null): string => {
    const due = world.deliveries().find(({ lane }) => lane.startsWith('deliver'))
    if (due === undefined) throw new Error('No delivery is due')
    const claim = world.claim(prepareAttempt, due)
    if (claim === null) throw new Error('The delivery is over')
    world.end(attemptOutcome, claim, outcome)
    return due.item
  }
  const waiting = () => world.deliveries().filter(({ lane }) => lane === BOUNCE_MAIL_LANE)
  const prepare = () => {
    const [due] = waiting()
    return due === undefined ? undefined : world.run(prepareBounceMail, { lane: due.lane, item: due.item })
  }
  return { world, tenant, accept, end, waiting, prepare }
}

t.test('bounce mail: a final bounce leaves one report, with its message [submission.reports]', async (t) => {
  const { accept, end, waiting, prepare, world, tenant } = setUp()
  const id = accept()
  const item = end(bounced)
  t.match(waiting(), [{ item: `${item}!0!${NOW_MS.toString(36)}`, atMs: NOW_MS }])
  t.match(prepare(), {
    ...{ envid: 'order 17', hasOriginal: true, place: 0, atMs: NOW_MS },
    event: { event: 'bounced', response: '550 5.7.1 Blocked' },
    attempt: {
      message: { messageId: id, from: { address: 'shop@acme.example' }, subject: 'Your order' },
      recipient: { address: ADA, index: 0 },
    },
  })
  t.match(world.counters.get(serverOwner(tenant.live.serverId)), { bounceMails: [NOW_MS / HOUR_MS, 1] })
  world.run(attemptOutcome, { lane: 'deliver/example.net', item, attempt: 1, current: true, outcome: bounced })
  t.equal(waiting().length, 1, 'a repeated outcome leaves no other')
})

t.test('bounce mail: delivered, and bounced later [submission.reports]', async (t) => {
  const { accept, end, waiting, world } = setUp()
  accept()
  const item = end(delivered)
  const late = { kind: 'bounce', code: 550, response: '550 5.1.1 unknown', hard: true, expired: false } as const
  const report = { ...late, classification: 'InvalidRecipient' } as const
  t.equal(world.run(recordReport, { item, hmac: hmacOf(ADA), report }), 'recorded')
  t.equal(world.run(recordReport, { item, hmac: hmacOf(ADA), report }), 'ignored')
  t.same(
    waiting().map(({ item: name }) => name.slice(item.length, item.length + 3)),
    ['!0!', '!1!'],
  )
})

t.test('bounce mail: a delay is reported once, after four hours [submission.reports]', async (t) => {
  const { accept, end, waiting, world } = setUp()
  accept()
  end(deferred)
  t.equal(waiting().length, 0)
  for (let n = 0; n < 3; n += 1) {
    world.nowMs += 5 * HOUR_MS
    end(deferred)
    t.equal(waiting().length, 1)
  }
})

t.test(
  'bounce mail: an abandoned delivery, and one that is on the list, are failures [submission.reports]',
  async (t) => {
    const { accept, end, waiting, world } = setUp()
    accept()
    end(null)
    t.equal(waiting().length, 1)
    accept()
    end(reportOutcome(makeRefused({ phase: 'rcpt', response: '550 5.1.1 No such user' }), REST))
    t.equal(waiting().length, 2)
    accept()
    t.equal(world.deliveries().filter(({ lane }) => lane.startsWith('deliver')).length, 0, 'suppressed')
    t.equal(waiting().length, 3)
  },
)

t.test('bounce mail: none unless it was asked for and is switched on [submission.reports]', async (t) => {
  for (const [wanted, isOn] of [
    [null, true],
    [{ envid: null, notify: [0] }, true],
    [{ envid: null, notify: [NOTIFY.success | NOTIFY.delay] }, true],
    [{ envid: null, notify: [ALL] }, false],
  ] as const) {
    const { accept, end, waiting } = setUp(wanted, isOn)
    accept()
    end(bounced)
    t.same(waiting(), [])
  }
})

t.test('bounce mail: at most 100 an hour and server [submission.reports]', async (t) => {
  const { accept, end, waiting, world } = setUp()
  for (let n = 0; n < 102; n += 1) {
    accept()
    end(bounced)
  }
  t.equal(waiting().length, 100)
  world.nowMs += HOUR_MS
  accept()
  end(bounced)
  t.equal(waiting().length, 101)
})

type Scene = ReturnType<typeof setUp>
const ENDS: readonly [what: string, run: (scene: Scene, id: string) => void][] = [
  [
    'the server has switched it off',
    ({ world, tenant }) => changeState(world, 'server', tenant.live.serverId, { bounceMail: false }),
  ],
  [
    'the server was removed',
    ({ world, tenant }) => changeState(world, 'server', tenant.live.serverId, { removedAtMs: NOW_MS }),
  ],
  [
    "the sender's domain is not verified any more",
    ({ world, tenant }) => void world.keys.delete(sendingKey(world.shard, tenant.accountId)),
  ],
  [
    'its persons are erased',
    ({ world, tenant }) => {
      for (const key of world.keys.keys()) if (key.includes(`:person:${tenant.accountId}`)) world.keys.delete(key)
    },
  ],
  [
    'its message is erased',
    ({ world, tenant }, id) => {
      for (const [key, value] of world.keys)
        if (key.includes(`:head:${tenant.live.serverId}`) && value.type === 'hash') {
          const packed = value.fields.get(shortId(id)) ?? ''
          value.fields.set(shortId(id), erasedHead(unpackHead(packed, 1)))
        }
    },
  ],
]
for (const [what, run] of ENDS)
  t.test(`bounce mail: one that waits ends if ${what} [submission.reports]`, async (t) => {
    const scene = setUp()
    const id = scene.accept()
    scene.end(bounced)
    t.ok(scene.prepare())
    run(scene, id)
    t.equal(scene.prepare(), null)
  })

t.test('bounce mail: a deferred report is due again, until two days have passed [submission.reports]', async (t) => {
  const { accept, end, waiting, world } = setUp()
  accept()
  end(bounced)
  const [due] = waiting()
  if (due === undefined) throw new Error('No report waits')
  const of = { lane: due.lane, item: due.item, current: true }
  const outcome = { result: 'deferred', response: '451 4.3.0 Later' } as const
  world.run(bounceMailOutcome, { ...of, attempt: 1, outcome })
  t.ok((waiting()[0]?.atMs ?? 0) > world.nowMs)
  world.items.clear()
  for (const [attempt, ended] of [
    [2, { result: 'delivered', response: '250 Ok' }],
    [2, { result: 'bounced', response: '550 No' }],
    [2, null],
  ] as const) {
    world.run(bounceMailOutcome, { ...of, attempt, outcome: ended })
    t.same(waiting(), [])
  }
  world.nowMs += 48 * HOUR_MS
  world.run(bounceMailOutcome, { ...of, attempt: 14, outcome })
  t.same(waiting(), [])
})
