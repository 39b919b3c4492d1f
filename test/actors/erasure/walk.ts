/** walk - erasures one after the other, removed servers, lists, commands that failed, and the end. */
import t from 'tap'
import { stagedKey, unborneKey } from '../../../cluster/keyspace.ts'
import { ERASURES_OPEN_MAX, erase } from '../../../src/actors/erasure/erase.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import { addSuppressions } from '../../../src/actors/suppression/add-suppressions.ts'
import { liftSuppression } from '../../../src/actors/suppression/lift-suppression.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { isErasurePast } from '../../../src/state/erasure.ts'
import { bucketOfHmac } from '../../../src/state/hash-fraction.ts'
import {
  auditKey,
  erasedKey,
  erasingKey,
  erasuresKey,
  removedServersKey,
  suppressedKey,
} from '../../../src/state/keys.ts'
import { packSuppression } from '../../../src/state/suppression.ts'
import {
  eraseNow,
  mailTo,
  makeErase,
  messageOf,
  NOW_MS,
  openWorld,
  order,
  PSEUDONYM,
  stateOf,
  textsOf,
} from '../../support/world/erasure.ts'
import { entryOf, personOf } from '../../support/world/suppression.ts'
import {
  ACCOUNT_KEY,
  acceptedIds,
  changeState,
  hmacOf,
  LIVE_KEY,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import type { World } from '../../support/world/turn.ts'

const ADA = 'ada@example.net'
const BOB = 'bob@example.net'

const sendTo = (world: World, tenant: Tenant, address: string) =>
  acceptedIds(send(world, tenant, { messages: [mailTo(address)] }))[0] ?? ''

t.test(
  'walk: erasures of an account come one after the other, and leave nothing of themselves [erasure.states]',
  async (t) => {
    const { world, tenant } = openWorld()
    sendTo(world, tenant, ADA)
    sendTo(world, tenant, BOB)
    const ids = [order(world, tenant, ADA), order(world, tenant, BOB), order(world, tenant, ADA)]
    const timers = () => [...world.items.values()].filter(({ item }) => item.startsWith('erase:')).length
    t.equal(timers(), 1)
    t.same([...world.sorted(erasuresKey(world.shard, tenant.accountId)).keys()], ids)
    t.same([...world.hash(erasingKey(world.shard, tenant.accountId))].length, 2)
    world.fireTimers()
    t.match(
      ids.map((id) => stateOf(world, id)),
      [{ messages: 1 }, { messages: 1 }, { messages: 0 }],
    )
    t.equal(timers(), 0)
    for (const key of [erasuresKey, erasingKey])
      t.equal(
        world.sorted(key(world.shard, tenant.accountId)).size + world.hash(key(world.shard, tenant.accountId)).size,
        0,
      )
    for (const owner of [...ids.map((id) => `erasure:${id}`), `erasures:${tenant.accountId}`])
      t.equal(world.counters.get(owner) ?? null, null)
    t.match(Object.fromEntries(world.hash(erasedKey(world.shard))), {
      ordered: '3',
      done: '3',
      messages: '2',
      received: '0',
      ms: String(NOW_MS),
    })
    t.notMatch(
      JSON.stringify([...world.states]),
      new RegExp(`${hmacOf(ADA)}|${hmacOf(BOB)}`),
      'no keyed hash in an entity',
    )
  },
)

t.test('walk: a finished erasure can be read for 30 days [retention.erasure]', async (t) => {
  const { world, tenant } = openWorld()
  const { erasureId, completedAtMs } = eraseNow(world, tenant, ADA)
  t.equal(isErasurePast({ completedAtMs }, NOW_MS + 30 * DAY_MS - 1), false)
  t.equal(isErasurePast({ completedAtMs }, NOW_MS + 30 * DAY_MS), true)
  t.equal(isErasurePast({ completedAtMs: null }, NOW_MS + 60 * DAY_MS), false)
  const key = world.keyNames().find((name) => name.endsWith(`:erasure:${erasureId}`)) ?? ''
  t.equal(world.expiries.get(key), NOW_MS + 30 * DAY_MS)
})

t.test('walk: the data of a removed server is erased too, until nothing is left [erasure.servers]', async (t) => {
  const { world, tenant } = openWorld()
  const sent = sendTo(world, tenant, ADA)
  const { accountId, live } = tenant
  world.run(removeServer, { accountId, serverId: live.serverId, orderedBy: 'account', keyHash: ACCOUNT_KEY } as never)
  t.ok(world.sorted(removedServersKey(world.shard, accountId)).has(live.serverId))
  t.match(eraseNow(world, tenant, ADA), { messages: 1 })
  t.ok(messageOf(world, live.serverId, sent).isErased)
  for (let day = 0; day < 430; day += 1) {
    world.nowMs += DAY_MS
    world.fireTimers()
  }
  t.equal(world.sorted(removedServersKey(world.shard, accountId)).size, 0, 'the sweep clears the list')
})

t.test(
  'walk: lists stay without the servers’ replies, and count for the current owner of the address [erasure.suppressions]',
  async (t) => {
    const { world, tenant } = openWorld()
    const { accountId, live } = tenant
    const { serverId, streamId } = live
    const listed = { accountId, serverId, streamId, orderedBy: 'server', keyHash: LIVE_KEY } as const
    world.run(addSuppressions, { ...listed, recipients: [{ hmac: hmacOf(ADA), address: ADA }] })
    const before = entryOf(world, tenant, ADA)
    const key = suppressedKey(world.shard, streamId, (bucketOfHmac(hmacOf(ADA)) >> 4).toString(16))
    world.apply({
      key,
      write: 'HSET',
      args: [
        hmacOf(ADA),
        packSuppression({ ...before, reason: 'hard_bounce', code: 550, response: 'ada is not here' } as never),
      ],
    })
    eraseNow(world, tenant, ADA)
    t.match(entryOf(world, tenant, ADA), {
      suppressionId: before?.suppressionId,
      reason: 'hard_bounce',
      code: 550,
      response: null,
      number: before?.number,
    })
    t.equal(personOf(world, tenant, ADA), null)
    sendTo(world, tenant, ADA)
    t.match(personOf(world, tenant, ADA), { suppressions: 0 })
    t.not(personOf(world, tenant, ADA)?.number, before?.number)
    world.run(liftSuppression, { ...listed, suppressionId: before?.suppressionId ?? '' })
    t.equal(entryOf(world, tenant, ADA), null)
    t.match(personOf(world, tenant, ADA), { suppressions: 0 })
  },
)

t.test('walk: bodies of poisoned commands are removed from the whole shard', async (t) => {
  const { world, tenant } = openWorld()
  for (const [at, ms] of [NOW_MS, NOW_MS - DAY_MS].entries()) {
    const cmdId = `cmd${at}`
    world.apply({
      key: stagedKey(world.shard, cmdId),
      write: 'SET',
      args: [`says ${ADA}`, 'PXAT', String(NOW_MS + DAY_MS)],
    })
    world.apply({ key: unborneKey(world.shard, Math.floor(ms / DAY_MS)), write: 'ZADD', args: [String(NOW_MS), cmdId] })
  }
  t.match(textsOf(world), /says ada/)
  eraseNow(world, tenant, ADA)
  t.notMatch(textsOf(world), /says|ada@/)
})

t.test(
  'walk: the keys that may order an erasure, and the number of pending erasures [erasure.create] [refusal.order]',
  async (t) => {
    const { world, tenant } = openWorld()
    t.match(world.run(erase, makeErase(tenant, ADA, { keyHash: LIVE_KEY })), { code: 'unauthorized' })
    world.counters.set(`erasures:${tenant.accountId}`, { open: ERASURES_OPEN_MAX })
    t.match(world.run(erase, makeErase(tenant, ADA)), { code: 'unavailable' })
    changeState(world, 'account', tenant.accountId, { status: 'closed' })
    t.match(world.run(erase, makeErase(tenant, ADA)), { code: 'account_not_active' })
  },
)

t.test('walk: an erasure ordered before its account was closed is carried out [account.closed]', async (t) => {
  const { world, tenant } = openWorld()
  const sent = sendTo(world, tenant, ADA)
  const id = order(world, tenant, ADA)
  changeState(world, 'account', tenant.accountId, { status: 'closed' })
  world.fireTimers()
  t.match(stateOf(world, id), { messages: 1, completedAtMs: NOW_MS })
  t.ok(messageOf(world, tenant.live.serverId, sent).isErased)
})

t.test('walk: the order is in the audit log, without any address', async (t) => {
  const { world, tenant } = openWorld()
  const erasureId = order(world, tenant, ADA)
  const [entry = ''] = world.sorted(auditKey(world.shard, '202611')).keys()
  t.match(entry, new RegExp(`"createErasure".*"erasureId":"${erasureId}"`))
  t.notMatch(JSON.stringify(world.ops), /@/)
  t.match(PSEUDONYM, /^erased-[a-z2-7]{12}$/)
})
