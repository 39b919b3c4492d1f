/** bounds - waits end in time and search again, also if the store does not answer or the account has no rows left. */
import t from 'tap'
import type { EdgeRequest } from '../../../src/http/request.ts'
import { type Answer, RATE_REFUSAL } from '../../../src/http/respond.ts'
import { makeWaiting, SearchWaits } from '../../../src/routes/wait/waits.ts'
import type { ServerKey } from '../../../src/views/key.ts'

const SERVER_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'
const EMPTY: Answer = { status: 200, json: { messages: [] } }
const FOUND: Answer = { status: 200, json: { messages: [{}] } }

/** Starts a wait whose searches get these answers in turn. Returns it with the ways in which it can end. */
function start(answers: Answer[], { hear = async () => () => undefined, waitSeconds = 30 }: Partial<Options> = {}) {
  const waits = new SearchWaits()
  const ends: (() => void)[] = []
  const deps = {
    ask: async () => ({ kind: 'answer', reply: { kind: 'listening' } }) as const,
    newCmdId: () => 'id',
    nowMs: Date.now,
    hear,
    waits,
  }
  const search = () => (answers.length > 1 ? answers.shift() : answers[0]) as Answer
  const request = {
    key: { serverId: SERVER_ID, accountId: SERVER_ID, mode: 'test', hash: '' },
    body: { waitSeconds },
    connection: { onEnd: (end: () => void) => void ends.push(end) },
  } as unknown as EdgeRequest<ServerKey, { waitSeconds: number }>
  const startedAtMs = performance.now()
  const answer = Promise.resolve(makeWaiting(deps, { search, list: 'messages' })(request))
  return { answer, ends, waits, ms: () => performance.now() - startedAtMs }
}

interface Options {
  readonly hear: () => Promise<() => void>
  readonly waitSeconds: number
}

t.test('wait: a search refused for its rows is repeated without a signal [search.wait]', async (t) => {
  const { answer, waits, ms } = start([RATE_REFUSAL, FOUND])
  t.equal(await answer, FOUND)
  t.ok(ms() > 900 && ms() < 5_000, `${ms()} ms`)
  t.equal(waits.open, 0)
})

t.test('wait: a store that answers no subscription holds no wait beyond its time [search.wait]', async (t) => {
  const hear = () => new Promise<() => void>(() => undefined)
  const timed = start([EMPTY], { hear, waitSeconds: 1 })
  t.equal(await timed.answer, EMPTY)
  t.ok(timed.ms() < 5_000)
  const left = start([EMPTY], { hear })
  t.equal(left.waits.open, 1)
  for (const end of left.ends) end()
  t.equal(await left.answer, EMPTY)
  t.equal(left.waits.open, 0, 'a client that is gone gives its place back')
  const failed = start([EMPTY], { hear: () => Promise.reject(new Error('no store')) })
  await t.rejects(failed.answer, /no store/)
  t.equal(failed.waits.open, 0)
})

t.test('wait: an end at which the search is refused is empty, unless there is news [search.wait]', async (t) => {
  t.equal(await start([EMPTY, RATE_REFUSAL], { waitSeconds: 1 }).answer, EMPTY)
  const listeners: (() => void)[] = []
  const hear = async (_topic: string, heard: () => void) => {
    listeners.push(heard)
    return () => undefined
  }
  const told = start([EMPTY, RATE_REFUSAL], { waitSeconds: 1, hear: hear as Options['hear'] })
  setTimeout(() => listeners[0]?.(), 300)
  t.match(await told.answer, { status: 429 })
})
