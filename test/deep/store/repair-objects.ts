/**
 * repair-objects - segments of the log and packs of bodies that are missing, damaged, frozen or named by nothing: what
 * `doctor`, `inspect` and `repair objects` make of them, on a running service.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { MOVE_PREFIX } from '../../../cluster/store.ts'
import type { Health } from '../../../schemas/operator/health.ts'
import { coldName, frozenRow, leafOf, packSealed, unpackSealed } from '../../../src/state/message/sealed.ts'
import { oneNode } from '../../../src/store/nodes.ts'
import { checkObjects } from '../../../src/store/repair/check-objects.ts'
import { withObjects } from '../../../src/store/repair/open-objects.ts'
import { withStore } from '../../../src/store/with-store.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { sendwright } from '../../support/service/command-line.ts'
import { startTestService } from '../../support/service/service.ts'

const WAIT_MS = 60_000
const COUNT = 30
const OTHER_SEGMENT = '20260101-0-1'

t.test('objects: what is found and repaired', { skip: MOVED_CLOCK_SKIP }, async (t) => {
  const clock = makeMovedClock()
  const service = await clock.around(() => startTestService({ CONTENT_STORE: 'file', HOT_DAYS: '4' }))
  const redis = new Redis({ path: service.redis.socketPath })
  const backup = mkdtempSync(join(tmpdir(), 'sendwright-objects-'))
  t.teardown(async () => {
    redis.disconnect()
    await service.stop()
    rmSync(backup, { recursive: true, force: true })
  })
  const { testServer, operatorToken } = service.firstRun
  const { token, serverId } = testServer
  const content = join(service.dataDir, 'content')
  const environment = {
    REDIS_URL: `unix://${service.redis.socketPath}`,
    SECRET_KEY: service.config.secretKey as string,
    DATA_DIR: service.dataDir,
    CONTENT_STORE: 'file',
  }
  const run = (...args: string[]) => sendwright(args, environment)
  const deep = async () => JSON.parse((await run('doctor', '--deep', '--json')).out)
  const faults = async () => (await deep()).objects.faults as { kind: string; damage?: string }[]
  const repair = async (...args: string[]) => {
    const { out, code, err } = await run('repair', 'objects', '--yes', '--json', ...args)
    return code > 1 || out === '' ? { code, err } : { code, ...JSON.parse(out) }
  }
  /** The check of the objects, with some commands answered otherwise. */
  const checkWith = (own: {
    readonly hget?: (key: string, field: string) => Promise<string | null>
    readonly hgetall?: (key: string) => Promise<Record<string, string>>
  }) => {
    const config = { ...service.config, redisUrls: [environment.REDIS_URL], dataDir: service.dataDir }
    const seen = new Proxy(redis, {
      get(target, name) {
        const value = Reflect.get(own, name) ?? Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    return withStore(config, (nodes) =>
      withObjects(nodes, config, (open) => checkObjects({ ...open, nodes: oneNode(() => seen) })),
    )
  }
  const send = (n: number) =>
    service.call('POST /v1/email', {
      token,
      body: {
        from: 'shop@simulator.test',
        to: [`delivered+p${n % 3}@simulator.test`],
        subject: `Order ${n}`,
        text: 'Hi',
      },
    })
  const show = (id: string) => service.call(`GET /v1/messages/${id}`, { token })
  const search = (recipient: string) =>
    service.call('POST /v1/messages/search', { token, body: { recipient, limit: 100 } })
  const finding = async () => {
    const { json } = await service.operate('GET /v1/operator/health', { token: operatorToken })
    return (json as Health).findings.find(({ name }) => name === 'segments')
  }
  const ids: string[] = []
  for (let n = 0; n < COUNT; n += 1) ids.push((await send(n)).json.messageId)
  for (const id of ids) await until(async () => (await show(id)).json.status === 'delivered', WAIT_MS)
  clock.moveTo(1.1)
  await until(async () => (await send(99).catch(() => null))?.status === 200, WAIT_MS)
  clock.moveTo(5.5)
  const sealedKey = `{s000}:sealed:${serverId}`
  const [segment, text] = await until(async () => {
    const rows = Object.entries(await redis.hgetall(sealedKey))
    return rows.find(([, row]) => (unpackSealed(row)?.generation ?? 0) > 0) ?? null
  }, WAIT_MS)
  const row = unpackSealed(text)!
  const object = coldName(0, row)
  const path = join(content, object)
  const good = readFileSync(path)
  const pack = readdirSync(join(content, '000/out'), { recursive: true, encoding: 'utf8' })
    .map((name) => `000/out/${name}`)
    .filter((name) => statSync(join(content, name)).isFile())
    .sort((one, other) => statSync(join(content, other)).size - statSync(join(content, one)).size)[0] as string
  const damage = (name: string) => {
    const bytes = Buffer.from(readFileSync(join(content, name)))
    bytes[200]! ^= 1
    writeFileSync(join(content, name), bytes)
  }

  await t.test('nothing is wrong at first, and a segment is shown as Redis had it', async (t) => {
    t.match(await finding(), { status: 'ok', message: /^1 segments of the message log with 30 messages are in/ })
    const found = await deep()
    t.match(found.objects, { segments: 1, messages: COUNT, packs: 2, bodies: COUNT + 1, faults: [] })
    t.equal(found.ok, true)
    t.same(await repair(), { code: 0, found: { ...found.objects }, done: [], left: 0 })
    const shown = await run('inspect', 'segment', serverId, segment)
    t.equal(shown.code, 0, shown.err)
    t.match(shown.out, new RegExp(`^Object ${object}, generation 1, ${row.size} bytes in 1 blocks$`, 'm'))
    t.equal(shown.out.match(/Order \d+/g)?.length, COUNT)
    t.equal(shown.out.match(/^XRANGE .*\(block 0\)$/gm)?.length, COUNT)
    t.match(await run('inspect', 'segment', serverId, '202001-0-1'), { code: 1, err: /has no segment 202001-0-1/ })
    const open = (await redis.zrange(`{s000}:segments:${serverId}`, -1, -1))[0] as string
    t.match((await run('inspect', 'segment', serverId, open)).out, /^The segment is in Redis$/m)
    const { json } = await service.operate(`GET /v1/operator/messages/${ids[4]}`, { token: operatorToken })
    t.match(json, { sealedObject: object, sealedGeneration: 1 })
    cpSync(content, join(backup, 'content'), { recursive: true })
  })

  await t.test('a missing object is damage for every reader, and returns from a backup', async (t) => {
    rmSync(path)
    // The opened block is kept for seconds.
    await until(async () => (await show(ids[0] as string)).status === 503, WAIT_MS)
    t.match((await show(ids[0] as string)).json, { error: 'data_damaged' })
    t.match((await search('delivered+p1@simulator.test')).json, { error: 'data_damaged' })
    t.match(await finding(), { status: 'failed', message: new RegExp(`${object} is missing`), fix: /repair objects/ })
    const printed = await run('doctor', '--deep')
    t.match(printed.out, /with 30 messages: its object .* is missing/)
    t.equal(printed.code, 1)
    t.same(
      (await faults()).map(({ kind }) => kind),
      ['segment'],
      'the packs that its heads name are not taken for unnamed ones',
    )
    t.match(await repair(), { code: 1, done: ['left'], left: 1 }, 'without a backup nothing is changed')
    t.equal(await redis.hget(sealedKey, segment), text)
    t.match(await repair('--from', backup), { code: 0, done: ['restored'], left: 0 })
    t.same(readFileSync(path), good)
    t.match((await show(ids[0] as string)).json, { subject: 'Order 0' })
    t.equal((await search('delivered+p1@simulator.test')).json.messages.length, COUNT / 3)
  })

  await t.test('damaged, cut and swapped objects are found, and a damaged backup is not used', async (t) => {
    const copy = join(backup, 'content', object)
    for (const bytes of [good.subarray(0, 300), Buffer.alloc(good.length, 1), Buffer.alloc(0)]) {
      writeFileSync(path, bytes)
      t.match(await faults(), [{ kind: 'segment', damage: 'broken' }])
      t.match(await finding(), { status: 'failed' })
    }
    writeFileSync(copy, good.subarray(0, good.length - 1))
    t.match(await repair('--from', backup), { code: 1, done: ['left'] })
    writeFileSync(copy, good)
    t.match(await repair('--from', backup), { code: 0, done: ['restored'] })
  })

  await t.test('packs: missing and damaged ones return too', async (t) => {
    rmSync(join(content, pack))
    t.match(await faults(), [{ kind: 'pack', damage: 'missing', object: pack, messages: COUNT }])
    t.match(await repair('--from', backup), { code: 0, done: ['restored'] })
    damage(pack)
    t.match(await faults(), [{ kind: 'pack', damage: 'broken' }])
    t.match(await repair('--from', backup), { code: 0, done: ['restored'] })
    t.match((await show(ids[3] as string)).json, { text: 'Hi' })
  })

  await t.test('a filter is built again, and answers as before', async (t) => {
    const key = `{s000}:sealed-persons:${serverId}:${segment}`
    const filter = await redis.get(key)
    await redis.del(key)
    t.match(await faults(), [{ kind: 'filter' }])
    t.equal((await search('delivered+p1@simulator.test')).json.messages.length, COUNT / 3, 'without it all is opened')
    t.match(await repair(), { code: 0, done: ['rebuilt'] })
    t.equal(await redis.get(key), filter)
    t.ok((await redis.pttl(key)) > 0)
  })

  await t.test('a segment that stayed frozen thaws; a young one is left alone', async (t) => {
    const old = leafOf({ serverId, segment: OTHER_SEGMENT }, ids[0] as string)
    const young = leafOf({ serverId, segment: OTHER_SEGMENT }, (await send(98)).json.messageId)
    await redis.hset(sealedKey, OTHER_SEGMENT, packSealed(frozenRow(young, '20270101')))
    t.same(await faults(), [])
    await redis.hset(sealedKey, OTHER_SEGMENT, packSealed(frozenRow(old, '20270101')))
    t.match(await faults(), [{ kind: 'frozen', segment: OTHER_SEGMENT }])
    t.match(await repair(), { code: 0, done: ['thawed'] })
    t.equal(await redis.hget(sealedKey, OTHER_SEGMENT), null)
    await until(async () => (await show(ids[0] as string)).status === 200, WAIT_MS)
  })

  await t.test('rows and objects that nothing names are removed, once they are old enough', async (t) => {
    await redis.hset(`{s000}:recalled:${serverId}:${OTHER_SEGMENT}`, 'AaIOGHMWcACAAETJwGeK1g', '[]')
    const stray = join(content, `000/cold/${row.day}/stray`)
    writeFileSync(stray, good)
    t.match(await faults(), [{ kind: 'recalled', isListed: false }], 'a commit may still name the object')
    clock.moveTo(6.6)
    await until(async () => (await show(ids[0] as string)).status === 200, WAIT_MS)
    mkdirSync(dirname(join(content, '000/out/20991231/stray')), { recursive: true })
    writeFileSync(join(content, '000/out/20991231/stray'), 'x')
    const kinds = (await faults()).map(({ kind }) => kind).sort()
    t.same(kinds, ['recalled', 'unnamed', 'unnamed'])
    const moving = await checkWith({
      hget: async (...of) => (of[1] === 'owner' ? `${MOVE_PREFIX}one:two` : redis.hget(...of)),
    })
    t.same(
      moving?.faults.map(({ kind }) => kind),
      ['recalled'],
      'of a shard that moves, no object is',
    )
    t.match(await repair(), { code: 0, done: ['removed', 'removed', 'removed'], left: 0 })
    t.equal(existsSync(stray), false)
    t.equal(await redis.exists(`{s000}:recalled:${serverId}:${OTHER_SEGMENT}`), 0)
    t.same(await faults(), [])
  })

  await t.test('no pack of a segment that was sealed during the walk is taken for an unnamed one', async (t) => {
    // The walk meets the rows before the segment is sealed, and its heads after.
    let reads = 0
    const found = await checkWith({
      hgetall: async (key) => {
        const rows = await redis.hgetall(key)
        reads += 1
        return reads > 1 ? rows : Object.fromEntries(Object.entries(rows).filter(([one]) => one !== segment))
      },
    })
    t.ok(reads > 1)
    t.same(found?.faults, [])
    t.equal(found?.segments, 1)
  })

  await t.test('changes of messages whose row is lost are reported, and kept', async (t) => {
    const key = `{s000}:recalled:${serverId}:${segment}`
    await redis.hset(key, 'AaIOGHMWcACAAETJwGeK1g', '[]')
    await redis.hdel(sealedKey, segment)
    t.match(
      (await faults()).filter(({ kind }) => kind === 'recalled'),
      [{ kind: 'recalled', isListed: true }],
    )
    t.match((await repair()).code, 1)
    t.equal(await redis.exists(key), 1)
    await redis.del(key)
    await redis.hset(sealedKey, segment, text)
  })

  await t.test('an object that no backup has is written off on order alone', async (t) => {
    if (!existsSync(path)) writeFileSync(path, good)
    writeFileSync(path, good.subarray(0, 100))
    t.match(await repair(), { code: 1, done: ['left'] })
    t.match(await repair('--write-off'), { code: 1, done: ['written-off'], left: 1 })
    t.equal(unpackSealed(await redis.hget(sealedKey, segment))?.key, '')
    t.equal(existsSync(path), false)
    t.match(await faults(), [{ kind: 'written-off', messages: COUNT }])
    t.match(await finding(), { status: 'warning', message: /1 segments of the message log were written off/ })
    await until(async () => (await show(ids[0] as string)).json.error === 'data_damaged', WAIT_MS)
    t.match((await search('delivered+p1@simulator.test')).json, { error: 'data_damaged' })
    t.equal((await search('delivered+nobody@simulator.test')).json.messages.length, 0)
  })
})

t.test('objects: an installation with its content in Redis has none', async (t) => {
  const service = await startTestService()
  t.teardown(() => service.stop())
  const environment = {
    REDIS_URL: `unix://${service.redis.socketPath}`,
    SECRET_KEY: service.config.secretKey as string,
    DATA_DIR: service.dataDir,
  }
  const deep = await sendwright(['doctor', '--deep', '--json'], environment)
  t.match(JSON.parse(deep.out), { ok: true, objects: null })
  t.match(await sendwright(['repair', 'objects', '--yes'], environment), { code: 1, err: /has no segments or packs/ })
  const { json } = await service.operate('GET /v1/operator/health', { token: service.firstRun.operatorToken })
  const health = json as Health
  t.match(
    health.findings.find(({ name }) => name === 'segments'),
    { status: 'ok', message: /stays in Redis for its whole retention, because content is in Redis/ },
  )
})
