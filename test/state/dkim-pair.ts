/** dkim-pair - which pair signs at a moment, and how many are kept. */

import t from 'tap'
import { keepPairOps, pairAt, unpackPair } from '../../src/state/dkim-pair.ts'

const PLACE = { shard: 23, accountId: 'a', domain: 'acme.example' }
const rowsOf = (...since: readonly (readonly [string, number])[]) =>
  new Map(since.map(([selector, sinceMs]) => [selector, JSON.stringify([sinceMs, `p-${selector}`, 'sealed'])]))

t.test('dkim-pair: the last key in use at that time signs [dkim.signed]', async (t) => {
  const rows = rowsOf(['b', 200], ['a', 100], ['pending', 0], ['c', 300])
  const cases: readonly (readonly [number, string | undefined])[] = [
    [99, undefined],
    [100, 'a'],
    [199, 'a'],
    [200, 'b'],
    [300, 'c'],
    [9e15, 'c'],
  ]
  for (const [atMs, selector] of cases) t.equal(pairAt(rows, atMs)?.selector, selector, String(atMs))
  t.equal(pairAt(new Map(), 1), null)
})

t.test('dkim-pair: stored pairs are read back; the oldest of many are removed, and an expiry is lifted', async (t) => {
  const pair = { selector: 'new', sinceMs: 1000, publicKey: 'public', sealedPrivateKey: 'sealed' }
  const first = keepPairOps(PLACE, new Map(), { pair, nowMs: 1000 })
  t.equal(first.length, 1, 'a key that is new has no expiry to lift')
  const [selector, packed] = first[0]!.args as [string, string]
  t.same(unpackPair(selector, packed), pair)
  t.equal(unpackPair('x', undefined), null)
  const many = rowsOf(...Array.from({ length: 20 }, (_, n) => [`s${n}`, n + 1] as const))
  const ops = keepPairOps(PLACE, many, { pair, nowMs: 1000 })
  t.same(
    ops.map(({ write, args }) => [write, write === 'HDEL' ? args : args.length]),
    [
      ['HSET', 2],
      ['HDEL', ['s4', 's3', 's2', 's1', 's0']],
      ['PEXPIREAT', 1],
    ],
  )
})
