/** erase - an erasure reaches every sealed segment, counts each message once, and leaves no data of the person. */
import t, { type Test } from 'tap'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { sealedPersonsKey } from '../../../src/state/keys.ts'
import { makeFilter } from '../../../src/state/message/person-filter.ts'
import { readStoredMessage } from '../../../src/views/message/message.ts'
import { complain, DAY_MS, dropPacks, makeSetting, ownerOf, PEOPLE } from '../../support/world/cold-mail.ts'
import { deliverAll, mailTo, order, stateOf, stepOnce, textsOf, walkOf } from '../../support/world/erasure.ts'
import { acceptedIds, makeItem, makeRecipient, send } from '../../support/world/tenant.ts'

const VICTIM = PEOPLE[2] as string
const isVictims = (n: number): boolean => n % PEOPLE.length === 2

t.test('every sealed segment is written again without the person, and no row names the objects before', async (t) => {
  const setting = makeSetting(t)
  const { world, tenant, cold, ids } = setting
  const { serverId } = tenant.live
  world.fireTimers()
  await cold.settle()
  const before = await cold.opened(serverId)
  const mine = ids.map((_, n) => n).filter(isVictims)
  for (const n of mine.slice(0, 12)) t.ok(before.includes(`Order ${n}\\"`), `subject ${n} is there before`)
  const rows = cold.segmentsOf(serverId).map((name) => cold.row(serverId, name))
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  t.equal(stateOf(world, erasureId).completedAtMs, null, 'it waits for the objects')
  const ended = await cold.settle()
  world.fireTimers()
  t.ok(ended.filter((one) => one === 'erase swapped').length >= 3)
  t.match(stateOf(world, erasureId), { messages: mine.length })
  const after = `${await cold.opened(serverId)}\n${textsOf(world)}`
  for (const n of mine)
    t.notOk(after.includes(`Order ${n}\\"`) || after.includes(`order ${n}"`), `subject ${n} is gone`)
  t.notOk(after.includes(VICTIM))
  t.notOk(after.includes(`name of ${VICTIM}`))
  t.ok(after.includes('Order 1\\"'), 'mail to others stays')
  for (const [at, name] of cold.segmentsOf(serverId).entries()) {
    const row = cold.row(serverId, name)
    if (row === null) continue
    t.equal(row.generation, (rows[at]?.generation ?? 0) + 1)
    t.not(row.key, rows[at]?.key, 'the key is another one')
  }
  const read = (n: number) =>
    readStoredMessage({ read: cold.read, nowMs: () => world.nowMs }, ownerOf(tenant), ids[n] as string)
  t.match(await read(2), {
    head: { subject: null },
    recipients: [{ status: 'delivered', events: [{ response: null }] }],
  })
  t.match(await read(3), { head: { subject: 'Order 3' }, recipients: [{ events: [{ response: /ok/ }] }] })
})

t.test('a segment whose filter does not hold the person is not opened, and one with a damaged filter is', async (t) => {
  const { world, tenant, cold } = makeSetting(t)
  const { serverId } = tenant.live
  world.fireTimers()
  await cold.settle()
  const sealed = cold.segmentsOf(serverId).filter((name) => cold.row(serverId, name) !== null)
  const generations = () => sealed.map((name) => cold.row(serverId, name)?.generation ?? 0)
  const setFilter = (name: string, change: (filter: string) => string): void => {
    const filter = makeFilter([], cold.row(serverId, name)?.filterBlocks).text
    const key = sealedPersonsKey(world.shard, serverId, name)
    world.apply({ key, write: 'SET', args: [change(filter), 'PXAT', String(world.nowMs + DAY_MS)] })
  }
  const [first = '', second = ''] = sealed
  setFilter(first, (filter) => filter)
  setFilter(second, (filter) => `B${filter.slice(1)}`)
  const before = generations()
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  t.equal(walkOf(world, erasureId)?.looks, sealed.length - 1)
  await cold.settle()
  world.fireTimers()
  t.ok(stateOf(world, erasureId).completedAtMs)
  t.same(
    generations(),
    before.map((one, at) => one + (at === 0 ? 0 : 1)),
  )
})

