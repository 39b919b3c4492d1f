/** bench - the calculations of the benchmarks: tables, medians, ratios, and the product's own figures. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { CONTESTANTS, type Contestant } from '../../bench/contestants/contestant.ts'
import { readAccepted, readFigure } from '../../bench/contestants/product-figures.ts'
import { formatVerdicts, type Result, rowsOf } from '../../bench/figures/ratio.ts'
import { undisturbed } from '../../bench/figures/undisturbed.ts'
import type { Measured } from '../../bench/load/measured.ts'
import { formatNumber, formatTable, median } from '../../bench/table.ts'
import { shareOfCore } from '../../bench/usage.ts'
import { spawnNode } from '../support/machine/node.ts'

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url))

function measured(perSecond: number, p99Ms = 9): Measured {
  return { accepted: perSecond * 10, refused: 0, broken: 0, perSecond, p50Ms: 2, p99Ms }
}

function result(id: Contestant['id'], perSecond: number, percents: [number, number] | null = null): Result {
  const contestant = CONTESTANTS.find((one) => one.id === id) as Contestant
  const [hostPercent, storePercent] = percents ?? [null, null]
  return {
    contestant,
    measured: measured(perSecond),
    hostPercent,
    storePercent,
    stolenPercent: hostPercent === null ? null : 1.2,
  }
}

t.test('table: the first column is left, the others right', async (t) => {
  t.equal(
    formatTable([
      ['', 'rate'],
      ['one', '5'],
      ['three', '12,345'],
    ]),
    ['         rate', 'one         5', 'three  12,345'].join('\n'),
  )
  t.equal(formatTable([]), '')
})

t.test('table: numbers have thousands separators, and a missing one is a dash', async (t) => {
  const cases: [number | null, number, string][] = [
    [1234567, 0, '1,234,567'],
    [0.567, 2, '0.57'],
    [3, 1, '3.0'],
    [null, 0, '-'],
    [Number.NaN, 2, '-'],
    [Number.POSITIVE_INFINITY, 0, '-'],
  ]
  for (const [value, digits, expected] of cases) t.equal(formatNumber(value, digits), expected)
})

t.test('table: the median is the middle one by value, of an even number the lower', async (t) => {
  t.equal(median([10, 9, 100]), 10)
  t.equal(median([4, 1, 3, 2]), 2)
  t.equal(median([7]), 7)
  t.ok(Number.isNaN(median([])))
})

t.test('ratio: a row holds the median, minimum and maximum of its rounds, and the cost of one message', async (t) => {
  const [head, floor, product] = rowsOf([
    result('c', 4000, [80, 20]),
    result('a', 9000),
    result('c', 5000, [100, 25]),
    result('c', 2000, [100, 10]),
  ])
  t.same(head, ['', 'messages/s', 'least', 'most', 'p50 ms', 'p99 ms', 'host µs', 'redis µs', 'stolen %'])
  t.match(floor, [/^\(a\) floor/, '9,000', '9,000', '9,000', '2.0', '9.0', '-', '-', '-'])
  // 80 % of a core over 4,000 messages are 200 µs each; the other rounds cost 200 and 500.
  t.match(product, [/^\(c\) product/, '4,000', '2,000', '5,000', '2.0', '9.0', '200', '50', '1.2'])
})

/** Stolen time of each run, and the run that counts; null: the kernel does not report it. */
const STOLEN: [(number | null)[], number][] = [
  [[3], 0],
  [[3.1, 0.5], 1],
  [[9, 30, 8, 12], 2],
  [[5, 5, 5, 5], 3],
  [[null], 0],
]

t.test(
  'undisturbed: a run that lost the processor to others is repeated, a few times, whatever it measured',
  async (t) => {
    for (const [stolen, expected] of STOLEN) {
      let runs = 0
      const told: number[] = []
      const work = async (): Promise<{ stolenPercent: number | null; run: number }> => {
        const run = runs++
        return { stolenPercent: stolen[run] as number | null, run }
      }
      const best = await undisturbed(work, { tell: ({ run }) => told.push(run), restMs: 1 })
      t.equal(best.run, expected, `of ${stolen}`)
      t.equal(runs, stolen.length)
      t.same(
        told,
        Array.from({ length: runs - 1 }, (_, run) => run),
        'each that is repeated is told',
      )
    }
  },
)

