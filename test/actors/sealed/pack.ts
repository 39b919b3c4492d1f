/** pack - bodies of messages that have ended leave Redis for packs, are read as before, and none is lost or kept. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { packDue } from '../../../src/actors/sealed/pack.ts'
import { BrokenObject } from '../../../src/content/framing.ts'
import { openJoined } from '../../../src/content/joined.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { packHead, type StoredContent, unpackHead } from '../../../src/state/message/head.ts'
import { packName, packOwner } from '../../../src/state/message/packed.ts'
import { openMailKey } from '../../../src/state/ring/sealing.ts'
import { readBody } from '../../../src/store/outgoing.ts'
import { readMessage } from '../../../src/views/message/message.ts'
import { Cold, type ColdClaim } from '../../support/world/cold.ts'
import { complain, DAY_MS, ownerOf, PEOPLE, type Setting, type } from '../../support/world/cold-mail.ts'
import { deliverAll, mailTo, openWorld, order, textsOf } from '../../support/world/erasure.ts'
import { ringOf } from '../../support/world/rings.ts'
import { acceptedIds, send } from '../../support/world/tenant.ts'

const RING = ringOf('cold')
const HOUR_MS = 3_600_000
const OK = makeDelivered(250, '250 2.0.0 ok')

/** Text of the message to a person. */
const textOf = (n: number): string => `Dear ${PEOPLE[n % PEOPLE.length]}, parcel ${n} is on its way.`

/** A tenant with some mail of two days, each with a text of its own. */
function makeMail(t: Test, count = 60, changes: ConstructorParameters<typeof Cold>[1] = {}): Setting {
  const { world, tenant } = openWorld()
  const cold = new Cold(world, changes)
  t.teardown(() => cold.close())
  const ids = Array.from({ length: count }, (_, n) => {
    world.nowMs += n === Math.floor(count / 2) ? DAY_MS : 20_000
    return sendOne({ world, tenant }, n)
  })
  return { world, tenant, cold, ids }
}

function sendOne({ world, tenant }: Pick<Setting, 'world' | 'tenant'>, n: number): string {
  const blob = Buffer.from(`\0\0\x01${JSON.stringify({ text: textOf(n), html: null })}`)
  const item = { ...mailTo(PEOPLE[n % PEOPLE.length] as string), subject: `Parcel ${n}` }
  const reply = send(world, tenant, { messages: [item] }, { type, blobs: [blob] })
  return acceptedIds(reply)[0] as string
}

/** Runs the daily sweep, and all that it orders. */
async function sweep({ world, cold }: Setting, afterMs = DAY_MS): Promise<void> {
  world.nowMs += afterMs
  world.fireTimers()
  await cold.settle()
}

/** What a message shows. */
async function textIn({ world, tenant, cold }: Setting, id: string): Promise<string | null> {
  const deps = {
    read: cold.read,
    nowMs: () => world.nowMs,
    readBody: (place: Parameters<typeof readBody>[1]) => readBody(cold.outgoing, place),
  }
  const message = await readMessage(deps, ownerOf(tenant), id)
  if (typeof message === 'string') throw new Error(message)
  return message.text
}

/** Bodies that are still in Redis. */
function bodiesIn({ world }: Setting): number {
  return [...world.keys.keys()]
    .filter((key) => key.includes(':bodies:') || key.includes(':content:'))
    .reduce((sum, key) => sum + Math.max(1, world.hash(key).size), 0)
}

/** What the heads of Redis say of packs. */
function placesIn({ world }: Setting): StoredContent[] {
  return [...world.keys.keys()]
    .filter((key) => key.includes(':head:'))
    .flatMap((key) => [...world.hash(key).values()])
    .flatMap((text) => unlessDamaged(() => unpackHead(text, 0))?.stored ?? [])
    .filter(({ packed }) => packed !== undefined)
}

/** Every text that some key which Redis or an object holds opens in a pack. */
async function openedIn(setting: Setting): Promise<string> {
  const { world, tenant, cold } = setting
  const texts: string[] = []
  const sealed = await cold.opened(tenant.live.serverId)
  const hashes = [...world.keys.keys()].flatMap((key) => [...world.hash(key).values()])
  const known = `${hashes.join('\n')}\n${sealed}`
  const keys = new Set(known.match(/(?<![\w-])[\w-]{54}(?![\w-])/g))
  for (const name of cold.packs()) {
    const pack = readFileSync(join(cold.folder, name))
    for (const key of keys) texts.push(...(await openAnywhere(pack, key)))
  }
  return texts.join('\n')
}