t.test('a replaced object is removed once no backup can name it', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  await cold.settle()
  const before = cold.segmentsOf(serverId).flatMap((name) => cold.row(serverId, name) ?? [])
  order(world, tenant, VICTIM)
  world.fireTimers()
  await cold.settle()
  const unlinks = world.deliveries().filter(({ lane }) => lane === 'unlink')
  for (const { day, leaf } of before) {
    const item = unlinks.find((one) => one.item === `cold/${day}/${leaf}`)
    t.ok(item !== undefined && item.atMs >= world.nowMs + 6 * DAY_MS, leaf)
  }
})

t.test('a recalled message is erased in Redis and in the object, and counted once', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  complain(world, tenant, { id: ids[2] as string, segment })
  await cold.settle()
  complain(world, tenant, { id: ids[2] as string, segment })
  t.ok(textsOf(world).includes('order 2"'))
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  await cold.settle()
  world.fireTimers()
  t.match(stateOf(world, erasureId), { messages: [2, 11, 20, 29, 38, 47, 56].length })
  t.notOk(textsOf(world).includes('order 2"'))
  t.notOk((await cold.opened(serverId)).includes('Order 2\\"'))
})

t.test('a message that is recalled while its object is written causes a second write', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  const claim = cold.claim('erase')
  if (claim === null || claim.job.act !== 'erase') throw new Error('Nothing is erased')
  const outcome = await cold.perform(claim)
  t.match(outcome, { result: 'swapped' })
  // A report on the person's mail arrives in between, with all the data of the mail.
  const place = { id: ids[claim.job.segment === segment ? 2 : 29] as string, segment: claim.job.segment }
  t.equal(complain(world, tenant, place), 'sealed')
  const recall = cold.claim('recall')
  if (recall === null) throw new Error('Nothing is recalled')
  cold.end(recall, await cold.perform(recall))
  t.equal(cold.recalled(serverId, place.segment), 1)
  cold.end(claim, outcome)
  t.equal(cold.row(serverId, place.segment)?.generation, 1, 'the object that knows nothing of it is refused')
  await cold.settle()
  world.fireTimers()
  t.match(stateOf(world, erasureId), { messages: 7 })
  t.notOk(/order (?:2|29)"/.test(textsOf(world)))
})

t.test('a recall that read the object before the erasure brings nothing back', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  complain(world, tenant, { id: ids[2] as string, segment })
  const recall = cold.claim('recall')
  if (recall === null) throw new Error('Nothing is recalled')
  const old = await cold.perform(recall)
  t.ok(JSON.stringify(old).includes('Order 2'))
  order(world, tenant, VICTIM)
  world.fireTimers()
  for (let claim = cold.claim('erase'); claim !== null; claim = cold.claim('erase'))
    cold.end(claim, await cold.perform(claim))
  cold.end(recall, old)
  t.equal(cold.recalled(serverId, segment), 0)
  await cold.settle()
  t.equal(cold.recalled(serverId, segment), 1, 'it is read again')
  t.notOk(textsOf(world).includes('order 2"'))
})

t.test('a walk inside a segment that is sealed meanwhile does not take it for an empty one', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  const claims = []
  const claim = cold.claim('seal')
  if (claim === null || claim.job.act !== 'seal') throw new Error('Nothing is sealed')
  claims.push(claim)
  const outcome = await cold.perform(claim)
  const erasureId = order(world, tenant, VICTIM)
  // The walk enters the frozen segment, and has read nothing of it yet.
  for (let steps = 0; walkOf(world, erasureId)?.place?.segment !== claim.job.segment && steps < 20; steps += 1)
    stepOnce(world)
  t.equal(walkOf(world, erasureId)?.place?.segment, claim.job.segment)
  cold.end(claim, outcome)
  t.equal(cold.row(serverId, claim.job.segment)?.generation, 1)
  world.fireTimers()
  await cold.settle()
  world.fireTimers()
  t.match(stateOf(world, erasureId), { messages: 7 })
  t.notOk((await cold.opened(serverId)).includes('Order 2\\"'))
})

