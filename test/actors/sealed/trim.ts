/** trim - what is past its age leaves a sealed segment within a day, and a segment that is past it goes whole. */
import t from 'tap'
import { msOf } from '../../../cluster/id.ts'
import { cutoffMs } from '../../../src/state/age.ts'
import { readStoredMessage } from '../../../src/views/message/message.ts'
import { complain, DAY_MS, makeSetting, ownerOf } from '../../support/world/cold-mail.ts'

t.test('messages leave a sealed segment by their age, and the segment leaves with the last one', async (t) => {
  const setting = makeSetting(t, 60)
  const { world, tenant, cold, ids } = setting
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  const whole = cold.row(serverId, segment)
  complain(world, tenant, { id: ids[1] as string, segment })
  await cold.settle()
  complain(world, tenant, { id: ids[1] as string, segment })
  // The instant at which the tenth message is the oldest that is kept.
  const border = msOf(ids[10] as string)
  world.nowMs += 380 * DAY_MS
  while (cutoffMs(world.nowMs, false) < border) world.nowMs += 10_000
  const kept = ids.filter((id) => msOf(id) >= cutoffMs(world.nowMs, false))
  t.ok(kept.length < ids.length, 'some are past their age')
  world.fireTimers()
  await cold.settle()
  const cut = cold.row(serverId, segment)
  t.match(cut, { generation: 2, messages: kept.length - ids.length + (whole?.messages ?? 0) })
  t.ok((cut?.firstMs ?? 0) >= border)
  t.notOk((await cold.opened(serverId)).includes('Order 9\\"'))
  t.equal(cold.recalled(serverId, segment), 0, 'what was recalled left with its age')
  const read = (id: string) => readStoredMessage({ read: cold.read, nowMs: () => world.nowMs }, ownerOf(tenant), id)
  t.equal(await read(ids[0] as string), 'not_found')
  for (const id of kept.slice(0, 5)) t.match(await read(id), { messageId: id })
  world.nowMs += 60 * DAY_MS
  world.fireTimers()
  await cold.settle()
  t.same(
    cold.segmentsOf(serverId).map((name) => cold.row(serverId, name)),
    [],
  )
  const left = world.keyNames().filter((key) => /:(?:sealed|recalled|log|head|status|segments)/.test(key))
  t.same(left, [])
  const unlinks = world.deliveries().filter(({ lane, atMs }) => lane === 'unlink' && atMs <= world.nowMs)
  t.ok(
    unlinks.some(({ item }) => item.includes(segment)),
    'the object is removed',
  )
})

t.test('a trim that was overtaken changes nothing', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  world.nowMs += 380 * DAY_MS
  while (cutoffMs(world.nowMs, false) < msOf(ids[3] as string)) world.nowMs += 10_000
  world.fireTimers()
  const first = cold.claim('trim')
  if (first === null) throw new Error('Nothing is trimmed')
  const outcome = await cold.perform(first)
  t.match(cold.row(serverId, segment), { generation: 1, next: /./ })
  // The claim returns, and a second process names an object of its own.
  world.items.set(`${first.lane} ${first.item}`, { lane: first.lane, item: first.item, atMs: world.nowMs, claims: 1 })
  const second = cold.claim('trim')
  if (second === null) throw new Error('Nothing is trimmed')
  cold.end(first, outcome)
  t.match(cold.row(serverId, segment), { generation: 1 }, 'the first one is too late')
  cold.end(second, await cold.perform(second))
  t.match(cold.row(serverId, segment), { generation: 2, next: '' })
  cold.end(second, outcome)
  t.match(cold.row(serverId, segment), { generation: 2 }, 'twice is once')
  t.match(await cold.opened(serverId), /Order 3/)
})

t.test('a trim whose outcome comes twice leaves the new object in use', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  world.nowMs += 380 * DAY_MS
  while (cutoffMs(world.nowMs, false) < msOf(ids[3] as string)) world.nowMs += 10_000
  world.fireTimers()
  const claim = cold.claim('trim')
  if (claim === null) throw new Error('Nothing is trimmed')
  const outcome = await cold.perform(claim)
  cold.end(claim, outcome)
  cold.end(claim, outcome)
  const { leaf = '' } = cold.row(serverId, segment) ?? {}
  t.match(cold.row(serverId, segment), { generation: 2 })
  t.notOk(world.deliveries().some(({ lane, item }) => lane === 'unlink' && item.endsWith(leaf)))
})
