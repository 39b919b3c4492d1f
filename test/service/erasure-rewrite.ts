/** erasure-rewrite - a rewrite minutes after an erasure, once for all processes, and again where it ended badly. */
import t from 'tap'
import { lookForErasures } from '../../src/service/erasure-rewrite.ts'
import type { Rewrites } from '../../src/store/rewrite.ts'

const MINUTE_MS = 60_000
const START_MS = 1_000_000

/** A Redis and what is known of its rewrites, by a clock that is set. */
function open() {
  const world = {
    nowMs: START_MS,
    erasedMs: 0 as number | null,
    runId: 'a',
    isRunning: false,
    isOk: true,
    refusal: null as string | null,
    turnEndsMs: 0,
    known: { begunMs: 0, runId: '', cleanMs: 0, dueMs: 0 },
  }
  const asked: number[] = []
  const rewrites: Rewrites = {
    state: async () =>
      world.runId === '' ? null : { runId: world.runId, isRunning: world.isRunning, isOk: world.isOk },
    async ask() {
      if (world.refusal !== null) return world.refusal
      asked.push(world.nowMs)
      world.isRunning = true
      return null
    },
    known: async () => world.known,
    async takeTurn(apartMs) {
      if (world.nowMs < world.turnEndsMs) return false
      world.turnEndsMs = world.nowMs + apartMs
      return true
    },
    async giveTurnBack() {
      world.turnEndsMs = 0
    },
    async noteBegun(begun) {
      world.known = { ...world.known, ...begun, dueMs: 0 }
    },
    async noteClean(cleanMs) {
      world.known = { ...world.known, cleanMs }
    },
    async noteDue(dueMs) {
      world.known = { ...world.known, dueMs }
    },
  }
  const told: string[] = []
  const look = () =>
    lookForErasures({
      lastErasedMs: async () => world.erasedMs,
      rewrites,
      log: { info: (_facts, text) => void told.push(text) },
      nowMs: () => world.nowMs,
    })
  /** Lets minutes pass, a look of each process in each. Out: when a rewrite was asked for, in minutes. */
  const pass = async (minutes: number, processes = 1): Promise<number[]> => {
    for (let n = 0; n < minutes; n += 1) {
      world.nowMs += MINUTE_MS
      for (let process = 0; process < processes; process += 1) await look()
    }
    return asked.splice(0).map((ms) => (ms - START_MS) / MINUTE_MS)
  }
  return { world, pass, told }
}

t.test('erasure-rewrite: nothing without an erasure, one some minutes after it [erasure.files]', async (t) => {
  const { world, pass, told } = open()
  t.same(await pass(5), [])
  world.erasedMs = world.nowMs
  t.same(await pass(2), [], 'what is short-lived is still there')
  t.same(await pass(1), [8])
  t.same(told, [])
  world.isRunning = false
  t.same(await pass(60), [], 'one is enough')
  t.equal(told.length, 1)
})

t.test('erasure-rewrite: what is done meanwhile wants another one, ten minutes later at the earliest', async (t) => {
  const { world, pass } = open()
  world.erasedMs = world.nowMs
  t.same(await pass(3), [3])
  world.isRunning = false
  world.erasedMs = world.nowMs
  t.same(await pass(20), [13])
})

t.test('erasure-rewrite: of many processes one asks, and all know what came of it', async (t) => {
  const { world, pass, told } = open()
  world.erasedMs = world.nowMs
  t.same(await pass(3, 4), [3])
  world.isRunning = false
  t.same(await pass(60, 4), [])
  t.equal(told.length, 1)
  world.runId = 'b'
  t.same(await pass(60, 4), [], 'nor after a start, which remembers nothing by itself')
})

t.test('erasure-rewrite: erasures that are done all the time put it off no longer than its distance', async (t) => {
  const { world, pass } = open()
  const asked: number[] = []
  for (let minute = 0; minute < 40; minute += 1) {
    world.erasedMs = world.nowMs
    asked.push(...(await pass(1)))
    world.isRunning = false
  }
  t.same(asked, [3, 13, 23, 33])
})

t.test('erasure-rewrite: one that takes longer than a turn is waited for', async (t) => {
  const { world, pass } = open()
  world.erasedMs = world.nowMs
  t.same(await pass(30), [3])
  world.isRunning = false
  t.same(await pass(60), [])
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
  world.erasedMs = START_MS
  t.same(await pass(1), [8])
})