/** Tries a key at each place where a sealed body begins. */
async function openAnywhere(pack: Buffer, sealedKey: string): Promise<string[]> {
  const mailKey = openMailKey(RING, sealedKey)
  if (mailKey === null) return []
  const begins: number[] = []
  for (let at = pack.indexOf('SWC1'); at >= 0; at = pack.indexOf('SWC1', at + 1)) begins.push(at)
  const opened = begins.map(async (from, index) => {
    const bytes = pack.subarray(from, begins[index + 1] ?? pack.length)
    const text = await openJoined(bytes, { mailKey, kind: 'body' }).catch((error: unknown) => {
      if (error instanceof BrokenObject) return null
      throw error
    })
    return text === null ? [] : [text.toString()]
  })
  return (await Promise.all(opened)).flat()
}

function packClaim({ world, cold }: Setting): ColdClaim {
  world.fireTimers()
  const claim = cold.claim('pack')
  if (claim === null) throw new Error('Nothing is packed')
  return claim
}

t.test('bodies of ended messages leave Redis, and every message shows its text', async (t) => {
  const setting = makeMail(t)
  const { world, cold, ids } = setting
  deliverAll(world, OK)
  t.equal(bodiesIn(setting), ids.length)
  await sweep(setting)
  t.equal(bodiesIn(setting), 0)
  t.equal(placesIn(setting).length, ids.length)
  t.notOk(cold.bytes().includes('parcel'), 'packs are encrypted')
  for (const [n, id] of ids.entries()) t.equal(await textIn(setting, id), textOf(n))
  const days = new Set(cold.packs().map((name) => name.split('/')[2]))
  t.same([...days], ['20261220', '20261221'], 'each under the last day of its content')
  world.nowMs += 8 * DAY_MS
  world.fireTimers()
  await cold.settle()
  t.ok(cold.objects().length > 0, 'its segment has left Redis as well')
  for (const [n, id] of ids.slice(0, 20).entries()) t.equal(await textIn(setting, id), textOf(n))
  t.same(cold.warnings, [])
})

t.test('a body waits for the last attempt, and is packed by the second look', async (t) => {
  const setting = makeMail(t, 20)
  const { world, cold, tenant, ids } = setting
  const late = sendOne(setting, 7)
  deliverAll(world, OK)
  const open = sendOne(setting, 8)
  await sweep(setting)
  t.equal(bodiesIn(setting), 1, 'the last one has no end')
  t.equal(await textIn(setting, open), textOf(8))
  deliverAll(world, OK)
  await sweep(setting)
  t.equal(bodiesIn(setting), 1, 'the first look is over')
  await sweep(setting, 3 * DAY_MS)
  t.equal(bodiesIn(setting), 0)
  for (const [id, n] of [
    [open, 8],
    [late, 7],
    [ids[3] as string, 3],
  ] as const)
    t.equal(await textIn(setting, id), textOf(n))
  const packs = cold.packs().length
  await sweep(setting)
  t.equal(cold.packs().length, packs, 'nothing is packed twice')
  t.match(world.counters.get(packOwner(tenant.live.serverId)), { writing: '' })
})

t.test('what is younger than an hour stays', async (t) => {
  const setting = makeMail(t, 4)
  const { world, tenant } = setting
  deliverAll(world, OK)
  await sweep(setting)
  const young = sendOne(setting, 5)
  deliverAll(world, OK)
  // The sweep of the day before has ordered this look again.
  const look = packDue(tenant.accountId, { serverId: tenant.live.serverId, look: 0 }, 0)
  world.items.set(`${look.lane} ${look.item}`, { ...look, claims: 0 })
  await sweep(setting, HOUR_MS / 2)
  t.equal(bodiesIn(setting), 1)
  t.equal(await textIn(setting, young), textOf(5))
})

t.test('an erasure while a pack is written leaves the body without a key', async (t) => {
  const setting = makeMail(t, 30)
  const { world, tenant, cold } = setting
  deliverAll(world, OK)
  world.nowMs += DAY_MS
  const claim = packClaim(setting)
  const outcome = await cold.perform(claim)
  t.match(outcome, { result: 'packed' })
  order(world, tenant, PEOPLE[2] as string)
  world.fireTimers()
  cold.end(claim, outcome)
  t.equal(placesIn(setting).length, 13, 'the other bodies of the pack')
  await cold.settle()
  const opened = await openedIn(setting)
  t.ok(opened.includes('parcel 3 '), 'others are read')
  for (const n of [2, 11, 20, 29]) t.notOk(opened.includes(`parcel ${n} `), `text ${n} is gone`)
  t.notOk(opened.includes(PEOPLE[2] as string))
  t.notOk(textsOf(world).includes('parcel 2 '))
})

