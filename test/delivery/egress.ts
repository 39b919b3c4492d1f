/** egress - mail by sources, pools and rules from end to end: real addresses, relays, blocks, ceilings. */

import { Redis } from 'ioredis'
import t from 'tap'
import type { Message } from '../../schemas/message.ts'
import type { Egress, EgressBody } from '../../schemas/operator/egress.ts'
import { until as untilWithin } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startDelivery } from '../support/service/delivery.ts'

const delivery = await startDelivery()
const { destination, send, messageWhen, operate, service } = delivery
const relay = await startMx({ capabilities: ['AUTH PLAIN LOGIN'] })
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await delivery.stop()
  await relay.close()
})
t.jobs = 1

const BLOCKED = { rcpt: '550 5.7.1 Client host blocked using zen.spamhaus.org' }
const hasEnded = ({ status }: Message) => status !== 'accepted' && status !== 'deferred'
const KEY = '{s000}:egress:conf'

const SOURCES: EgressBody['sources'] = [
  { name: 'one', address: '127.0.0.11', ehlo: 'one.service.example' },
  { name: 'two', address: '127.0.0.12', ehlo: 'two.service.example' },
  { name: 'constructor', relay: `smtp://user@127.0.0.1:${relay.port}`, password: 'hunter2hunter2' },
]
const POOLS: EgressBody['pools'] = [
  { name: 'first-one', sources: [{ source: 'one' }, { source: 'two', weight: 0 }] },
  { name: 'one', sources: [{ source: 'one' }] },
  { name: 'relayed', sources: [{ source: 'constructor' }] },
]

async function apply(body: Partial<EgressBody>): Promise<Egress> {
  const answer = await operate('PUT /egress', { sources: SOURCES, pools: POOLS, rules: [], ...body })
  t.equal(answer.status, 200, JSON.stringify(answer.json))
  return answer.json as unknown as Egress
}

const until = <Value>(look: () => Value | Promise<Value>) => untilWithin(look, 60_000)
const explain = async (query: string) => (await operate(`GET /egress/explain?${query}`)).json

t.test('egress: mail leaves from the address of its source, with its name [egress.document]', async (t) => {
  const mx = await destination('plain.test')
  await apply({ defaultPool: 'one' })
  const id = await send(['ada@plain.test'])
  const { events } = await messageWhen(id, hasEnded)
  t.match(events[0], { event: 'delivered', route: { sourceAddress: '127.0.0.11' } })
  t.match(mx.sessions[0], { from: '127.0.0.11' })
  t.match(mx.sessions[0]?.commands[0], /^EHLO one\.service\.example/)
  t.match(await explain(`messageId=${id}`), { domain: 'plain.test', site: 'mx.plain.test', pool: 'one', waits: null })
})

t.test('egress: a rule sends mail by a relay, whose password is sealed in the store [egress.rule]', async (t) => {
  const applied = await apply({ rules: [{ streamKind: 'transactional', site: 'by-relay.test', pool: 'relayed' }] })
  t.same(applied.passwords, ['constructor'])
  t.notMatch(JSON.stringify(applied), /hunter2/)
  t.notMatch(JSON.stringify(await redis.hgetall(KEY)), /hunter2/)
  const direct = await destination('by-relay.test')
  await messageWhen(await send(['ada@by-relay.test']), hasEnded)
  t.equal(direct.sessions.length, 0)
  const auth = relay.sessions[0]?.commands.find((command) => command.startsWith('AUTH PLAIN')) ?? ''
  t.equal(Buffer.from(auth.slice('AUTH PLAIN '.length), 'base64').toString(), '\0user\0hunter2hunter2')
  t.match(await explain('domain=by-relay.test&streamKind=transactional'), { rule: 0, pool: 'relayed' })
  t.match(await explain('domain=by-relay.test&streamKind=broadcast'), { rule: null, pool: 'default' })
})

t.test('egress: a blocked source rests and the next one sends in the same attempt [egress.failover]', async (t) => {
  await apply({ defaultPool: 'first-one' })
  const mx = await destination('picky.test', { from: (address) => (address === '127.0.0.11' ? BLOCKED : undefined) })
  const { events } = await messageWhen(await send(['ada@picky.test']), hasEnded)
  t.match(events, [{ event: 'delivered', route: { sourceAddress: '127.0.0.12' } }], 'and no other event')
  const before = mx.sessions.filter(({ from }) => from === '127.0.0.11').length
  await messageWhen(await send(['bob@picky.test']), hasEnded)
  t.equal(mx.sessions.filter(({ from }) => from === '127.0.0.11').length, before, 'the first one rests')
  const seen = await until(async () => {
    const { json } = await operate('GET /egress')
    return (json as unknown as Egress).resting.length > 0 ? json : null
  })
  t.match(seen, { resting: [{ source: 'one', site: 'mx.picky.test', why: /spamhaus/ }] })
  t.match(await explain('domain=picky.test'), {
    waits: null,
    sources: [
      { source: 'one', state: 'resting', why: /spamhaus/ },
      { source: 'two', state: 'ready' },
    ],
  })
  t.match(await explain('domain=plain.test'), { sources: [{ state: 'ready' }, {}] }, 'it rests at that site alone')
})

