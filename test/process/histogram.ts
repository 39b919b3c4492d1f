/** histogram - what is counted in which bucket, and that the lines of two processes add up. */
import t from 'tap'
import { BOUNDS_S, TimeHistogram } from '../../src/process/histogram.ts'

function valuesOf(histogram: TimeHistogram, labels?: string): Map<string, number> {
  return new Map(
    histogram.lines('x_seconds', labels).map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
}

t.test('histogram: an upper bound belongs to its bucket, what is above all of them to the last', (t) => {
  const times = new TimeHistogram()
  for (const ms of [0.5, 0.51, 1, 1_800_000, 1_800_001, -3]) times.record(ms)
  const values = valuesOf(times)
  t.equal(values.get('x_seconds_bucket{le="0.0005"}'), 2)
  t.equal(values.get('x_seconds_bucket{le="0.001"}'), 4)
  t.equal(values.get('x_seconds_bucket{le="1800"}'), 5)
  t.equal(values.get('x_seconds_bucket{le="+Inf"}'), 6)
  t.equal(values.get('x_seconds_count'), 6)
  t.ok(Math.abs((values.get('x_seconds_sum') ?? 0) - 3600.00301) < 1e-6)
  t.end()
})

t.test('histogram: buckets of two add up to those of one that has seen all', (t) => {
  const [one, other, both] = [new TimeHistogram(), new TimeHistogram(), new TimeHistogram()]
  for (let n = 0; n < 1000; n += 1) {
    const ms = (n * 7919) % 3000
    both.record(ms)
    ;(n % 3 === 0 ? one : other).record(ms)
  }
  const [a, b, sum] = [valuesOf(one), valuesOf(other), valuesOf(both)]
  for (const [name, value] of sum) t.equal((a.get(name) ?? 0) + (b.get(name) ?? 0), value, name)
  t.end()
})

t.test('histogram: bounds rise, and labels stand before them', (t) => {
  t.same(
    [...BOUNDS_S].sort((one, other) => one - other),
    BOUNDS_S,
  )
  t.equal(new TimeHistogram().lines('x', 'route="/a"')[0], 'x_bucket{route="/a",le="0.0005"} 0')
  t.end()
})
