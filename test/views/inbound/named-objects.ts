/**
 * named-objects - the sweep of the content store over rows in memory and files on a disk: named objects stay, all
 * others are removed.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type Contents, makeContents } from '../../../src/content/contents.ts'
import { makeFileHome } from '../../../src/content/files.ts'
import { sweepContents } from '../../../src/content/sweep.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/state/calendar.ts'
import { contentHeadKey } from '../../../src/state/received/content-head.ts'
import { receivedObjectName } from '../../../src/state/received/object.ts'
import { readNamedObjects } from '../../../src/views/inbound/named-objects.ts'
import { makeInboundStream, makeParsed, makeReceive, parseNext, receiveMail } from '../../support/world/inbound.ts'
import { makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const mailKey = randomBytes(32)
/** Mails come over noon, and over midnight. */
const STARTS = [Date.UTC(2026, 10, 20, 11, 50), Date.UTC(2026, 10, 20, 23, 50)]
/** A mail takes up to twenty minutes to come, and a moment to be committed. */
const TAKES_MS = [0, 4_000, 20 * MINUTE_MS]

async function keep(contents: Contents, root: string, { name, atMs }: { name: string; atMs: number }): Promise<void> {
  await contents.put({ names: [name], mailKey, kind: 'mail', source: [Buffer.from(name)], bytesMax: 100 })
  utimesSync(join(root, name), atMs / 1000, atMs / 1000)
}

for (const startMs of STARTS)
  t.test(`named-objects: from ${new Date(startMs).toISOString()} on [retention.inbound]`, async (t) => {
    const root = mkdtempSync(join(tmpdir(), 'sendwright-named-'))
    t.teardown(() => rmSync(root, { recursive: true, force: true }))
    const told = () => undefined
    const contents = makeContents({ home: makeFileHome(root, { worker: () => 'me' }), room: null, told, warn: told })
    const world = new World(startMs)
    const tenant = makeTenant(world)
    const { serverId } = tenant.live
    const streamId = makeInboundStream(world, tenant)
    const named: string[] = []
    const orphans: string[] = []
    const ids: string[] = []
    for (const takesMs of TAKES_MS) {
      const body = makeReceive(world, tenant, { streamId, hashes: ['a', 'b'] })
      const lost = makeReceive(world, tenant, { streamId })
      world.nowMs += takesMs
      for (const { objectId } of body.recipients) named.push(receivedObjectName(world.shard, serverId, objectId))
      for (const { objectId } of lost.recipients) orphans.push(receivedObjectName(world.shard, serverId, objectId))
      ids.push(...receiveMail(world, tenant, { ...body, streamId }))
      const parsed = makeParsed(world)
      parseNext(world, { result: 'parsed', parsed })
      named.push(receivedObjectName(world.shard, serverId, parsed.parsedId as string))
    }
    for (const name of [...named, ...orphans]) await keep(contents, root, { name, atMs: world.nowMs })
    const { read } = readerOf(world)
    const sweep = (nowMs: number, sweptAtMs = 0) =>
      sweepContents({
        contents,
        nowMs: () => nowMs,
        shards: () => [world.shard],
        isLiving: () => true,
        namedOf: (shard, names) => readNamedObjects(read, shard, names),
        sweptAtMs: () => sweptAtMs,
      })
    const files = () =>
      (readdirSync(root, { recursive: true, encoding: 'utf8' }) as string[])
        .map((name) => name.replaceAll('\\', '/'))
        .filter((name) => /\/in\/\d{8}\/./.test(name))
        .sort()
    t.equal(await sweep(world.nowMs + HOUR_MS - 1), 0, 'nothing is swept within the hour')
    t.equal(await sweep(world.nowMs + 2 * HOUR_MS), orphans.length)
    t.same(files(), [...named].sort(), 'what a row names is there, nothing else')
    const headKey = contentHeadKey(world.shard, serverId, ids[0] as string)
    const [damaged] = world.hash(headKey).keys()
    world.apply({ key: headKey, write: 'HSET', args: [damaged as string, '["x"]~~AAAAAA'] })
    const readNamed = await readNamedObjects(readerOf(world).read, world.shard, [...named, ...orphans])
    t.ok(readNamed !== null && named.every((name) => readNamed.has(name)), 'a damaged row removes nothing')
    world.keys.delete(headKey)
    const isAway = sweepContents({
      contents,
      nowMs: () => world.nowMs + 2 * HOUR_MS,
      shards: () => [world.shard],
      isLiving: () => true,
      namedOf: (shard, names) => readNamedObjects(async () => null, shard, names),
    })
    t.equal(await isAway, 0, 'a store that does not answer takes nothing away')
    t.equal(await sweep(world.nowMs + 40 * DAY_MS), named.length, 'past its days all goes, whatever a row says')
  })
