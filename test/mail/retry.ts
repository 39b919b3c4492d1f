/** retry - the schedule, attempt by attempt. */

import t from 'tap'
import { ATTEMPTS_MAX, DELIVERY_AGE_MAX_MS, nextAttemptAtMs, parseRetryHintMs } from '../../src/mail/retry.ts'

const MINUTES = [1, 5, 10, 15, 30, 60, 120, 180, 240, 360, 360, 480, 480, 480]

t.test('retry: delays in minutes with no, least and most jitter', async (t) => {
  for (const [index, minutes] of MINUTES.entries()) {
    const at = (unit: number) => nextAttemptAtMs({ attempt: index + 1, acceptedAtMs: 0, nowMs: 0, unit })
    t.equal(at(0.5), minutes * 60_000)
    t.equal(at(0), minutes * 54_000)
    t.equal(at(1), minutes * 66_000)
  }
})

t.test('retry: the fifteenth attempt is the last', async (t) => {
  t.equal(ATTEMPTS_MAX, 15)
  t.equal(nextAttemptAtMs({ attempt: 15, acceptedAtMs: 0, nowMs: 0, unit: 0.5 }), null)
  t.equal(nextAttemptAtMs({ attempt: 99, acceptedAtMs: 0, nowMs: 0, unit: 0.5 }), null)
})

t.test('retry: an attempt more than 48 h after acceptance is not made', async (t) => {
  const edge = { attempt: 1, acceptedAtMs: 1000, unit: 0.5 }
  const lastMs = 1000 + DELIVERY_AGE_MAX_MS - 60_000
  t.equal(nextAttemptAtMs({ ...edge, nowMs: lastMs }), lastMs + 60_000)
  t.equal(nextAttemptAtMs({ ...edge, nowMs: lastMs + 1 }), null)
})

t.test('retry: without jitter and loss of time the last attempt is at 47 h', async (t) => {
  let nowMs = 0
  let attempt = 1
  for (let next = nextAttemptAtMs({ attempt, acceptedAtMs: 0, nowMs, unit: 0.5 }); next !== null; attempt += 1) {
    nowMs = next
    next = nextAttemptAtMs({ attempt: attempt + 1, acceptedAtMs: 0, nowMs, unit: 0.5 })
  }
  t.equal(attempt, 15)
  t.equal(Math.floor(nowMs / 3_600_000), 47)
})

const HINTS: [line: string, hintMs: number | null][] = [
  ['450 4.2.0 greylisted, try again in 300 seconds', 300_000],
  ['451 wait 5 min', 300_000],
  ['451 4.7.1 later', null],
  ['550 5.7.1 wait 300 seconds', null],
]
for (const [line, hintMs] of HINTS)
  t.test(`retry: hint of ${line}`, async (t) => t.equal(parseRetryHintMs(line), hintMs))

t.test('retry: a hint moves the attempt later, at most by an hour, never earlier', async (t) => {
  const at = (attempt: number, hintMs: number) =>
    nextAttemptAtMs({ attempt, acceptedAtMs: 0, nowMs: 0, unit: 0.5, hintMs })
  t.equal(at(1, 300_000), 310_000)
  t.equal(at(1, 99_000_000), 3_610_000)
  t.equal(at(3, 1000), 600_000)
})
