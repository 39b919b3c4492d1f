/**
 * session-pool - which session is given, and when a connection may be opened; real sessions, a clock that is a number.
 */

import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { SITE_LIMITS } from '../../../src/mail/site.ts'
import { openSession, type Session } from '../../../src/outbound/thread/converse.ts'
import type { DaneChecked } from '../../../src/outbound/thread/dane.ts'
import { type Held, type PoolAsk, SessionPool } from '../../../src/outbound/thread/session-pool.ts'
import { until } from '../../support/machine/until.ts'
import { startMx } from '../../support/peers/mx.ts'
import { SHORT_TIMEOUTS } from '../../support/peers/sender.ts'

const NEVER = new AbortController().signal
const ASK: PoolAsk = {
  site: 'a',
  hosts: ['mx.test'],
  isVerified: false,
  secureNames: null,
  limits: SITE_LIMITS,
  connections: 2,
}
const UNCHECKED: DaneChecked = { dane: null, checkedFor: null, isPublic: true }

async function setUp(t: Test, { connectionsMax = 10 } = {}) {
  const mx = await startMx({})
  let nowMs = 1000
  const pool = new SessionPool({ connectionsMax, nowMs: () => nowMs })
  t.teardown(async () => {
    pool.close()
    await mx.close()
  })
  async function open(ask: PoolAsk = ASK, checked = UNCHECKED): Promise<Held> {
    t.equal(await pool.admit(ask), 0)
    const socket = connect(mx.port, '127.0.0.1')
    const input = { socket, host: 'mx.test', ehloName: 'out.test', tls: 'none', tlsOptions: {}, auth: null } as const
    const opened = await openSession({ ...input, timeouts: SHORT_TIMEOUTS, connectMs: 1 }, NEVER)
    if (!opened.ok) throw new Error(opened.failure.text)
    pool.placed(ask, opened.session)
    return {
      session: opened.session,
      host: 'mx.test',
      address: '127.0.0.1',
      isDual: false,
      openedAtMs: nowMs,
      checked,
      messages: 0,
    }
  }
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { mx, pool, open, pass }
}

const isGone = (session: Session) => until(() => !session.isOpen(), 5000)

t.test('session-pool: a kept session is used again, for its site and its hosts only [delivery.reuse]', async (t) => {
  const { pool, open } = await setUp(t)
  const held = await open()
  t.equal(pool.take(ASK), null, 'one that is in use is not')
  pool.keep(ASK, held)
  t.equal(pool.take({ ...ASK, site: 'b' }), null)
  t.equal(pool.take({ ...ASK, hosts: ['other.test'] }), null)
  t.equal(pool.take({ ...ASK, isVerified: true }), null, 'nor one that was not verified where that is demanded')
  t.equal(pool.take(ASK), held)
  pool.keep(ASK, held)
  held.session.destroy()
  t.equal(pool.take(ASK), null, 'one that is gone is not')
})

t.test('session-pool: closed after its messages, or its time [delivery.site.limits]', async (t) => {
  const { pool, open, pass } = await setUp(t)
  const used = await open()
  used.messages = SITE_LIMITS.messagesPerConnection
  pool.keep(ASK, used)
  await isGone(used.session)
  const old = await open()
  pass(300_000)
  pool.keep(ASK, old)
  await isGone(old.session)
  t.equal(pool.take(ASK), null)
  await until(() => pool.open === 0, 5000)
})

t.test('session-pool: an attempt waits for a place until a connection has closed [delivery.site.limits]', async (t) => {
  const { pool, open } = await setUp(t)
  const [one, other] = [await open(), await open()]
  let isAdmitted = false
  const admitted = pool.admit(ASK).then(() => {
    isAdmitted = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(isAdmitted, 'two are open')
  one.session.destroy()
  await admitted
  t.equal(pool.open, 2)
  pool.placed(ASK, null)
  t.equal(pool.open, 1, 'a place that came to nothing is free again')
  pool.keep(ASK, other)
  t.equal(await pool.admit({ ...ASK, connections: 1 }), 0, 'an idle one makes room')
  t.equal(pool.take(ASK), null)
})

t.test('session-pool: a hundred new connections in any minute [delivery.site.limits]', async (t) => {
  const { pool, pass } = await setUp(t)
  for (let n = 0; n < 100; n += 1) {
    t.equal(await pool.admit(ASK), 0)
    pool.placed(ASK, null)
    pass(100)
  }
  t.equal(await pool.admit(ASK), 50_000, 'when the first one is a minute old')
  t.equal(await pool.admit({ ...ASK, site: 'b' }), 0, 'of its own site')
  pass(50_000)
  t.equal(await pool.admit(ASK), 0)
})

t.test(
  'session-pool: the oldest idle connection is closed when the process has too many [delivery.fair]',
  async (t) => {
    const { pool, open } = await setUp(t, { connectionsMax: 2 })
    const [one, other] = [await open(), await open({ ...ASK, site: 'b' })]
    pool.keep(ASK, one)
    pool.keep({ ...ASK, site: 'b' }, other)
    await open({ ...ASK, site: 'c' })
    await isGone(one.session)
    t.ok(other.session.isOpen())
  },
)