t.test('usage: the share of a process, and the time stolen from the machine', async (t) => {
  const { value, percents, stolenPercent } = await shareOfCore([process.pid, 2 ** 30], async () => {
    const until = performance.now() + 300
    while (performance.now() < until);
    return 'done'
  })
  t.equal(value, 'done')
  t.equal(percents[1], null, 'of no process')
  if (process.platform !== 'linux') return
  t.ok((percents[0] ?? 0) > 0, `${percents[0]} % of a core`)
  t.ok(stolenPercent !== null && stolenPercent >= 0 && stolenPercent <= 100, `${stolenPercent} % stolen`)
})

/** Rates of a, b, c, c1, c2 and the p99 at half the rate; the verdicts in order. */
const VERDICTS: [number[], number, string[]][] = [
  [[10_000, 3_000, 5_000, 4_000, 2_500], 10, ['reached', 'reached', 'reached', 'reached', 'reached']],
  [[10_000, 3_200, 4_999, 3_900, 2_499], 10.1, ['missed', 'missed', 'missed', 'missed', 'missed']],
]

t.test('ratio: each is held against its target', async (t) => {
  const ids = ['a', 'b', 'c', 'c1', 'c2'] as const
  for (const [rates, p99Ms, expected] of VERDICTS) {
    const results = ids.map((id, at) => result(id, rates[at] as number))
    const [, ...lines] = formatVerdicts(results, { c: measured(2500, p99Ms) }).split('\n')
    t.same(
      lines.map((line) => line.split(' ').at(-1)),
      expected,
    )
  }
  const some = formatVerdicts([result('a', 10_000), result('c', 5_600)], {}).split('\n')
  t.equal(some.length, 2, 'only of what was measured')
  const [, , half, floor] = formatVerdicts([result('a', 1), result('c', 1)], {
    a: measured(2500, 4.2),
    c: measured(2500, 9),
  }).split('\n')
  t.match(half, /^p99 of \(c\) at half its rate, 2,500\/s, ms +9\.0 +<= 10 +reached$/)
  t.match(floor, /^p99 of \(a\) at the same rate, ms +4\.2 *$/)
  t.match(some[1], /^\(c\)\/\(a\) effects held, against the floor +0\.56 +>= 0\.5 +reached$/)
})

async function metricsOf(t: Test, body: string): Promise<number> {
  const listener = createServer((_, answer) => answer.setHeader('connection', 'close').end(body))
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => listener.close())
  return (listener.address() as AddressInfo).port
}

t.test('figures: one is read by its whole name', async (t) => {
  const port = await metricsOf(
    t,
    '# TYPE a_total counter\na_total_more 1\nother_a_total 2\na_total{x="1"} 3\na_total 4.5\n' +
      'sendwright_accepted_requests_total 17\n',
  )
  t.equal(await readFigure(port, 'a_total'), 4.5)
  t.equal(await readFigure(port, 'b_total'), null)
  t.equal(await readAccepted(port), 17)
})

t.test('figures: a service that does not count is an error, not a zero', async (t) => {
  await t.rejects(readAccepted(await metricsOf(t, 'up 1\n')), { message: /does not say how many/ })
})

async function bench(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const child = spawnNode([MAIN, ...args])
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, out, err }
}

t.test('bench: --help lists the measurements, and an unknown one is refused with that list', async (t) => {
  const help = await bench('--help')
  t.match(help, { code: 0, err: '' })
  for (const name of ['accept', 'memory', 'lifecycle', 'search', 'start'])
    t.match(help.out, new RegExp(`^ {2}${name} {2,}\\S`, 'm'))
  t.match(await bench('speed'), { code: 1, out: '', err: /Usage: npm run bench/ })
  t.match(await bench('memory', '--messages', '0'), { code: 1, err: /^--messages takes a whole number above 0/ })
})