t.test('egress: mail above a ceiling waits, is explained, and goes once it is raised [egress.ceiling]', async (t) => {
  const limited = (messagesPerHour: number) => [
    { ...SOURCES[0]!, limits: [{ site: 'default', messagesPerHour }] },
    ...SOURCES.slice(1),
  ]
  await apply({ sources: limited(2), defaultPool: 'one' })
  const mx = await destination('slow.test')
  const ids = [await send(['a@slow.test']), await send(['b@slow.test']), await send(['c@slow.test'])]
  await until(() => mx.sessions.flatMap(({ messages }) => messages).length === 2)
  await until(async () => ((await explain('domain=slow.test')) as { waits: string | null }).waits !== null)
  t.match(await explain('domain=slow.test'), {
    waits: /one: the messages of this hour are used up/,
    sources: [
      { state: 'ceiling', limits: [{}, {}, {}, {}, { limit: 'messagesPerHour', value: 2, used: 2, isCeiling: true }] },
    ],
  })
  await apply({ sources: limited(1000), defaultPool: 'one' })
  await until(async () => {
    await operate('POST /queue/retry', { domain: 'slow.test' })
    return mx.sessions.flatMap(({ messages }) => messages).length === 3
  })
  for (const id of ids) t.match((await messageWhen(id, hasEnded)).events, [{ event: 'delivered' }])
  t.equal(mx.sessions.flatMap(({ messages }) => messages).length, 3)
})

t.test('egress: a warm-up that has not begun sends nothing with its source [egress.warmup]', async (t) => {
  const sources = [{ ...SOURCES[0]!, warmup: { startDate: '2099-01-01' } }, ...SOURCES.slice(1)]
  await apply({ sources, defaultPool: 'first-one' })
  await destination('warm.test')
  const { events } = await messageWhen(await send(['ada@warm.test']), hasEnded)
  t.match(events, [{ event: 'delivered', route: { sourceAddress: '127.0.0.12' } }])
  t.match(await explain('domain=warm.test'), { sources: [{ state: 'ceiling' }, { state: 'ready' }] })
})

t.test('egress: a damaged password is a fault of its source, and stops nothing [egress.password]', async (t) => {
  await apply({ defaultPool: 'relayed' })
  await redis.hset(KEY, 'password:constructor', Buffer.from('damaged').toString('base64'))
  await until(async () => {
    const { sources } = (await explain('domain=plain.test')) as { sources: { state: string }[] }
    return sources[0]?.state === 'unusable'
  })
  const id = await send(['waits@plain.test'])
  await apply({ defaultPool: 'one' })
  const { events } = await until(async () => {
    await operate('POST /queue/retry', { domain: 'plain.test' })
    const seen = await delivery.message(id)
    return hasEnded(seen) ? seen : null
  })
  t.match(events, [{ event: 'delivered' }])
})

t.test('egress: an applied document keeps the password of the same URL alone [egress.password]', async (t) => {
  const named = (relayUrl: string, password?: string | null) =>
    apply({
      sources: [
        ...SOURCES.slice(0, 2),
        { name: 'constructor', relay: relayUrl, ...(password !== undefined && { password }) },
      ],
    })
  const url = `smtp://user@127.0.0.1:${relay.port}`
  t.same((await named(url, 'again')).passwords, ['constructor'])
  t.same((await named(url)).passwords, ['constructor'])
  t.same((await named('smtp://user@elsewhere.test')).passwords, [], 'it is not sent to another host')
  t.same((await named(url, 'again')).passwords, ['constructor'])
  t.same((await named(url, null)).passwords, [])
})

t.test('egress: an empty document is the settings again', async (t) => {
  const { version } = await apply({ sources: [], pools: [] })
  t.ok(version > 5)
  await destination('again.test')
  const { events } = await messageWhen(await send(['ada@again.test']), hasEnded)
  t.notMatch(events[0]?.route, { sourceAddress: '127.0.0.11' })
  t.match(await explain('domain=again.test'), { pool: 'default', sources: [{ source: 'default', state: 'ready' }] })
})

const WRONG: [body: object, path: string][] = [
  [{ sources: [{ name: 'a' }] }, 'sources.0.address'],
  [{ sources: [{ name: 'a', address: '127.0.0.1', relay: 'smtp://a.test' }] }, 'sources.0.address'],
  [{ sources: [{ name: 'a', address: '127.0.0' }] }, 'sources.0.address'],
  [{ sources: [{ name: 'default', address: '127.0.0.1' }] }, 'sources.0.name'],
  [{ sources: [{ name: '__proto__', address: '127.0.0.1' }] }, 'sources.0.name'],
  [{ sources: [{ name: 'a', relay: 'smtp://user:pass@a.test' }] }, 'sources.0.relay'],
  [{ sources: [{ name: 'a', relay: 'smtp://a.test', password: 'x' }] }, 'sources.0.password'],
  [
    { sources: [{ name: 'a', address: '127.0.0.1', warmup: { startDate: '2026-02-30' } }] },
    'sources.0.warmup.startDate',
  ],
  [{ pools: [{ name: 'p', sources: [{ source: 'gone' }] }] }, 'pools.0.sources.0.source'],
  [{ pools: [{ name: 'p', sources: [] }] }, 'pools.0.sources'],
  [{ rules: [{ pool: 'gone' }] }, 'rules.0.pool'],
  [{ defaultPool: 'gone' }, 'defaultPool'],
]
for (const [body, path] of WRONG)
  t.test(`egress: ${JSON.stringify(body)} is refused at ${path} [egress.document]`, async (t) => {
    const answer = await operate('PUT /egress', { sources: [], pools: [], rules: [], ...body })
    t.equal(answer.status, 400)
    t.match(answer.json, { error: 'invalid_request', issues: [{ path }] })
  })

t.test('egress: a question without a subject, or with two, is refused [egress.explain]', async (t) => {
  for (const query of ['', `messageId=${await send(['x@again.test'])}&domain=a.test`])
    t.match(await operate(`GET /egress/explain?${query}`), { status: 400, json: { issues: [{ path: 'messageId' }] } })
  t.match(await operate('GET /egress/explain?messageId=0192f3a0-0000-7000-8000-000000000000'), { status: 404 })
})
