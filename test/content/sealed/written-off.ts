/** written-off - a segment whose object is lost for good: reads are refused, erasure and retention go on. */
import t, { type Test } from 'tap'
import type { CommandType } from '../../../cluster/behaviour.ts'
import { setServerRetention } from '../../../src/actors/retention/set-retention.ts'
import { headKey, recalledKey, sealedKey } from '../../../src/state/keys.ts'
import { unpackHead } from '../../../src/state/message/head.ts'
import { isWrittenOff, packSealed, writtenOffRow } from '../../../src/state/message/sealed.ts'
import { readStoredMessage } from '../../../src/views/message/message.ts'
import {
  complain,
  DAY_MS,
  dropPacks,
  makeSetting,
  ownerOf,
  PEOPLE,
  type Setting,
} from '../../support/world/cold-mail.ts'
import { order, stateOf, textsOf } from '../../support/world/erasure.ts'
import { ACCOUNT_KEY } from '../../support/world/tenant.ts'

/** The person of the recalled message, and its place. */
const VICTIM = PEOPLE[2] as string

interface Lost extends Setting {
  readonly segment: string
  read(n: number): ReturnType<typeof readStoredMessage>
}

/** A sealed log; one message of its first segment was recalled, and then its object was written off. */
async function lose(t: Test): Promise<Lost> {
  const setting = makeSetting(t, 60)
  const { world, tenant, cold, ids } = setting
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  complain(world, tenant, { id: ids[2] as string, segment })
  await cold.settle()
  complain(world, tenant, { id: ids[2] as string, segment })
  const row = cold.row(serverId, segment)
  if (row === null || row.generation === 0) throw new Error('It is not sealed')
  const args = [segment, packSealed(writtenOffRow(row))]
  const writeOff: CommandType<null, null> = {
    name: 'write off',
    entities: () => [],
    counters: () => [],
    facts: () => [],
    decide: () => ({
      kind: 'done',
      reply: null,
      ops: [{ key: sealedKey(world.shard, serverId), write: 'HSET', args }],
    }),
  }
  world.run(writeOff, null)
  world.nowMs += 6_000
  const read = (n: number) =>
    readStoredMessage({ read: cold.read, nowMs: () => world.nowMs }, ownerOf(tenant), ids[n] as string)
  return { ...setting, segment, read }
}

t.test('a message of a lost object is damaged, never missing', async (t) => {
  const { read, cold, tenant, segment } = await lose(t)
  t.ok(isWrittenOff(cold.row(tenant.live.serverId, segment)!))
  await t.rejects(read(0), { message: 'A stored value is damaged' })
  t.match(await read(55), { head: { subject: 'Order 55' } }, 'other segments are read')
})

t.test('an erasure ends, and empties the recalled messages of the person', async (t) => {
  const { world, tenant, cold, segment } = await lose(t)
  dropPacks(world)
  t.ok(textsOf(world).includes('order 2"') || textsOf(world).includes('Order 2"'))
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  await cold.settle()
  world.fireTimers()
  t.not(stateOf(world, erasureId).completedAtMs, null)
  const after = textsOf(world)
  t.notOk(after.includes('Order 2"'))
  t.notOk(after.includes(VICTIM))
  t.ok(isWrittenOff(cold.row(tenant.live.serverId, segment)!), 'it stays written off')
})

t.test('keys of packed bodies leave its recalled messages [retention.settings]', async (t) => {
  const { world, tenant, cold, segment } = await lose(t)
  const { accountId, live } = tenant
  const heads = () => [...world.hash(headKey(world.shard, live.serverId, segment)).values()]
  t.ok(heads().some((text) => unpackHead(text, 1).stored?.packed !== undefined))
  const order = { accountId, serverId: live.serverId, keyHash: ACCOUNT_KEY, changes: { sentContentDays: 5 } }
  t.match(world.run(setServerRetention, order), { kind: 'retention' })
  world.fireTimers()
  await cold.settle()
  world.nowMs += 60_000
  t.ok((await cold.settle()).includes('strip swapped'))
  t.equal(heads().length, 1)
  t.match(unpackHead(heads()[0] ?? '', 1), { subject: 'Order 2', stored: null })
  t.ok(isWrittenOff(cold.row(live.serverId, segment)!), 'it stays written off')
})

t.test('it leaves with its retention', async (t) => {
  const { world, tenant, cold, segment } = await lose(t)
  const { serverId } = tenant.live
  for (let days = 0; days < 420; days += 20) {
    world.nowMs += 20 * DAY_MS
    world.fireTimers()
    await cold.settle()
  }
  world.fireTimers()
  t.equal(cold.row(serverId, segment), null)
  t.notOk(world.keys.has(recalledKey(world.shard, serverId, segment)))
})

t.test('a bounce of a lost message changes nothing, and its item ends', async (t) => {
  const { world, tenant, cold, ids, segment } = await lose(t)
  complain(world, tenant, { id: ids[1] as string, segment })
  t.same(await cold.settle(), ['recall absent'])
  t.same(
    cold.due().filter(({ item }) => item.startsWith('recall')),
    [],
  )
})
