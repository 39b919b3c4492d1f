/** count-report - a report counts once, on its day, within its bounds, and goes with its domain. */
import t from 'tap'
import { REPORT_AGE_DAYS_MAX, REPORTS_APART_PER_DAY_MAX, REPORTS_PER_DAY_MAX } from '../../../schemas/limits.ts'
import { addDomain } from '../../../src/actors/domain/add-domain.ts'
import { removeDomain } from '../../../src/actors/domain/remove-domain.ts'
import { type CountReportBody, countReport } from '../../../src/actors/report/count-report.ts'
import { reportLogKey, reportsKey } from '../../../src/state/keys.ts'
import { reportField, unpackReportDay } from '../../../src/state/report/report-days.ts'
import { unpackReportLog } from '../../../src/state/report/report-log.ts'
import { ACCOUNT_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const DAY_MS = 86_400_000
const NOW_MS = Date.UTC(2026, 10, 20, 7)
const YESTERDAY_MS = Date.UTC(2026, 10, 19)

function makeWorld() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const order = { accountId: tenant.accountId, keyHash: ACCOUNT_KEY }
  const pair = { selector: 'sw1', publicKey: 'p', sealedPrivateKey: 's' }
  const added = world.run(addDomain, { ...order, domain: 'shop.example', isTestOnly: false, ...pair } as never)
  if (!('domain' in added)) throw new Error('The domain was not added')
  const { domainId } = added.domain
  const body = (changes: Partial<CountReportBody['report']> = {}, id = 'report-1'): CountReportBody => ({
    domainId,
    id,
    report: {
      kind: 'dmarc',
      reporter: 'google.com',
      organization: 'Google',
      reportId: id,
      beginMs: YESTERDAY_MS,
      endMs: YESTERDAY_MS + DAY_MS - 1000,
      rows: 2,
      messages: 12,
      authenticated: true,
      ...changes,
    },
    added: {
      policy: ['none', '', '', 'r', 'r', '100'],
      rows: [
        [7, '192.0.2.1', 'pp', 'n'],
        [5, '198.51.100.1', 'ff', 'r'],
      ],
    },
  })
  const day = (kind: 'dmarc' | 'tls' = 'dmarc', month = '202611', atMs = YESTERDAY_MS) =>
    unpackReportDay(world.hash(reportsKey(world.shard, domainId, month)).get(reportField(kind, atMs)) ?? null)
  const log = (month = '202611') => unpackReportLog(world.hash(reportLogKey(world.shard, domainId, month)))
  return { world, order, domainId, body, day, log }
}

t.test('count-report: a report counts once, also in the month after [reports.once]', async (t) => {
  const { world, body, day, log } = makeWorld()
  t.equal(world.run(countReport, body()), 'counted')
  t.equal(world.run(countReport, body()), 'repeated')
  t.equal(world.run(countReport, body({}, 'report-2')), 'counted')
  t.same(day(), {
    policy: ['none', '', '', 'r', 'r', '100'],
    rows: [
      [14, '192.0.2.1', 'pp', 'n'],
      [10, '198.51.100.1', 'ff', 'r'],
    ],
  })
  t.same(
    log().map(({ reportId }) => reportId),
    ['report-1', 'report-2'],
  )
  t.match(log()[0], { ...body().report, receivedAtMs: NOW_MS })
  world.nowMs += 14 * DAY_MS
  t.equal(world.run(countReport, body()), 'repeated')
})

t.test(
  'count-report: the day is the middle of the period, and old or future periods count for nothing [reports.period]',
  async (t) => {
    const { world, body, day, log } = makeWorld()
    const early = { beginMs: YESTERDAY_MS - 3_600_000, endMs: YESTERDAY_MS + 23 * 3_600_000 }
    t.equal(world.run(countReport, body(early)), 'counted')
    t.equal(day().rows.length, 2)
    const over = NOW_MS - REPORT_AGE_DAYS_MAX * DAY_MS
    const cases = [
      { beginMs: over - DAY_MS, endMs: over - 1 },
      { beginMs: NOW_MS + DAY_MS, endMs: NOW_MS + 2 * DAY_MS },
      { beginMs: 0, endMs: NOW_MS },
    ]
    for (const [at, period] of cases.entries())
      t.equal(world.run(countReport, body(period, `odd-${at}`)), 'out_of_period')
    t.equal(world.run(countReport, body({ beginMs: over - DAY_MS, endMs: over }, 'edge')), 'counted')
    t.equal(log().length, 2)
  },
)

t.test(
  'count-report: unauthenticated reports are listed, in no sum, and hide no genuine one [reports.apart]',
  async (t) => {
    const { world, body, day, log } = makeWorld()
    t.equal(world.run(countReport, body({ authenticated: false })), 'apart')
    t.same(day().rows, [])
    t.match(log(), [{ authenticated: false, messages: 12 }])
    for (let at = 1; at < REPORTS_APART_PER_DAY_MAX; at += 1)
      t.equal(world.run(countReport, body({ authenticated: false }, `apart-${at}`)), 'apart')
    t.equal(world.run(countReport, body({ authenticated: false }, 'apart')), 'over_limit')
    t.equal(world.run(countReport, body()), 'repeated', "an id of its own is the edge's work")
    t.equal(world.run(countReport, body({}, 'genuine')), 'counted')
  },
)

t.test('count-report: so many reports of a domain count on a day [reports.bounds]', async (t) => {
  const { world, body, day } = makeWorld()
  for (let at = 0; at < REPORTS_PER_DAY_MAX; at += 1) t.equal(world.run(countReport, body({}, `r${at}`)), 'counted')
  t.equal(world.run(countReport, body({}, 'over')), 'over_limit')
  t.same(day().rows[0], [700, '192.0.2.1', 'pp', 'n'])
  world.nowMs += DAY_MS
  t.equal(world.run(countReport, body({}, 'over')), 'counted')
})

t.test(
  'count-report: the rows of TLS reports are apart, and all of it goes with the domain [domain.remove]',
  async (t) => {
    const { world, body, day, log, order, domainId } = makeWorld()
    const tls = { ...body({ kind: 'tls' }, 'tls'), added: { policy: 0, rows: [[3, 'google.com', 'sts']] } } as const
    t.equal(world.run(countReport, tls), 'counted')
    t.equal(world.run(countReport, body()), 'counted')
    t.same(day('tls'), { policy: 0, rows: [[3, 'google.com', 'sts']] })
    t.equal(day().rows.length, 2)
    world.nowMs += 20 * DAY_MS
    world.run(countReport, body({ beginMs: world.nowMs - DAY_MS, endMs: world.nowMs }, 'later'))
    t.equal(log('202612').length, 1)
    world.run(removeDomain, { ...order, domainId })
    t.same(
      [...world.keys.keys()].filter((key) => key.includes('report')),
      [],
    )
    t.equal(world.run(countReport, body({}, 'after')), 'gone')
  },
)

t.test(
  'count-report: rows are removed after 13 months, the list of reports after two [retention.reports]',
  async (t) => {
    const { world, body, day, log } = makeWorld()
    world.run(countReport, body())
    world.nowMs = Date.UTC(2027, 0, 31)
    world.expire()
    t.equal(log().length, 1)
    world.nowMs = Date.UTC(2027, 1, 2)
    world.expire()
    t.equal(log().length, 0)
    world.nowMs = Date.UTC(2027, 11, 31)
    world.expire()
    t.equal(day().rows.length, 2)
    world.nowMs = Date.UTC(2028, 0, 3)
    world.expire()
    t.equal(day().rows.length, 0)
  },
)
