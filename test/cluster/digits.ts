/** Tests of cluster/digits.ts: the same as the language says. */
import { test } from 'tap'
import { base36, decimalOf, hex3, hex12 } from '../../cluster/digits.ts'

const EDGES = [
  0,
  1,
  9,
  15,
  16,
  255,
  999,
  1_000,
  1_001,
  4_095,
  4_096,
  999_999,
  1_000_000,
  1_679_615,
  2 ** 24 - 1,
  2 ** 24,
]
const LARGE = [2 ** 31, 2 ** 32, 2 ** 44 - 1, 1_732_100_000_000, 2 ** 48 - 1, 1_000_000_007_000, 2 ** 53 - 1]

test('digits: hex, with zeros before it', async (t) => {
  for (let value = 0; value < 4_096; value += 1) t.equal(hex3(value), value.toString(16).padStart(3, '0'))
  for (const value of [...EDGES, ...LARGE])
    if (value < 2 ** 48) t.equal(hex12(value), value.toString(16).padStart(12, '0'))
})

test('digits: decimal', async (t) => {
  for (const value of [...EDGES, ...LARGE, Number.NaN, Infinity]) t.equal(decimalOf(value), String(value))
})

test('digits: base 36, with zeros before it', async (t) => {
  for (const value of EDGES) if (value < 36 ** 4) t.equal(base36(value), value.toString(36).padStart(4, '0'))
})
