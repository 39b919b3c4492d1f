/** records - how many lines a second are told, and what becomes of the others. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import {
  type EndedBroadcast,
  type EndedRecipient,
  makeRecords,
  type RefusedRequest,
  SecondBound,
} from '../../src/process/records.ts'
import { until } from '../support/machine/until.ts'

const REFUSED: RefusedRequest = {
  requestId: '01a1f8dc-5d81-70a3-8000-000000000000',
  method: 'GET',
  route: '/v1/messages/{id}',
  status: 404,
  code: 'not_found',
  ms: 2,
}
const ENDED: EndedRecipient = {
  messageId: REFUSED.requestId,
  recipientIndex: 0,
  site: 'example.com',
  result: 'delivered',
  code: 250,
  class: null,
  attempt: 1,
  ms: 20,
}
const BROADCAST: EndedBroadcast = { broadcastId: REFUSED.requestId, result: 'completed', released: 9, failed: 1 }

function recorded(nowMs: () => number) {
  const lines: { facts: object; sentence: string }[] = []
  return { lines, records: makeRecords((facts, sentence) => void lines.push({ facts, sentence }), nowMs) }
}

t.test('records: a line holds what it tells of', (t) => {
  const { lines, records } = recorded(() => 0)
  records.refused(REFUSED)
  records.ended(ENDED)
  records.broadcastEnded(BROADCAST)
  t.same(lines, [
    { facts: REFUSED, sentence: 'Request refused' },
    { facts: ENDED, sentence: 'Recipient ended' },
    { facts: BROADCAST, sentence: 'Broadcast ended' },
  ])
  t.end()
})

t.test('records: fifty refusals a second are told, the others counted in one line', async (t) => {
  let nowMs = 10_000
  const { lines, records } = recorded(() => nowMs)
  for (let n = 0; n < 80; n += 1) records.refused(REFUSED)
  t.equal(lines.length, 50)
  nowMs += 999
  records.refused(REFUSED)
  t.equal(lines.length, 50, 'the second is not over')
  // The timer is a real one: it is due a second after the first that was not told.
  const [, count] = await until(() => (lines.length > 50 ? [0, lines.at(-1)] : null), 30_000)
  t.match(count, { facts: { times: 31 }, sentence: /^More requests were refused/ })
  nowMs += 1
  records.refused(REFUSED)
  t.equal(lines.length, 52, 'the next second has its own')
})

t.test('records: a burst of mail is told up to a thousand lines a second', (t) => {
  const { lines, records } = recorded(() => 0)
  for (let n = 0; n < 60; n += 1) records.broadcastEnded(BROADCAST)
  t.equal(lines.splice(0).length, 50, 'and fifty ends of broadcasts')
  for (let n = 0; n < 1500; n += 1) records.ended(ENDED)
  t.equal(lines.length, 1000)
  t.end()
})

t.test('records: what is within its bound is never counted', async (t) => {
  let nowMs = 0
  const more: number[] = []
  const bound = new SecondBound(
    2,
    () => nowMs,
    (times) => void more.push(times),
  )
  for (let second = 0; second < 5; second += 1) {
    t.same([bound.maySay(), bound.maySay()], [true, true])
    nowMs += 1000
  }
  await pause(0)
  t.same(more, [])
})
