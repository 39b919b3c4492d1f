/** attempt - the memory of broken TLS; sessions themselves are in `converse.ts`. */

import t from 'tap'
import { attemptAddress, createBrokenTls } from '../../src/effects/attempt.ts'
import { startMx } from '../support/mx.ts'
import { JOB, SHORT_TIMEOUTS } from '../support/sender.ts'

const DAY_MS = 86_400_000
const NEVER = new AbortController().signal

t.test('attempt: broken TLS is remembered for three days', async (t) => {
  const broken = createBrokenTls()
  t.notOk(broken.has('mx.test', 0))
  broken.add('mx.test', 0)
  t.ok(broken.has('mx.test', 3 * DAY_MS - 1))
  t.notOk(broken.has('mx.test', 3 * DAY_MS))
  t.notOk(broken.has('other.test', 0))
})

t.test('attempt: the memory is bounded, the oldest goes', async (t) => {
  const broken = createBrokenTls()
  for (let n = 0; n <= 10_000; n += 1) broken.add(`mx${n}.test`, 0)
  t.notOk(broken.has('mx0.test', 1))
  t.ok(broken.has('mx1.test', 1))
  t.ok(broken.has('mx10000.test', 1))
})

t.test('attempt: whether another server may be tried', async (t) => {
  const mx = await startMx({})
  t.teardown(() => mx.close())
  const brokenTls = createBrokenTls()
  const deps = {
    ehloName: 'out.svc.test',
    port: mx.port,
    timeouts: SHORT_TIMEOUTS,
    brokenTls,
    nowMs: () => 0,
    mayFinish: () => true,
  }
  const send = { ...JOB, mayFinish: () => true }
  const attempt = (address = '127.0.0.1', signal = NEVER) =>
    attemptAddress({ host: 'mx.test', address, send }, deps, signal)
  t.match(await attempt(), { isFinal: true, answered: true, outcome: { result: 'delivered' } })
  mx.script({ banner: '421 busy' })
  t.match(await attempt(), { isFinal: false, answered: true, outcome: { code: 421 } })
  mx.script({ mail: '421 busy' })
  t.match(await attempt(), { isFinal: false, answered: true, outcome: { code: 421 } })
  mx.script({ rcpt: '550 5.1.1 no', data: '554 no' })
  t.match(await attempt(), { isFinal: true, answered: true, outcome: { code: 550 } })
  t.match(await attempt('127.0.0.9'), {
    isFinal: false,
    answered: false,
    outcome: { classification: 'NoAnswerFromHost' },
  })
  t.match(await attempt('127.0.0.1', AbortSignal.abort()), { isFinal: true, outcome: { phase: 'abort' } })
})
