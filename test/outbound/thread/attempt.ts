/** attempt - the memory of broken TLS; sessions themselves are in `converse.ts`. */

import t from 'tap'
import { attemptAddress, createBrokenTls } from '../../../src/outbound/thread/attempt.ts'
import { createIssuers } from '../../../src/outbound/thread/dane.ts'
import { startMx } from '../../support/peers/mx.ts'
import { makeSelfSigned } from '../../support/peers/self-signed.ts'
import { SHORT_TIMEOUTS } from '../../support/peers/sender.ts'

const DAY_MS = 86_400_000
const NEVER = new AbortController().signal

t.test('attempt: broken TLS is cached for three days', async (t) => {
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

t.test('attempt: a session, or the meaning of its absence for the server', async (t) => {
  const mx = await startMx({})
  t.teardown(() => mx.close())
  const brokenTls = createBrokenTls()
  const deps = {
    ehloName: 'out.svc.test',
    port: mx.port,
    timeouts: SHORT_TIMEOUTS,
    brokenTls,
    nowMs: () => 0,
    ca: null,
    issuers: createIssuers(() => 0),
  }
  const attempt = (address = '127.0.0.1', signal = NEVER, timeouts = SHORT_TIMEOUTS) =>
    attemptAddress({ host: 'mx.test', address, isVerified: false }, { ...deps, timeouts }, signal)
  const opened = await attempt()
  t.match(opened, { ok: true })
  if (opened.ok) opened.session.destroy()
  mx.script({ banner: '421 busy' })
  t.match(await attempt(), { ok: false, contact: 'answered', outcome: { code: 421 } })
  mx.script({ banner: 'drop' })
  t.match(await attempt(), { ok: false, contact: 'refused', outcome: { classification: 'BadConnection' } })
  mx.script({ banner: 'hang' })
  const silent = await attempt('127.0.0.1', NEVER, { ...SHORT_TIMEOUTS, greetingMs: 1500 })
  t.match(silent, { ok: false, contact: 'silent', outcome: { classification: 'BadConnection' } })
  const refused = { ok: false, contact: 'refused', outcome: { classification: 'NoAnswerFromHost', result: 'deferred' } }
  t.match(await attempt('127.0.0.9'), refused)
  const cut = { ok: false, contact: 'none', outcome: { result: 'returned', phase: 'abort' } }
  t.match(await attempt('127.0.0.1', AbortSignal.abort()), cut)
})

const stranger = makeSelfSigned()
t.test(
  'attempt, delivery 12: a bad certificate where TLS is demanded',
  { skip: !stranger && 'no openssl' },
  async (t) => {
    const mx = await startMx({ capabilities: ['STARTTLS'], tls: stranger! })
    t.teardown(() => mx.close())
    const issuers = createIssuers(() => 0)
    const deps = {
      ehloName: 'out.svc.test',
      port: mx.port,
      timeouts: SHORT_TIMEOUTS,
      ca: null,
      nowMs: () => 0,
      issuers,
    }
    const input = { host: 'mx.test', address: '127.0.0.1', isVerified: true }
    for (const script of [null, { capabilities: [] }]) {
      if (script) mx.script(script)
      const ended = await attemptAddress(input, { ...deps, brokenTls: createBrokenTls() }, NEVER)
      const outcome = { result: 'deferred', classification: 'PolicyRelated', code: null, hard: false, phase: 'conn' }
      t.match(ended, { ok: false, contact: 'answered', outcome })
    }
    t.notMatch(mx.sessions.flatMap(({ commands }) => commands).join(), /MAIL/)
  },
)
