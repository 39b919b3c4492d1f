/** rows - the bounds of an export: its rows, its pace, its place, a store that is away for a moment. */
import { parse } from 'csv-parse/sync'
import t from 'tap'
import type { CommandType } from '../../../cluster/behaviour.ts'
import { beginExport, endExport } from '../../../src/actors/dashboard/export.ts'
import type { EdgeRequest } from '../../../src/http/request.ts'
import type { Pieces } from '../../../src/http/respond.ts'
import { Scans } from '../../../src/http/scans.ts'
import { ExportFigures } from '../../../src/process/attempts/export-figures.ts'
import { type ExportDeps, exportHandlers } from '../../../src/routes/export/export.ts'
import { ExportPlaces } from '../../../src/routes/export/places.ts'
import { unpackAct } from '../../../src/state/dashboard/act.ts'
import { actsKey } from '../../../src/state/dashboard/places.ts'
import { apiKeyKey } from '../../../src/state/keys.ts'
import type { Reader, ServerKey } from '../../../src/views/key.ts'
import { hmacOf, LIVE_KEY, makeItem, makeRecipient, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
const TYPES: readonly CommandType<never, unknown>[] = [beginExport, endExport] as never

/** A world with so many messages of two recipients each. */
function makeScene(messages: number) {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  for (let n = 0; n < messages; n += 1) {
    const recipients = [makeRecipient(`ada${n}@example.net`), makeRecipient(`bob${n}@example.net`, 'cc')]
    send(world, tenant, { messages: [makeItem({ recipients })] })
    world.nowMs += 1_000
  }
  return { world, tenant }
}

function makeDeps(world: World, changes: Partial<ExportDeps> = {}): ExportDeps {
  const clock = () => performance.now()
  return {
    read: readerOf(world).read,
    nowMs: () => world.nowMs,
    newCmdId: () => `${world.nowMs}-${Math.random()}`,
    async ask(_shard: number, { name, body }: { readonly name: string; readonly body: unknown }) {
      const type = TYPES.find((one) => one.name === name)
      if (type === undefined) throw new Error(name)
      return { kind: 'answer', reply: world.run(type, body as never) }
    },
    secrets: { addressHmac: (_account: string, address: string) => hmacOf(address) },
    scans: new Scans(clock),
    exportPlaces: new ExportPlaces(clock),
    metrics: { exports: new ExportFigures() },
    ...changes,
  } as unknown as ExportDeps
}

async function begun(deps: ExportDeps, { accountId, live }: Tenant, own: object = OWN): Promise<Pieces> {
  const { serverId, streamId: defaultStreamId } = live
  const key: ServerKey = { ...{ kind: 'server', mode: 'live', accountId, serverId, defaultStreamId }, ...OWN, ...own }
  const request = { key, body: {}, params: {}, route: { name: 'exportMessages' } } as unknown as EdgeRequest<
    ServerKey,
    object
  >
  return (await exportHandlers(deps).exportMessages(request)) as Pieces
}

const OWN = { tokenId: '01a1f8d8-8300-7000-8000-0e7faee555a7', hash: LIVE_KEY }

async function taken(answer: Pieces): Promise<string[][]> {
  let text = ''
  for await (const piece of answer.pieces()) text += piece
  answer.end(true)
  return parse(text, { record_delimiter: '\r\n' }) as string[][]
}

function noted(world: World, { accountId }: Tenant) {
  return [...world.sorted(actsKey(world.shard, accountId, '202611')).keys()].map(unpackAct)
}

t.test('rows: a file is cut at its bound, with a line of the same width [export.bounds]', async (t) => {
  const { world, tenant } = makeScene(300)
  const whole = await taken(await begun(makeDeps(world, { exportRowsMax: 600 }), tenant))
  t.equal(whole.length, 601, 'as many as there may be')
  t.match(noted(world, tenant), [{ act: 'exportMessages', targets: { rows: '600', result: 'complete' } }])
  const cut = await taken(await begun(makeDeps(world, { exportRowsMax: 599 }), tenant))
  t.equal(cut.length, 601)
  t.equal(cut[600]?.[0], 'Cut after 599 rows: narrow the filters')
  t.ok(cut.every(({ length }) => length === cut[0]?.length))
  t.same(cut.slice(0, 600), whole.slice(0, 600))
  t.same(
    noted(world, tenant)
      .map(({ targets }) => targets.result)
      .sort(),
    ['complete', 'cut'],
    'one entry each',
  )
})

t.test('rows: what is written meanwhile is in no later page twice [export.csv]', async (t) => {
  const { world, tenant } = makeScene(450)
  const answer = await begun(makeDeps(world), tenant)
  let text = ''
  for await (const piece of answer.pieces()) {
    text += piece
    send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient('late@example.net')] })] })
    world.nowMs += 1_000
  }
  const rows = parse(text, { columns: true, record_delimiter: '\r\n' }) as Record<string, string>[]
  t.equal(new Set(rows.map(({ recipient }) => recipient)).size, 900)
  t.equal(rows.length, 900)
})

