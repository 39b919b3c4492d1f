/** fold - rows added up: equal rows, bounds of rows and bytes, sums that stay exact. */
import t from 'tap'
import { REPORT_CLASS_BYTES_MAX, REPORT_CLASS_ROWS_MAX } from '../../../schemas/limits.ts'
import { type FoldedRow, makeFold } from '../../../src/state/report/fold.ts'
import { DMARC_ROWS, TLS_ROWS } from '../../../src/state/report/report-days.ts'

const sumOf = (rows: readonly FoldedRow[]) => rows.reduce((sum, [count]) => sum + count, 0)
const row = (source: string, results: string, ...rest: string[]) => [source, results, 'n', ...rest]

t.test(
  'fold: equal rows are one, empty names at the end are left off, and the order stays [reports.rows]',
  async (t) => {
    const fold = makeFold(DMARC_ROWS)
    fold.add(2, row('192.0.2.1', 'pf', '', ''))
    fold.add(1, row('192.0.2.2', 'ff'))
    fold.add(3, row('192.0.2.1', 'pf'))
    t.same(fold.rows(), [
      [5, '192.0.2.1', 'pf', 'n'],
      [1, '192.0.2.2', 'ff', 'n'],
    ])
    const again = makeFold(DMARC_ROWS, fold.rows())
    again.add(1, row('192.0.2.2', 'ff'))
    t.same(again.rows()[1], [2, '192.0.2.2', 'ff', 'n'])
  },
)

t.test(
  'fold: beyond its bounds a class has one row for each result, and no class displaces another [reports.rows]',
  async (t) => {
    const fold = makeFold(DMARC_ROWS)
    for (let at = 0; at < 1_000; at += 1) fold.add(at + 1, row(`forged-${at}`, 'ff'))
    fold.add(7, row('192.0.2.1', 'pf'))
    fold.add(9, row('forged-999', 'ff'))
    const rows = fold.rows()
    t.equal(sumOf(rows), (1_000 * 1_001) / 2 + 16)
    t.equal(rows.length, REPORT_CLASS_ROWS_MAX + 2)
    t.same(
      rows.find(([, source]) => source === ''),
      [sumOf(rows) - 7 - (250 * 251) / 2, '', 'ff', 'n'],
    )
    t.ok(rows.some(([, source]) => source === '192.0.2.1'))
  },
)

t.test('fold: long names are bounded by their bytes, also over many reports [reports.rows]', async (t) => {
  let rows: readonly FoldedRow[] = []
  let sum = 0
  for (let report = 0; report < 20; report += 1) {
    const fold = makeFold(DMARC_ROWS, rows)
    for (let at = 0; at < 100; at += 1) {
      fold.add(at, row(`${report}.${at}`, at % 2 === 0 ? 'pp' : 'ff', '', '\u00e9'.repeat(250)))
      sum += at
    }
    rows = fold.rows()
  }
  t.equal(sumOf(rows), sum)
  t.ok(Buffer.byteLength(JSON.stringify(rows)) < 2 * REPORT_CLASS_BYTES_MAX + 10_000, 'bytes')
})

t.test('fold: sessions that succeed and fail have rests of their own [reports.rows]', async (t) => {
  const fold = makeFold(TLS_ROWS)
  for (let at = 0; at < 600; at += 1) fold.add(1, [`reporter${at}`, 'sts', at % 2 === 0 ? '' : 'certificate-expired'])
  const rests = fold.rows().filter(([, reporter = '']) => reporter === '')
  t.same(rests, [[50], [50, '', '', 'other']])
})
