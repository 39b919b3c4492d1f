/** prepare-attempt - a job as prepared from the log is the job that the commit gave along. */

import t from 'tap'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { headKey, logKey, sendingKey, statusKey } from '../../../src/state/keys.ts'
import { parseAttemptItem } from '../../../src/state/message/item.ts'
import { makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const recipients = [
  makeRecipient('ada@example.net', 'to', 'Ada'),
  makeRecipient('bob@example.net', 'cc', 'Bob'),
  makeRecipient('eve@example.org', 'bcc'),
]
const attachments = [{ name: 'a.txt', contentType: null, contentId: 'c1', size: 3, inline: true }]

t.test('delivery: each recipient’s job is found again from its item', async (t) => {
  for (const test of [false, true]) {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const message = makeItem({ recipients, attachments, headers: { 'Reply-To': 'x@acme.example' } })
    send(world, tenant, { test, messages: [message] })
    for (const due of world.deliveries()) {
      const fresh = due.job as AttemptJob
      const found = world.run(prepareAttempt, { lane: due.lane, item: due.item })
      t.same(found, { ...fresh, message: { ...fresh.message, content: null, keySinceMs: null } })
      t.equal(fresh.message.keySinceMs, test ? null : 1)
      t.equal(world.rounds, 3)
    }
  }
})

t.test(
  'delivery: mail of a domain that is no longer sent from has no return path there [bounce.address]',
  async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    send(world, tenant)
    const [due] = world.deliveries()
    const hasReturnPath = () => world.run(prepareAttempt, { lane: 'x', item: due?.item ?? '' })?.message.hasReturnPath
    t.match(due?.job, { message: { hasReturnPath: true } })
    t.equal(hasReturnPath(), true)
    world.keys.delete(sendingKey(world.shard, tenant.accountId))
    t.equal(hasReturnPath(), false)
  },
)

t.test(
  'delivery: later attempts spell addresses as the request did, even if another request named the person',
  async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient('ADA@example.net', 'to')] })] })
    const spelled = [makeRecipient('Ada@example.net', 'to', 'Ada'), makeRecipient('Eve@example.org', 'bcc')]
    const from = { ...makeItem().from, address: 'Shop@acme.example' }
    send(world, tenant, { messages: [makeItem({ from, recipients: spelled })] })
    send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient('ada@example.net', 'to')] })] })
    const jobs = world.deliveries().map((due) => {
      const fresh = due.job as AttemptJob
      const found = world.run(prepareAttempt, { lane: due.lane, item: due.item })
      t.same(found, { ...fresh, message: { ...fresh.message, content: null, keySinceMs: null } })
      return [found?.message.from.address, found?.recipient.address, found?.message.to[0]?.address]
    })
    t.same(jobs, [
      ['shop@acme.example', 'ADA@example.net', 'ADA@example.net'],
      ['Shop@acme.example', 'Ada@example.net', 'Ada@example.net'],
      ['Shop@acme.example', 'Eve@example.org', 'Ada@example.net'],
      ['shop@acme.example', 'ada@example.net', 'ada@example.net'],
    ])
  },
)

t.test('delivery: a blind copy is read only for its own recipient', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { messages: [makeItem({ recipients })] })
  const [first, , third] = world.deliveries()
  const run = (due: typeof first) => world.run(prepareAttempt, { lane: 'x', item: due?.item ?? '' })
  t.notOk(JSON.stringify(run(first)).includes('eve@'))
  t.same(run(third)?.recipient, { address: 'eve@example.org', index: 2 })
})

t.test('delivery: there is no job once the recipient is finished, or the message has left', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant)
  const [due] = world.deliveries()
  const { serverId } = tenant.live
  const body = { lane: 'x', item: due?.item ?? '' }
  t.not(world.run(prepareAttempt, body), null)
  const status = new Map<string, string>()
  world.keys.set(statusKey(world.shard, serverId, '202611-0-1'), { type: 'hash', fields: status })
  const { short } = parseAttemptItem(body.item)
  status.set(short, '[1,0,["d",5,"250 OK"],99]')
  t.equal(world.run(prepareAttempt, body), null)
  status.set(short, '[1,60000,["l",5,"451 Later"]]')
  t.not(world.run(prepareAttempt, body), null)
  for (const key of [headKey, logKey].map((name) => name(world.shard, serverId, '202611-0-1'))) {
    const value = world.keys.get(key)
    world.keys.delete(key)
    t.equal(world.run(prepareAttempt, body), null, key)
    if (value !== undefined) world.keys.set(key, value)
  }
  t.not(world.run(prepareAttempt, body), null)
  world.nowMs = Date.UTC(2027, 11, 20, 12, 0, 1)
  t.equal(world.run(prepareAttempt, body), null, 'past its age, though it has not been swept yet')
})