t.test('an erasure reaches packed bodies, of messages in Redis and in sealed segments', async (t) => {
  for (const days of [0, 9]) {
    const setting = makeMail(t, 60)
    const { world, tenant, cold, ids } = setting
    deliverAll(world, OK)
    await sweep(setting)
    if (days > 0) await sweep(setting, days * DAY_MS)
    t.equal(cold.objects().length > 0, days > 0)
    const before = await openedIn(setting)
    t.ok(before.includes('parcel 2 ') && before.includes('parcel 3 '))
    order(world, tenant, PEOPLE[2] as string)
    world.fireTimers()
    await cold.settle()
    world.fireTimers()
    const after = await openedIn(setting)
    for (const [n] of ids.entries())
      t.equal(after.includes(`parcel ${n} `), n % PEOPLE.length !== 2, `text ${n}, ${days} days later`)
    t.equal(await textIn(setting, ids[2] as string), null)
    t.equal(await textIn(setting, ids[3] as string), textOf(3))
  }
})

t.test('a claim that comes back writes another pack, and the one before is removed', async (t) => {
  const setting = makeMail(t, 20)
  const { world, cold, ids } = setting
  deliverAll(world, OK)
  world.nowMs += DAY_MS
  const slow = packClaim(setting)
  const old = await cold.perform(slow)
  world.nowMs += 11 * 60_000
  const again = cold.claim('pack')
  if (again === null || again.job.act !== 'pack' || slow.job.act !== 'pack') throw new Error('It does not come back')
  t.not(again.job.object, slow.job.object)
  const [before, after] = [slow.job.object, again.job.object]
  const leaving = () => new Set(world.deliveries().flatMap(({ lane, item }) => (lane === 'unlink' ? [item] : [])))
  t.ok(leaving().has(`out/${before}`), 'even if nothing is ever heard of it')
  cold.end(slow, old)
  t.same(placesIn(setting), [], 'the slow one changes nothing')
  cold.end(again, await cold.perform(again))
  t.ok(placesIn(setting).every(({ packed }) => packed?.object === after))
  t.notOk(leaving().has(`out/${after}`))
  await cold.settle()
  for (const [n, id] of ids.entries()) t.equal(await textIn(setting, id), textOf(n))
})

t.test('an outcome that comes twice removes nothing', async (t) => {
  const setting = makeMail(t, 10)
  const { world, cold, ids } = setting
  deliverAll(world, OK)
  world.nowMs += DAY_MS
  const claim = packClaim(setting)
  const outcome = await cold.perform(claim)
  cold.end(claim, outcome)
  cold.end(claim, outcome)
  t.ok(placesIn(setting).length > 0)
  t.same(
    world.deliveries().filter(({ lane }) => lane === 'unlink'),
    [],
  )
  await cold.settle()
  for (const [n, id] of ids.entries()) t.equal(await textIn(setting, id), textOf(n))
})

t.test('what cannot be read back removes nothing', async (t) => {
  let breaks = true
  const setting = makeMail(t, 10, {
    contents: (made) => ({
      async readSealed(name, span) {
        const found = await made.readSealed(name, span)
        if (breaks && typeof found !== 'string') found[found.length - 1]! ^= 1
        return found
      },
    }),
  })
  const { world, cold, ids } = setting
  deliverAll(world, OK)
  world.nowMs += DAY_MS
  const claim = packClaim(setting)
  const outcome = await cold.perform(claim)
  t.match(outcome, { result: 'away' })
  cold.end(claim, outcome)
  t.equal(bodiesIn(setting), ids.length)
  breaks = false
  await sweep(setting)
  t.equal(bodiesIn(setting), 0)
})

t.test('a failed pack waits a second, and longer only while failures follow each other', (t) => {
  const setting = makeMail(t, 10)
  const { world, cold } = setting
  deliverAll(world, OK)
  world.nowMs += DAY_MS
  /** Ends the next claim; returns the wait until the item is due again. */
  const wait = (isAway: boolean): number => {
    const claim = packClaim(setting)
    if (claim.job.act !== 'pack') throw new Error('No pack')
    const { segment, object, after } = claim.job
    const place = { act: 'pack', segment, object } as const
    const packed = { ...place, result: 'packed', bodies: [], next: after, isEnd: false } as const
    cold.end(claim, isAway ? { ...place, result: 'away' } : packed)
    const startedMs = world.nowMs
    world.nowMs = world.deliveries().find(({ item }) => item === claim.item)?.atMs ?? Number.NaN
    return world.nowMs - startedMs
  }
  for (let written = 0; written < 7; written += 1) wait(false)
  t.same([true, true, true].map(wait), [1_000, 2_000, 4_000])
  wait(false)
  t.equal(wait(true), 1_000, 'a written pack ends the row of failures')
  const later = Array.from({ length: 14 }, () => wait(true))
  t.equal(later.at(-1), HOUR_MS)
  t.end()
})

