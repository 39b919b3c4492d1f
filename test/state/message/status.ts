/** status - packed and unpacked, small, and the results of the events. */

import t from 'tap'
import { withSum } from '../../../cluster/sum.ts'
import {
  isOpen,
  messageStatus,
  packStatus,
  type StatusEvent,
  statusField,
  unpackStatus,
} from '../../../src/state/message/status.ts'

const ACCEPTED_MS = Date.UTC(2026, 10, 20)

const deferred: StatusEvent = {
  event: 'deferred',
  occurredAtMs: ACCEPTED_MS + 40,
  code: 451,
  response: '451 4.3.0 Later <rcpt>',
}
const delivered: StatusEvent = {
  event: 'delivered',
  occurredAtMs: ACCEPTED_MS + 61_000,
  code: 250,
  response: '250 2.0.0 OK (test)',
}
const bounced: StatusEvent = {
  event: 'bounced',
  occurredAtMs: ACCEPTED_MS + 50,
  code: 550,
  response: '550 5.1.1 No',
  classification: 'InvalidRecipient',
  hard: true,
  expired: false,
  status: 'bounced',
}

const complained: StatusEvent = { event: 'spam_complaint', occurredAtMs: ACCEPTED_MS + 90_000, feedbackType: 'abuse' }
const unsubscribed: StatusEvent = { event: 'unsubscribed', occurredAtMs: ACCEPTED_MS + 95_000, source: 'one_click' }

const CASES: readonly { name: string; events: readonly StatusEvent[]; status: string }[] = [
  { name: 'nothing yet', events: [], status: 'accepted' },
  {
    name: 'deferred twice with one reply',
    events: [deferred, { ...deferred, occurredAtMs: ACCEPTED_MS + 60_000 }],
    status: 'deferred',
  },
  {
    name: 'deferred without a reply',
    events: [{ ...deferred, code: null, response: 'connect ETIMEDOUT mx.example.net' }],
    status: 'deferred',
  },
  { name: 'deferred, then delivered', events: [deferred, delivered], status: 'delivered' },
  {
    name: 'deferred and bounced, each with its route',
    events: [
      { ...deferred, route: 'mx.a.test - - - - - 5,,,' },
      { ...bounced, route: 'mx.a.test 192.0.2.1 192.0.2.9 1.3 a v 5,12,20,90' },
    ],
    status: 'bounced',
  },
  { name: 'bounced', events: [bounced], status: 'bounced' },
  {
    name: 'bounced before any reply',
    events: [{ ...bounced, code: null, response: '5.1.2 domain does not exist' }],
    status: 'bounced',
  },
  {
    name: 'bounced, expired',
    events: [deferred, { ...bounced, hard: false, expired: true, code: 451, response: deferred.response }],
    status: 'bounced',
  },
  { name: 'a late bounce', events: [delivered, bounced], status: 'bounced' },
  {
    name: 'failed',
    events: [
      { ...bounced, code: null, response: null, hard: false, classification: 'Uncategorized', status: 'failed' },
    ],
    status: 'failed',
  },
  {
    name: 'suppressed',
    events: [{ ...bounced, code: null, response: null, classification: 'Suppressed', status: 'suppressed' }],
    status: 'suppressed',
  },
  { name: 'cancelled', events: [{ event: 'cancelled', occurredAtMs: ACCEPTED_MS + 5 }], status: 'cancelled' },
  { name: 'complaint after delivery', events: [delivered, complained, unsubscribed], status: 'delivered' },
  { name: 'a complaint of no type', events: [delivered, { ...complained, feedbackType: null }], status: 'delivered' },
  { name: 'unsubscribed by the link', events: [delivered, { ...unsubscribed, source: 'link' }], status: 'delivered' },
  {
    name: 'a code that its text does not begin with',
    events: [{ ...delivered, code: 250, response: 'OK' }],
    status: 'delivered',
  },
  {
    name: 'no code though its text begins with one',
    events: [{ ...delivered, code: null, response: '250' }],
    status: 'delivered',
  },
  {
    name: 'no classification, text one word of digits',
    events: [{ ...bounced, classification: null, code: null, response: '5501 x' }],
    status: 'bounced',
  },
]

for (const { name, events, status } of CASES) {
  t.test(`status: ${name} is ${status}, packed and back`, async (t) => {
    for (const sizeBytes of [null, 1234]) {
      const nextAttemptAtMs = status === 'accepted' || status === 'deferred' ? ACCEPTED_MS + 60_040 : null
      const packed = packStatus({ attempts: events.length, nextAttemptAtMs, events, sizeBytes }, ACCEPTED_MS)
      const back = unpackStatus(packed, ACCEPTED_MS)
      t.same(
        { ...back, statusAtMs: 0 },
        { attempts: events.length, nextAttemptAtMs, events, status, statusAtMs: 0, sizeBytes },
      )
      const changing = events.filter(({ event }) => event !== 'spam_complaint' && event !== 'unsubscribed')
      t.equal(back.statusAtMs, changing.at(-1)?.occurredAtMs ?? ACCEPTED_MS)
    }
  })
}

t.test('status: without a row a recipient is fresh, due at its acceptance', async (t) => {
  const fresh = unpackStatus(null, ACCEPTED_MS)
  t.same(fresh, {
    attempts: 0,
    nextAttemptAtMs: ACCEPTED_MS,
    events: [],
    status: 'accepted',
    statusAtMs: ACCEPTED_MS,
    sizeBytes: null,
  })
  t.same(unpackStatus(packStatus(fresh, ACCEPTED_MS), ACCEPTED_MS), fresh, 'a row of its own says the same')
})

t.test('status: a delivered recipient takes at most 50 bytes', async (t) => {
  const first = { ...delivered, occurredAtMs: ACCEPTED_MS + 153 }
  const packed = packStatus({ attempts: 1, nextAttemptAtMs: null, events: [first], sizeBytes: 1234 }, ACCEPTED_MS)
  t.equal(packed, withSum('[1,0,["d",153,"250 2.0.0 OK (test)"],1234]'))
  t.ok(packed.length <= 50)
})

t.test('status: fourteen deferrals with one reply keep it once', async (t) => {
  const events = Array.from({ length: 14 }, () => ({ ...deferred, response: `451 ${'x'.repeat(500)}` }))
  const packed = packStatus({ attempts: 14, nextAttemptAtMs: ACCEPTED_MS + 1, events, sizeBytes: null }, ACCEPTED_MS)
  t.ok(packed.length < 800, `${packed.length} bytes`)
  t.same(unpackStatus(packed, ACCEPTED_MS).events, events)
})

t.test('status: a message has the common status of its recipients, otherwise mixed', async (t) => {
  t.equal(messageStatus(['delivered']), 'delivered')
  t.equal(messageStatus(['bounced', 'bounced']), 'bounced')
  t.equal(messageStatus(['bounced', 'delivered']), 'mixed')
  t.same(
    ['accepted', 'deferred', 'delivered', 'bounced', 'failed', 'cancelled', 'suppressed'].map((status) =>
      isOpen(status as 'accepted'),
    ),
    [true, true, false, false, false, false, false],
  )
})

t.test('status: only recipients after the first have their place in the field', async (t) => {
  t.equal(statusField('abc', 0), 'abc')
  t.equal(statusField('abc', 49), 'abc.49')
})
