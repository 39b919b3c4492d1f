/**
 * late-outcome - the outcome of an act that a frozen process brings after a rotation of the secret: every message is
 * read as before, and nothing needs the former key.
 */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { RingNotReady, withGeneration, withNewestSealing, withoutFormer } from '../../../src/state/ring/ring.ts'
import { readBody } from '../../../src/store/outgoing.ts'
import { readMessage } from '../../../src/views/message/message.ts'
import { Cold, type ColdClaim } from '../../support/world/cold.ts'
import { DAY_MS, ownerOf, type Setting, type } from '../../support/world/cold-mail.ts'
import { deliverAll, mailTo, openWorld } from '../../support/world/erasure.ts'
import { acceptedIds, send } from '../../support/world/tenant.ts'

const OK = makeDelivered(250, '250 2.0.0 ok')
const MESSAGES = 30
const textOf = (n: number): string => `Parcel ${n} is on its way.`

/** A tenant with delivered mail of two days. */
function begin(t: Test): Setting {
  const { world, tenant } = openWorld()
  const cold = new Cold(world)
  t.teardown(() => cold.close())
  const ids = Array.from({ length: MESSAGES }, (_, n) => {
    world.nowMs += n === MESSAGES / 2 ? DAY_MS : 20_000
    const blob = Buffer.from(`\0\0\x01${JSON.stringify({ text: textOf(n), html: null })}`)
    const reply = send(world, tenant, { messages: [mailTo(`p${n % 5}@example.net`)] }, { type, blobs: [blob] })
    return acceptedIds(reply)[0] as string
  })
  deliverAll(world, OK)
  world.nowMs += DAY_MS
  return { world, tenant, cold, ids }
}

function claimOf({ world, cold }: Setting, act: 'pack' | 'seal'): ColdClaim {
  world.fireTimers()
  const claim = cold.claim(act)
  if (claim === null) throw new Error(`Nothing to ${act}`)
  return claim
}

/** A rotation as far as this: the new key seals; the former one has left the ring; a process has forgotten it. */
function rotate({ ring }: Cold, to: 'switched' | 'retired' | 'forgotten'): void {
  ring.replace(withNewestSealing(withGeneration(ring.keys, randomBytes(64))))
  if (to !== 'switched') ring.replace(withoutFormer(ring.keys))
  if (to === 'forgotten') ring.forget()
}

/** The former key is gone everywhere. */
function endRotation({ ring }: Cold): void {
  ring.replace(withoutFormer(ring.keys))
  ring.forget()
}

async function isWhole(t: Test, { world, tenant, cold, ids }: Setting): Promise<void> {
  const deps = {
    read: cold.read,
    nowMs: () => world.nowMs,
    readBody: (place: Parameters<typeof readBody>[1]) => readBody(cold.outgoing, place),
  }
  for (const [n, id] of ids.entries()) {
    const message = await readMessage(deps, ownerOf(tenant), id)
    t.equal(typeof message === 'string' ? message : message.text, textOf(n))
  }
}

for (const to of ['switched', 'retired', 'forgotten'] as const) {
  t.test(`a pack of a process that was frozen until the key was ${to} loses no text [secret.rotate]`, async (t) => {
    const setting = begin(t)
    const { cold } = setting
    const claim = claimOf(setting, 'pack')
    const outcome = await cold.perform(claim)
    t.match(outcome, { result: 'packed' })
    rotate(cold, to)
    cold.end(claim, outcome)
    endRotation(cold)
    await isWhole(t, setting)
    await cold.settle()
    t.ok(cold.packs().length > 0)
    await isWhole(t, setting)
  })

  t.test(`a segment of a process that was frozen until the key was ${to} is read [secret.rotate]`, async (t) => {
    const setting = begin(t)
    const { world, tenant, cold } = setting
    for (const [name, { item }] of world.items) if (item.startsWith('pack.')) world.items.delete(name)
    world.nowMs += 8 * DAY_MS
    const claim = claimOf(setting, 'seal')
    const outcome = await cold.perform(claim)
    t.match(outcome, { result: 'sealed' })
    rotate(cold, to)
    cold.end(claim, outcome)
    endRotation(cold)
    await isWhole(t, setting)
    world.nowMs += DAY_MS
    world.fireTimers()
    await cold.settle()
    const [segment = ''] = cold.segmentsOf(tenant.live.serverId)
    t.match(cold.row(tenant.live.serverId, segment), { generation: 1 })
    await isWhole(t, setting)
  })
}

t.test('an outcome that is decided while no key is confirmed is repeated [secret.rotate]', async (t) => {
  const setting = begin(t)
  const { world, cold } = setting
  const claim = claimOf(setting, 'pack')
  const outcome = await cold.perform(claim)
  const { sealing } = cold.ring
  cold.ring.sealing = () => {
    throw new RingNotReady('The keys of the installation could not be confirmed')
  }
  cold.end(claim, outcome)
  cold.ring.sealing = sealing
  await isWhole(t, setting)
  world.nowMs += 60_000
  await cold.settle()
  t.ok(cold.packed.includes('pack packed'))
  await isWhole(t, setting)
})