t.test('a step of the walk thaws a segment that is being read out', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  const claim = cold.claim('seal')
  if (claim === null || claim.job.act !== 'seal') throw new Error('Nothing is sealed')
  const outcome = await cold.perform(claim)
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  cold.end(claim, outcome)
  t.not(cold.row(serverId, claim.job.segment)?.generation, 1, 'what was read before the erasure seals nothing')
  await cold.settle()
  world.fireTimers()
  t.match(stateOf(world, erasureId), { messages: 7 })
  t.notOk((await cold.opened(serverId)).includes('Order 2\\"'))
})

t.test('many messages whose content is kept are erased in steps, and their content goes', async (t) => {
  const { steps, messages, bodies } = await eraseMany(t, { packs: false })
  t.ok(steps >= 1)
  t.equal(messages, 250)
  t.equal(bodies, 250)
})

t.test('messages whose bodies are in packs take one step', async (t) => {
  t.same(await eraseMany(t, { packs: true }), { steps: 0, messages: 250, bodies: 0 })
})

/** Erases 250 sealed messages. Out: steps before the last, messages counted, bodies removed from Redis. */
async function eraseMany(t: Test, { packs }: { packs: boolean }) {
  const { world, tenant, cold } = makeSetting(t, 1)
  const { serverId } = tenant.live
  world.nowMs += 60_000
  const large = makeItem({ ...mailTo(VICTIM), subject: 'Secret' })
  for (let n = 0; n < 250; n += 1) {
    world.nowMs += 1_000
    send(world, tenant, { messages: [large] })
  }
  deliverAll(world, makeDelivered(250, '250 ok'))
  world.nowMs += DAY_MS
  // Another month closes the segment.
  world.nowMs = Date.UTC(2026, 11, 1, 1)
  acceptedIds(send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient('x@example.net')] })] }))
  world.nowMs += 8 * DAY_MS
  world.fireTimers()
  if (!packs) dropPacks(world)
  await cold.settle()
  const bodies = () => [...world.keys].filter(([key]) => key.includes(':bodies:')).map(([key]) => world.hash(key).size)
  const kept = bodies().reduce((sum, size) => sum + size, 0)
  t.equal(kept >= 250, !packs)
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  const ended = await cold.settle()
  world.fireTimers()
  t.notOk((await cold.opened(serverId)).includes('Secret'))
  const left = bodies().reduce((sum, size) => sum + size, 0)
  const { messages } = stateOf(world, erasureId)
  return { steps: ended.filter((one) => one === 'erase step').length, messages, bodies: kept - left }
}

t.test('while the content store is away the erasure is pending', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  world.fireTimers()
  await cold.settle()
  const erasureId = order(world, tenant, VICTIM)
  world.fireTimers()
  const claim = cold.claim('erase')
  if (claim === null) throw new Error('Nothing is erased')
  cold.end(claim, { act: 'erase', result: 'away' })
  world.fireTimers()
  t.equal(stateOf(world, erasureId).completedAtMs, null)
  world.nowMs += 3_600_000
  await cold.settle()
  world.fireTimers()
  t.match(stateOf(world, erasureId), { messages: 7 })
})

t.test('a sender is erased by the index of senders', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  await cold.settle()
  const erasureId = order(world, tenant, 'shop@acme.example')
  world.fireTimers()
  await cold.settle()
  world.fireTimers()
  t.match(stateOf(world, erasureId), { messages: 0 })
  t.not(stateOf(world, erasureId).completedAtMs, null)
  t.notOk(/Order \d|250 ok/.test(await cold.opened(serverId)))
})
