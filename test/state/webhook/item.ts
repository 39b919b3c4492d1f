/** item - what is written is read back; names sort by their delivery and hold no address. */

import t from 'tap'
import { makeIds } from '../../../cluster/id.ts'
import { EVENTS } from '../../../schemas/webhook.ts'
import {
  type EventReference,
  formatItem,
  formatReference,
  parseDeliveryItem,
  parseReference,
  postLane,
  webhookOfLane,
} from '../../../src/state/webhook/item.ts'

const ids = makeIds({ shard: 7, last: '', random: () => 0.3 })
const messageId = ids.next(1_790_000_000_000)
const deliveryId = ids.next(1_790_000_000_000)
const place = { kind: 'message', segment: '20261121-0-1', messageId, recipient: 49, index: 12 } as const
const cap = { kind: 'cap', cap: 1_000_000_000, used: 0, occurredAtMs: 1_790_000_000_001 } as const

const REFERENCES: readonly EventReference[] = [
  ...(['delivered', 'bounced', 'deferred', 'spam_complaint', 'unsubscribed'] as const).map((event) => ({
    ...place,
    event,
  })),
  ...(['account', 'server', 'test'] as const).flatMap((scope) =>
    (['cap_warning', 'cap_reached'] as const).map((event) => ({ ...cap, event, scope })),
  ),
  ...EVENTS.map((event) => ({ kind: 'example', event, madeUpId: messageId }) as const),
]

t.test('webhook item: every reference is read back as it was written', async (t) => {
  const texts = new Set<string>()
  for (const reference of REFERENCES) {
    const text = formatReference(reference)
    texts.add(text)
    t.same(parseReference(text), reference, text)
    const item = { deliveryId, slice: '20261121-0', reference }
    t.same(parseDeliveryItem(formatItem(item)), item)
  }
  t.equal(texts.size, REFERENCES.length)
})

t.test('webhook item: names sort by the delivery', async (t) => {
  const reference = REFERENCES[0] as EventReference
  const names = Array.from({ length: 300 }, () =>
    formatItem({ deliveryId: ids.next(1_790_000_000_000), slice: '20261121-0', reference }),
  )
  t.same([...names].sort(), names)
})

t.test('webhook item: a lane names its webhook', async (t) => {
  t.equal(webhookOfLane(postLane(messageId)), messageId)
})
