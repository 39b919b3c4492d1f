/** webhook - the entity, and the list that announcements go through. */

import t from 'tap'
import {
  listenersEntity,
  type Subscriber,
  type WebhookState,
  webhookEntity,
} from '../../../src/state/webhook/webhook.ts'

const one: Subscriber = { webhookId: 'a', events: ['bounced'], streamId: null, enabled: true }
const other: Subscriber = { ...one, webhookId: 'b' }

t.test('webhook: a list keeps the order of creation through every change [webhook.states]', async (t) => {
  let list = listenersEntity.empty
  for (const listener of [one, other, { ...one, enabled: false }])
    list = listenersEntity.apply(list, { type: 'set', listener })
  t.same(list, [{ ...one, enabled: false }, other])
  t.same(listenersEntity.apply(list, { type: 'removed', webhookId: 'a' }), [other])
})

t.test('webhook: changes apply to an existing webhook, and to nothing else', async (t) => {
  const webhook = { webhookId: 'a', enabled: true, off: null } as WebhookState
  const changes = { enabled: false, off: { id: 'b', atMs: 7 } }
  t.equal(webhookEntity.apply(null, { type: 'changed', changes }), null)
  const created = webhookEntity.apply(null, { type: 'created', webhook })
  t.same(webhookEntity.apply(created, { type: 'changed', changes }), { ...webhook, ...changes })
})
