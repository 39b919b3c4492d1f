/**
 * egress - 2,000 recipients at six sites over a pool of two sources, one of which is blocked at three of the sites in
 * the middle: every recipient is delivered to, once, without an event of the block, and nobody is suppressed
 */

import { Redis } from 'ioredis'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import type { MxSession } from '../../support/peers/mx.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const SITES = 6
const BLOCKING = 3
const MESSAGES = 40
const RECIPIENTS = 50
const CEILING = 120
const WAIT_MS = 300_000

const delivery = await startDelivery()
const { service, operate, send, destination } = delivery
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await delivery.stop()
})

t.test('egress: a source is blocked in the middle of a run [egress.failover, egress.ceiling]', async (t) => {
  let isBlocked = false
  const sites = await Promise.all(
    Array.from({ length: SITES }, (_, at) =>
      destination(`site${at}.test`, {
        capabilities: ['PIPELINING'],
        from: (address) =>
          address === '127.0.0.11' && at < BLOCKING
            ? { rcpt: () => (isBlocked ? '550 5.7.1 Client host blocked using zen.spamhaus.org' : '250 2.1.5 ok') }
            : undefined,
      }),
    ),
  )
  const limits = [{ site: 'mx.site5.test', messagesPerHour: CEILING }]
  const sources = [
    { name: 'one', address: '127.0.0.11', limits },
    { name: 'two', address: '127.0.0.12' },
  ]
  const pools = [{ name: 'both', sources: [{ source: 'one' }, { source: 'two' }] }]
  t.equal((await operate('PUT /egress', { sources, pools, rules: [], defaultPool: 'both' })).status, 200)
  // After a refused RCPT that was pipelined with DATA, an empty message ends the transaction (RFC 2920 3.1).
  const received = (sessions: readonly MxSession[]) =>
    sessions.flatMap(({ messages }) => messages).filter((text) => text.includes('Subject: Order')).length
  const sum = () => sites.reduce((all, { sessions }) => all + received(sessions), 0)
  const ids: string[] = []
  for (let n = 0; n < MESSAGES; n += 1) {
    const to = Array.from({ length: RECIPIENTS }, (_, at) => `r${n}-${at}@site${(n + at) % SITES}.test`)
    ids.push(await send(to))
    if (n === MESSAGES / 2) isBlocked = true
  }
  await until(() => sum() >= MESSAGES * RECIPIENTS, WAIT_MS)
  for (const id of ids) {
    const message = await until(async () => {
      const seen = await delivery.message(id)
      return seen.status === 'accepted' || seen.status === 'deferred' ? null : seen
    }, WAIT_MS)
    t.equal(message.status, 'delivered', id)
    t.notOk(
      message.events.some(({ event }) => event !== 'delivered'),
      'no other event',
    )
  }
  t.equal(sum(), MESSAGES * RECIPIENTS, 'each recipient once')
  t.same(await redis.keys('*:suppressed:*'), [], 'nobody is suppressed')
  const byOne = received(sites[5]?.sessions.filter(({ from }) => from === '127.0.0.11') ?? [])
  t.ok(byOne <= CEILING, `${byOne} of ${CEILING} an hour`)
  const { resting } = (await operate('GET /egress')).json as { resting: { source: string }[] }
  t.ok(resting.length > 0 && resting.every(({ source }) => source === 'one'), 'the blocked one rests')
})
