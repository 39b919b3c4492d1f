/** Tests of cluster/queue.ts. */
import { test } from 'tap'
import type { CommandType } from '../../../cluster/behaviour.ts'
import { WorkQueue } from '../../../cluster/shard/work-queue.ts'
import { internalWork, type Work, type WorkSource } from '../../../cluster/work.ts'

const TYPE: CommandType = {
  name: 'x',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide: () => ({ kind: 'done', reply: null }),
}

function workOf(source: WorkSource, n: number, more: Partial<Work> & { frees?: boolean } = {}): Work {
  const { frees = false, ...rest } = more
  const command = { name: 'x', cmdId: `${source}${n}`, body: null }
  return { ...internalWork(source, { ...TYPE, frees }, { command, lane: '', item: '', cameAtMs: 0 }), ...rest }
}

const names = (works: readonly Work[]): string => works.map(({ command }) => command.cmdId).join(' ')
const BOUNDS = { commandsMax: 4, bytesMax: 100 }

function queueOf(...works: Work[]): WorkQueue {
  const queue = new WorkQueue()
  for (const work of works) queue.push(work)
  return queue
}

test('queue: what a batch takes', async (t) => {
  const own = [1, 2, 3, 4, 5].map((n) => workOf('claim', n))
  const local = [1, 2, 3].map((n) => workOf('local', n))
  const mailbox = [1, 2].map((n) => workOf('mailbox', n))
  const cases: [string, Work[], string][] = [
    ['own work alone fills it', own, 'claim1 claim2 claim3 claim4'],
    ['half of it while asks wait', [...own, ...local], 'claim1 claim2 local1 local2'],
    ['more than half while few asks wait', [...own, local[0]!], 'claim1 claim2 claim3 local1'],
    ['local and mailbox in turn', [...local, ...mailbox], 'local1 mailbox1 local2 mailbox2'],
    ['the other when one runs dry', [local[0]!, ...mailbox], 'local1 mailbox1 mailbox2'],
  ]
  for (const [name, works, expected] of cases) t.equal(names(queueOf(...works).take(BOUNDS, false)), expected, name)
})

test('queue: bytes bound a batch, but never a single command', async (t) => {
  const queue = queueOf(
    workOf('local', 1, { bytes: 500 }),
    workOf('local', 2, { bytes: 60 }),
    workOf('local', 3, { bytes: 60 }),
  )
  t.equal(names(queue.take(BOUNDS, false)), 'local1')
  t.equal(names(queue.take(BOUNDS, false)), 'local2')
  t.equal(names(queue.take(BOUNDS, false)), 'local3')
})

test('queue: while the store is full, only what finishes or frees is taken', async (t) => {
  const queue = queueOf(
    workOf('timer', 1),
    workOf('outcome', 2, { frees: true }),
    workOf('local', 3),
    workOf('claim', 4, { frees: true }),
  )
  t.equal(names(queue.take(BOUNDS, true)), 'outcome2 claim4')
  t.equal(names(queue.take(BOUNDS, true)), '')
  t.equal(queue.size, 2)
})

test('queue: what goes back keeps its place', async (t) => {
  const queue = queueOf(...[1, 2, 3].map((n) => workOf('local', n)), workOf('mailbox', 1), workOf('claim', 1))
  const batch = queue.take({ commandsMax: 3, bytesMax: 100 }, false)
  queue.push(workOf('claim', 2))
  queue.putBack(batch)
  t.equal(names(queue.take({ commandsMax: 10, bytesMax: 100 }, false)), 'claim1 claim2 local1 mailbox1 local2 local3')
})

test('queue: asks that are over are taken out, the rest keeps its order', async (t) => {
  const queue = queueOf(...[1, 2, 3].map((n) => workOf('local', n, { deadlineMs: n })))
  t.equal(names(queue.takeAsks(({ deadlineMs }) => deadlineMs === 2)), 'local2')
  t.equal(queue.asks, 2)
  t.equal(names(queue.drain()), 'local1 local3')
  t.equal(queue.size, 0)
})