t.test('a message that was read before its body left is read again', async (t) => {
  const setting = makeMail(t, 6)
  const { world, cold, tenant, ids } = setting
  deliverAll(world, OK)
  await sweep(setting)
  const [id = ''] = ids
  const deps = {
    read: cold.read,
    nowMs: () => world.nowMs,
    // The head of before.
    readBody: (place: Parameters<typeof readBody>[1]) =>
      place.stored === null ? Promise.resolve(null) : readBody(cold.outgoing, place),
  }
  const headKey = [...world.keys.keys()].find((key) => key.includes(':head:') && world.hash(key).has(shortId(id))) ?? ''
  const heads = world.hash(headKey) as Map<string, string>
  const now = heads.get(shortId(id)) as string
  heads.set(shortId(id), packHead({ ...unpackHead(now, 1), stored: null }))
  let reads = 0
  const read = (async (shard: number, facts: never) => {
    // The commit comes between the two reads of the head.
    const seen = await cold.read(shard, facts)
    if (JSON.stringify(facts).includes(':head:') && ++reads === 1) heads.set(shortId(id), now)
    return seen
  }) as typeof cold.read
  t.match(await readMessage({ ...deps, read }, ownerOf(tenant), id), { text: textOf(0) })
  t.equal(reads, 2)
})

t.test('a pack that is gone or changed is an error, and never another text', async (t) => {
  const setting = makeMail(t, 6)
  const { world, cold, ids } = setting
  deliverAll(world, OK)
  await sweep(setting)
  const [{ packed }] = placesIn(setting) as [StoredContent]
  const path = join(cold.folder, packName(world.shard, packed?.object ?? ''))
  const good = readFileSync(path)
  writeFileSync(path, Buffer.alloc(good.length, 1))
  await t.rejects(textIn(setting, ids[0] as string), { message: 'A stored value is damaged' })
  writeFileSync(path, good.subarray(0, 30))
  await t.rejects(textIn(setting, ids[0] as string), { message: 'A stored value is damaged' })
  rmSync(path)
  await t.rejects(textIn(setting, ids[0] as string), { message: 'The content of a message is missing' })
  writeFileSync(path, good)
  t.equal(await textIn(setting, ids[0] as string), textOf(0))
})

t.test('a damaged row stays in Redis and holds nothing back', async (t) => {
  const setting = makeMail(t, 12)
  const { world, cold, ids } = setting
  deliverAll(world, OK)
  const damage = (kind: string, id: string): void => {
    const key = [...world.keys.keys()].find((one) => one.includes(`:${kind}:`)) ?? ''
    const fields = world.hash(key) as Map<string, string>
    const field = [...fields.keys()].find((one) => one.startsWith(shortId(id))) ?? ''
    fields.set(field, (fields.get(field) ?? '').replace(/.~~/, 'x~~'))
  }
  damage('head', ids[2] as string)
  damage('status', ids[4] as string)
  await sweep(setting)
  t.equal(bodiesIn(setting), 2)
  t.equal(await textIn(setting, ids[3] as string), textOf(3))
  t.same(cold.packed.slice(0, 1), ['pack packed'])
})

t.test('a complaint about a message in a frozen segment, and a pack, lose neither', async (t) => {
  const setting = makeMail(t, 60)
  const { world, tenant, cold, ids } = setting
  const { serverId } = tenant.live
  deliverAll(world, OK)
  world.nowMs += 9 * DAY_MS
  world.fireTimers()
  const pack = cold.claim('pack')
  const seal = cold.claim('seal')
  if (pack === null || seal === null || seal.job.act !== 'seal') throw new Error('Nothing is due')
  const packed = await cold.perform(pack)
  const sealed = await cold.perform(seal)
  cold.end(pack, packed)
  t.equal(cold.row(serverId, seal.job.segment), null, 'the pack thaws it')
  cold.end(seal, sealed)
  t.equal(cold.row(serverId, seal.job.segment), null)
  await cold.settle()
  complain(world, tenant, { id: ids[0] as string, segment: seal.job.segment })
  await cold.settle()
  for (const [n, id] of ids.entries()) t.equal(await textIn(setting, id), textOf(n))
})
