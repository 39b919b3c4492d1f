/** erasure-rewrite - a rewrite is asked for minutes after an erasure, once, and again where it did not end well. */
import t from 'tap'
import { makeRewriteLook } from '../../src/service/erasure-rewrite.ts'

const MINUTE_MS = 60_000

function open() {
  const world = {
    nowMs: 1_000_000,
    erasedMs: 0 as number | null,
    runId: 'a',
    isRunning: false,
    isOk: true,
    refusal: null as string | null,
  }
  const asked: number[] = []
  const look = makeRewriteLook({
    lastErasedMs: async () => world.erasedMs,
    rewriteState: async () =>
      world.runId === '' ? null : { runId: world.runId, isRunning: world.isRunning, isOk: world.isOk },
    async rewriteFile() {
      if (world.refusal !== null) return world.refusal
      asked.push(world.nowMs)
      world.isRunning = true
      return null
    },
    log: { info: () => undefined },
    nowMs: () => world.nowMs,
  })
  /** Lets minutes pass, a look in each. Out: when a rewrite was asked for, in minutes. */
  const pass = async (minutes: number): Promise<number[]> => {
    for (let n = 0; n < minutes; n += 1) {
      world.nowMs += MINUTE_MS
      await look()
    }
    return asked.splice(0).map((ms) => (ms - 1_000_000) / MINUTE_MS)
  }
  return { world, pass }
}

t.test('erasure-rewrite: nothing without an erasure, one some minutes after it [erasure.files]', async (t) => {
  const { world, pass } = open()
  t.same(await pass(5), [])
  world.erasedMs = world.nowMs
  t.same(await pass(2), [], 'what is short-lived is still there')
  t.same(await pass(1), [8])
  world.isRunning = false
  t.same(await pass(60), [], 'one is enough')
})

t.test('erasure-rewrite: what is done meanwhile wants another one, ten minutes later at the earliest', async (t) => {
  const { world, pass } = open()
  world.erasedMs = world.nowMs
  t.same(await pass(3), [3])
  world.isRunning = false
  world.erasedMs = world.nowMs
  t.same(await pass(20), [13])
})

t.test('erasure-rewrite: one that was refused, failed, or whose redis went is asked for again', async (t) => {
  const { world, pass } = open()
  world.erasedMs = world.nowMs
  world.refusal = 'Background append only file rewriting already in progress'
  t.same(await pass(5), [])
  world.refusal = null
  t.same(await pass(1), [6])
  Object.assign(world, { isRunning: false, isOk: false })
  t.same(await pass(10), [16])
  Object.assign(world, { isRunning: false, isOk: true, runId: 'b' })
  t.same(await pass(10), [26], 'another redis knows nothing of it')
  Object.assign(world, { isRunning: false })
  t.same(await pass(30), [])
})

t.test('erasure-rewrite: a rewrite of somebody else is waited for, and a store that is away asked later', async (t) => {
  const { world, pass } = open()
  Object.assign(world, { erasedMs: world.nowMs, isRunning: true })
  t.same(await pass(5), [])
  Object.assign(world, { isRunning: false, runId: '' })
  t.same(await pass(1), [])
  Object.assign(world, { runId: 'a', erasedMs: null })
  t.same(await pass(1), [])
  world.erasedMs = 1_000_000
  t.same(await pass(1), [8])
})
