/** reports - rows of DMARC and TLS reports as CSV: every row once, over many months, with the filters of the list. */
import { parse } from 'csv-parse/sync'
import t from 'tap'
import type { CommandType } from '../../../cluster/behaviour.ts'
import { makeIds } from '../../../cluster/id.ts'
import { beginExport, endExport } from '../../../src/actors/dashboard/export.ts'
import { countReport } from '../../../src/actors/report/count-report.ts'
import type { EdgeRequest } from '../../../src/http/request.ts'
import type { Answer, Pieces } from '../../../src/http/respond.ts'
import { Scans } from '../../../src/http/scans.ts'
import { ExportFigures } from '../../../src/process/attempts/export-figures.ts'
import { type ExportDeps, exportHandlers } from '../../../src/routes/export/export.ts'
import { ExportPlaces } from '../../../src/routes/export/places.ts'
import { unpackAct } from '../../../src/state/dashboard/act.ts'
import { actsKey } from '../../../src/state/dashboard/places.ts'
import type { AccountKey } from '../../../src/views/key.ts'
import { ACCOUNT_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const DAY_MS = 86_400_000
const NOW_MS = Date.UTC(2026, 10, 20, 12)
const TYPES: readonly CommandType<never, unknown>[] = [beginExport, endExport] as never
const OWN_ADDRESS = '192.0.2.7'
type Row = Record<string, string>

function begin() {
  const world = new World(NOW_MS - 300 * DAY_MS)
  const tenant = makeTenant(world)
  const { accountId } = tenant
  const ids = makeIds({ shard: world.shard, last: '', random: () => 0.5 })
  const newId = () => ids.next(world.nowMs)
  const domainId = newId()
  const domain = { accountId, domain: 'acme.example', removedAtMs: null }
  world.seedState({ kind: 'domain', id: domainId }, domain)
  const report = (rows: readonly (readonly [number, ...string[]])[], kind: 'dmarc' | 'tls' = 'dmarc'): void => {
    const [beginMs, endMs] = [world.nowMs - DAY_MS, world.nowMs - 1]
    const of = { kind, reporter: 'example.net', organization: 'Example', reportId: '1', beginMs, endMs, rows: 1 }
    const body = { domainId, id: newId(), report: { ...of, messages: 1, authenticated: true } }
    const added = { policy: 0, rows } as const
    t.equal(world.run(countReport, { ...body, added }), 'counted')
  }
  return { world, accountId, domainId, newId, report }
}

type Scene = ReturnType<typeof begin>

function exporting({ world, accountId, domainId }: Scene) {
  const clock = () => performance.now()
  const deps = {
    read: readerOf(world).read,
    nowMs: () => world.nowMs,
    newCmdId: () => `${world.nowMs}-${Math.random()}`,
    async ask(_shard: number, { name, body }: { readonly name: string; readonly body: unknown }) {
      const type = TYPES.find((one) => one.name === name)
      return { kind: 'answer', reply: world.run(type as never, body as never) }
    },
    sendingAddresses: async () => [OWN_ADDRESS],
    scans: new Scans(clock),
    exportPlaces: new ExportPlaces(clock),
    metrics: { exports: new ExportFigures() },
  } as unknown as ExportDeps
  const key: AccountKey = { kind: 'account', accountId, tokenId: domainId, hash: ACCOUNT_KEY }
  return async (name: 'exportReports' | 'exportTlsReports', body: object = {}, id = domainId) => {
    const request = { key, body, params: { id }, route: { name } } as unknown as EdgeRequest<AccountKey, object>
    const answer = (await exportHandlers(deps)[name](request as never)) as Pieces | Answer
    if (!('pieces' in answer)) return { answer, rows: [] }
    let text = ''
    for await (const piece of answer.pieces()) text += piece
    answer.end(true)
    return { answer, rows: parse(text, { columns: true, record_delimiter: '\r\n' }) as Row[] }
  }
}

t.test('reports: each row of 300 days is in the file once, the latest day first [export.csv]', async (t) => {
  const scene = begin()
  const { world, report } = scene
  for (let day = 0; day < 300; day += 1) {
    world.nowMs += DAY_MS
    report([
      [1, `192.0.2.${day % 100}`, 'pp', 'n', '', '', 'pass', 'acme.example', 's1', 'pass', 'acme.example'],
      [2, '198.51.100.9', 'ff', 'r', 'forwarded', 'mail.acme.example'],
    ])
  }
  const exported = exporting(scene)
  const { answer, rows } = await exported('exportReports', { from: new Date(NOW_MS - 301 * DAY_MS).toISOString() })
  t.match((answer as Pieces).headers, { 'Content-Disposition': /filename="reports-\d{4}-\d\d-\d\d\.csv"/ })
  t.equal(rows.length, 600)
  t.equal(new Set(rows.map(({ day, source }) => `${day} ${source}`)).size, 600)
  t.same(
    rows.map(({ day }) => day),
    rows.map(({ day }) => day).sort((one, other) => ((one ?? '') < (other ?? '') ? 1 : -1)),
  )
  t.match(
    rows.find(({ source }) => source === OWN_ADDRESS),
    { own: 'true', messages: '1', result: 'pass', dkimSelector: 's1' },
  )
  t.match(
    rows.find(({ source }) => source === '198.51.100.9'),
    {
      ...{
        own: 'false',
        result: 'fail',
        disposition: 'reject',
        override: 'forwarded',
        headerFrom: 'mail.acme.example',
      },
    },
  )
  t.equal((await exported('exportReports')).rows.length, 60, 'thirty days without a period')
  const [from, to] = [new Date(NOW_MS - 20 * DAY_MS).toISOString(), '2099-01-01T00:00:00Z']
  t.equal((await exported('exportReports', { from, to, result: 'fail' })).rows.length, 20)
  t.equal((await exported('exportReports', { from: '2020-01-01T00:00:00Z', source: OWN_ADDRESS })).rows.length, 3)
  t.equal((await exported('exportReports', { from: '2098-01-01T00:00:00Z', to })).rows.length, 0)
})

t.test('reports: what is no report of the account, and wrong filters, are refused [export.csv]', async (t) => {
  const scene = begin()
  const exported = exporting(scene)
  t.match((await exported('exportReports', { source: 'x' })).answer, {
    status: 400,
    json: { issues: [{ path: 'source' }] },
  })
  const backwards = { from: '2026-02-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }
  for (const name of ['exportReports', 'exportTlsReports'] as const) {
    t.match((await exported(name, backwards)).answer, { status: 400, json: { issues: [{ path: 'to' }] } })
    t.match((await exported(name, {}, scene.newId())).answer, { status: 404 })
    t.match((await exported(name, {}, '01a1f8d8-8300-7000-8000-0e7faee555a7')).answer, { status: 404 })
  }
})

t.test(
  'reports: TLS reports, whose texts are no formulas, and the note in the log [export.cell] [export.note]',
  async (t) => {
    const scene = begin()
    const { world, accountId, domainId, report } = scene
    world.nowMs += DAY_MS
    report(
      [
        [7, 'example.net', 'sts'],
        [2, 'example.net', 'sts', 'validation-failure', '=mx.example', '192.0.2.1', '-1'],
      ],
      'tls',
    )
    const { answer, rows } = await exporting(scene)('exportTlsReports', { from: '2026-01-01T00:00:00Z' })
    t.match((answer as Pieces).headers, { 'Content-Disposition': /filename="tls-reports-/ })
    t.match(rows, [
      { reporter: 'example.net', policyType: 'sts', result: '', sessions: '7' },
      { result: 'validation-failure', receivingMx: "'=mx.example", reason: "'-1", sessions: '2' },
    ])
    const month = new Date(world.nowMs).toISOString().slice(0, 7).replace('-', '')
    const noted = [...world.sorted(actsKey(world.shard, accountId, month)).keys()].map(unpackAct)
    t.match(noted, [
      {
        act: 'exportTlsReports',
        targets: { domainId, filters: 'from=2026-01-01T00:00:00Z', rows: '2', result: 'complete' },
      },
    ])
  },
)
