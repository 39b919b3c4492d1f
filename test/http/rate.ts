/** Tests of src/edge/rate.ts. */

import { test } from 'tap'

import { makeRate } from '../../src/http/rate.ts'

test('rate: a burst, then what the clock refills [request.rate]', async (t) => {
  let now = 0
  const rate = makeRate({ perSecond: 20, burst: 50, nowMs: () => now })
  const taken = (times: number) => Array.from({ length: times }, () => rate.take('a')).filter(Boolean).length
  t.equal(taken(60), 50)
  now += 49
  t.equal(taken(5), 0)
  now += 1
  t.equal(taken(5), 1)
  now += 1000
  t.equal(taken(50), 20)
  now += 3_600_000
  t.equal(taken(60), 50)
})

test('rate: clients do not touch each other [request.rate]', async (t) => {
  const rate = makeRate({ perSecond: 1, burst: 1, nowMs: () => 0 })
  t.same([rate.take('a'), rate.take('a'), rate.take('b'), rate.take('b')], [true, false, true, false])
})

test('rate: 0 turns it off [request.rate]', async (t) => {
  const rate = makeRate({ perSecond: 0, burst: 1, nowMs: () => 0 })
  t.ok(Array.from({ length: 1000 }, () => rate.take('a')).every(Boolean))
})

test('rate: the oldest client is forgotten when there are too many [request.rate]', async (t) => {
  const rate = makeRate({ perSecond: 1, burst: 1, nowMs: () => 0, clientsMax: 2 })
  t.same([rate.take('a'), rate.take('b'), rate.take('c')], [true, true, true])
  t.same([rate.take('c'), rate.take('b')], [false, false])
  t.equal(rate.take('a'), true)
})