t.test('rows: a store that is away for a moment delays it, one that stays away ends it [export.csv]', async (t) => {
  const { world, tenant } = makeScene(450)
  const { read } = readerOf(world)
  let away = 0
  const flaky = (async (shard, facts) => {
    if (away === 0) return read(shard, facts)
    away -= 1
    return null
  }) as Reader
  const answer = await begun(makeDeps(world, { read: flaky }), tenant)
  away = 2
  t.equal((await taken(answer)).length, 901)
  const other = await begun(makeDeps(world, { read: flaky }), tenant)
  away = Number.POSITIVE_INFINITY
  await t.rejects(taken(other), { message: 'The next page cannot be read: unavailable' })
  other.end(false)
})

t.test(
  'rows: a member who may only read from now on gets no further rows of a live server [export.role]',
  async (t) => {
    const { world, tenant } = makeScene(450)
    const userId = '01a1f8d8-8300-7000-8000-0e7faee555a8'
    const row = { kind: 'session', accountId: tenant.accountId, tokenId: OWN.tokenId, userId, level: 'w' }
    const hash = 'ab'.repeat(32)
    const session = new Map(Object.entries(row))
    world.keys.set(apiKeyKey(world.shard, hash), { type: 'hash', fields: session })
    const own = { hash: `r.${hash}`, userId }
    t.equal((await taken(await begun(makeDeps(world), tenant, own))).length, 901)
    const answer = await begun(makeDeps(world), tenant, own)
    session.set('level', 'r')
    await t.rejects(taken(answer), { message: 'The next page cannot be read: unauthorized' })
    answer.end(false)
  },
)

t.test('rows: places are given back once, whatever the end [export.bounds]', async (t) => {
  const { world, tenant } = makeScene(1)
  const places = new ExportPlaces(() => performance.now())
  const deps = makeDeps(world, { exportPlaces: places })
  const one = await begun(deps, tenant)
  const two = await begun(deps, tenant)
  t.equal(places.open, 2)
  t.match(await begun(deps, tenant), { status: 409, json: { error: 'export_limit', max: 2 } })
  one.end(false)
  one.end(false)
  t.equal(places.open, 1)
  await taken(two)
  t.equal(places.open, 0)
  const failing = { ...deps, ask: async () => ({ kind: 'unavailable' }) } as unknown as ExportDeps
  t.match(await begun(failing, tenant), { status: 503 })
  t.equal(places.open, 0)
  const faulting = { ...deps, ask: () => Promise.reject(new Error('fault')) } as unknown as ExportDeps
  await t.rejects(begun(faulting, tenant))
  t.equal(places.open, 0)
  const entered = Array.from({ length: 25 }, (_, n) => places.enter(`account ${n}`))
  t.equal(entered.filter((place) => typeof place !== 'number').length, 20)
  t.equal(entered.at(-1), 20)
  t.same(
    deps.metrics.exports
      .figures()
      .map((figure) => ('values' in figure ? [...figure.values] : 'read' in figure && figure.read())),
    [
      [
        ['messages broken', 1],
        ['messages complete', 1],
      ],
      [['messages', 2]],
      0,
    ],
    'each ended once',
  )
})

t.test('rows: an export reads at its pace, and the searches of its account keep theirs [export.bounds]', async (t) => {
  const places = new ExportPlaces(() => performance.now())
  const place = places.enter('account')
  if (typeof place === 'number') throw new Error('no place')
  const rows = Array.from({ length: 15_000 }, () => 'x')
  const paced = place.paced((async () => [rows]) as unknown as Reader)
  const startedMs = performance.now()
  for (let n = 0; n < 5; n += 1) await paced(0, [])
  const ms = performance.now() - startedMs
  // 75,000 rows, of which 30,000 are free and the last read is paid by the next one.
  t.ok(ms >= 900, `${ms} ms`)
})
