/** Scenarios of delivery: where mail goes, over which connections, and how often. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { BLACK_HOLE_SKIP, openBlackHole } from '../support/peers/black-hole.ts'
import type { FakeMx, MxScript } from '../support/peers/mx.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'
import { startDelivery } from '../support/service/delivery.ts'

const folder = mkdtempSync(join(tmpdir(), 'delivery-'))
writeFileSync(join(folder, 'limits.json'), '{"mx.many.test": {"connections": 5}}')
const delivery = await startDelivery({ SITE_LIMITS: join(folder, 'limits.json') })
const { send, message, messageWhen, destination, server, zone, operate } = delivery
t.teardown(async () => {
  await delivery.stop()
  rmSync(folder, { recursive: true })
})
t.jobs = 8

const selfSigned = makeSelfSigned()

t.test('delivery 1: TLS with whatever certificate', { skip: selfSigned ? false : 'no openssl' }, async (t) => {
  const mx = await destination('tls.test', { capabilities: ['STARTTLS', 'PIPELINING'], tls: selfSigned! })
  await messageWhen(await send(['ann@tls.test']), ({ status }) => status === 'delivered')
  t.same(
    mx.sessions[0]?.commands.map((line) => line.split(' ')[0]),
    ['EHLO', 'STARTTLS', 'EHLO', 'MAIL', 'RCPT', 'DATA'],
  )
  t.ok(mx.sessions[0]?.secure)
})

for (const handshake of ['old', 'tls'] as const) {
  const name = handshake === 'old' ? '10: TLS 1.1 only' : '11: words slipped in before the handshake'
  t.test(`delivery ${name}`, { skip: selfSigned ? false : 'no openssl' }, async (t) => {
    const starttls = handshake === 'old' ? '220 go' : '220 go\n250-mx.test\n250 X-SLIPPED-IN'
    const domain = `${handshake}-shake.test`
    const mx = await destination(domain, { capabilities: ['STARTTLS'], handshake, starttls, tls: selfSigned! })
    const { status } = await messageWhen(await send([`ann@${domain}`]), (seen) => seen.status !== 'accepted')
    t.equal(status, 'delivered')
    t.equal(mx.sessions.filter(({ messages }) => messages.length > 0).length, 1)
    const commands = mx.sessions.filter(({ secure }) => secure).flatMap((session) => session.commands)
    t.notOk(commands.length > 0 && !commands.includes('STARTTLS'))
  })
}

t.test('delivery 14: greylisted, then taken: one event each', async (t) => {
  const mx = await destination('grey.test', { mail: '451 4.7.1 Greylisted' })
  const id = await send(['ann@grey.test'])
  await messageWhen(id, ({ status }) => status === 'deferred')
  mx.sever()
  mx.script({})
  await operate('POST /queue/retry', { domain: 'grey.test' })
  const { events } = await messageWhen(id, ({ status }) => status === 'delivered')
  t.same(
    events.map(({ event }) => event),
    ['deferred', 'delivered'],
  )
})

/** Orders one attempt after the other, each under its script, and waits for what comes of it. */
async function attemptAll(mx: FakeMx, { id, domain }: { id: string; domain: string }, scripts: readonly MxScript[]) {
  for (const [index, script] of scripts.entries()) {
    mx.sever()
    mx.script(script)
    await operate('POST /queue/retry', { domain })
    await messageWhen(id, ({ recipients }) => recipients[0]?.attempts === index + 2)
  }
  return message(id)
}

t.test('delivery 3: blocked at the banner for two days: expired in that class, and nobody is suppressed', async (t) => {
  const script = { banner: '554 5.7.1 blocked using zen.spamhaus.org' }
  const mx = await destination('blocked.test', script)
  const id = await send(['ann@blocked.test'])
  await messageWhen(id, ({ status }) => status === 'deferred')
  const { events } = await attemptAll(mx, { id, domain: 'blocked.test' }, Array(14).fill(script))
  t.same(
    events.map(({ event }) => event),
    [...Array(14).fill('deferred'), 'bounced'],
  )
  t.match(events[14]?.details, { classification: 'SpamBlock', code: 554, expired: true, hard: false })
  mx.sever()
  mx.script({})
  await messageWhen(await send(['ann@blocked.test']), ({ status }) => status === 'delivered')
})

t.test('delivery 20: refused for now at DATA, then at the dot, then taken', async (t) => {
  const mx = await destination('twice.test', { data: '451 4.3.0 later' })
  const id = await send(['ann@twice.test'])
  await messageWhen(id, ({ status }) => status === 'deferred')
  const { events } = await attemptAll(mx, { id, domain: 'twice.test' }, [{ dot: '451 4.3.0 later still' }, {}])
  t.match(events, [
    { event: 'deferred', details: { response: '451 4.3.0 later' } },
    { event: 'deferred', details: { response: '451 4.3.0 later still' } },
    { event: 'delivered' },
  ])
})

for (const dot of ['drop', 'fin', 'hang'] as const)
  t.test(`delivery 23: ${dot} after the dot, then taken; the copy is allowed`, async (t) => {
    const domain = `${dot}-dot.test`
    const mx = await destination(domain, { dot })
    const id = await send([`ann@${domain}`])
    await messageWhen(id, ({ status }) => status === 'deferred')
    const { events } = await attemptAll(mx, { id, domain }, [{}])
    t.match(events, [
      { event: 'deferred', details: { code: null } },
      { event: 'delivered', details: { code: 250 } },
    ])
    const copies = mx.sessions.flatMap(({ messages }) => messages)
    t.equal(copies.length, 2)
    t.equal(copies[0], copies[1], 'the same bytes')
  })

t.test('delivery 16: the connection stays usable after a refusal', async (t) => {
  const rcpt = (line: string) => (line.includes('bad@') ? '550 5.1.1 no such user' : '250 2.1.5 ok')
  const mx = await destination('mixed.test', { rcpt })
  await messageWhen(await send(['bad@mixed.test']), ({ status }) => status === 'bounced')
  await messageWhen(await send(['ann@mixed.test']), ({ status }) => status === 'delivered')
  t.equal(mx.sessions.length, 1)
  t.same(mx.sessions[0]?.raw[0], '.\r\n', 'the refused one was ended with nothing in it')
  t.ok(mx.sessions[0]?.commands.includes('RSET'))
})

t.test('delivery 2 and 8: the next server is tried after 421 and a refused greeting', async (t) => {
  for (const [domain, script] of [
    ['busy.test', { banner: '421 4.7.0 busy' }],
    ['rude.test', { ehlo: '550 no', helo: '550 no' }],
    ['silent.test', { banner: 'hang' }],
  ] as const) {
    const [first, second] = [await server(script), await server()]
    zone.set(
      domain,
      { type: 'MX', exchange: `a.${domain}`, priority: 1 },
      { type: 'MX', exchange: `b.${domain}`, priority: 2 },
    )
    zone.set(`a.${domain}`, { type: 'A', address: first.address })
    zone.set(`b.${domain}`, { type: 'A', address: second.address })
    const { events } = await messageWhen(await send([`ann@${domain}`]), ({ status }) => status === 'delivered')
    t.same([events.length, first.sessions.length, second.sessions.length], [1, 1, 1], domain)
  }
})

t.test('delivery 25: a server that refuses the connection is passed over, and comes last next time', async (t) => {
  const second = await server()
  zone.set(
    'half.test',
    { type: 'MX', exchange: 'a.half.test', priority: 1 },
    { type: 'MX', exchange: 'b.half.test', priority: 2 },
  )
  zone.set('a.half.test', { type: 'A', address: '127.0.78.1' })
  zone.set('b.half.test', { type: 'A', address: second.address })
  const { events } = await messageWhen(await send(['ann@half.test']), ({ status }) => status === 'delivered')
  t.equal(events.length, 1)
  await messageWhen(await send(['bob@half.test']), ({ status }) => status === 'delivered')
  t.equal(second.sessions.length, 1, 'over the connection that is there')
})

t.test('delivery 25: a server that never answers is passed over', { skip: BLACK_HOLE_SKIP }, async (t) => {
  const second = await server()
  const hole = await openBlackHole('127.0.78.2', delivery.port)
  t.teardown(() => hole.close())
  const [first, other] = ['a.hole.test', 'b.hole.test']
  zone.set('hole.test', { type: 'MX', exchange: first, priority: 1 }, { type: 'MX', exchange: other, priority: 2 })
  zone.set(first, { type: 'A', address: '127.0.78.2' })
  zone.set(other, { type: 'A', address: second.address })
  const { events } = await messageWhen(await send(['ann@hole.test']), ({ status }) => status === 'delivered')
  t.equal(events.length, 1, 'nobody is told of it')
})

t.test('delivery 26: private addresses are never connected to', async (t) => {
  const mx = await server()
  const own = ['10.0.0.1', '169.254.169.254', '192.168.0.1', '100.64.0.1', '0.0.0.0', '224.0.0.1']
  const addresses = own.map((address) => ({ type: 'A', address }) as const)
  zone.set('private.test', { type: 'MX', exchange: 'mx.private.test', priority: 1 })
  zone.set('mx.private.test', ...addresses)
  const { events } = await messageWhen(await send(['ann@private.test']), ({ status }) => status === 'bounced')
  const told = { code: null, classification: 'RoutingErrors', hard: false }
  t.match(events[0]?.details, { ...told, response: /^5\.4\.4 / })
  zone.set('partly.test', { type: 'MX', exchange: 'mx.partly.test', priority: 1 })
  zone.set('mx.partly.test', ...addresses, { type: 'A', address: mx.address })
  await messageWhen(await send(['ann@partly.test']), ({ status }) => status === 'delivered')
})

t.test('delivery 26: addresses of IPv6 are never connected to, private or not', async (t) => {
  const mx = await server()
  const six = ['::1', '::ffff:10.0.0.1', `::ffff:${mx.address}`, 'fe80::1', 'fd00::1'].map(
    (address) => ({ type: 'AAAA', address }) as const,
  )
  zone.set('six.test', { type: 'MX', exchange: 'mx.six.test', priority: 1 })
  zone.set('mx.six.test', ...six)
  zone.set('both.test', { type: 'MX', exchange: 'mx.both.test', priority: 1 })
  zone.set('mx.both.test', ...six, { type: 'A', address: mx.address })
  const { status } = await messageWhen(await send(['ann@six.test']), (seen) => seen.status !== 'accepted')
  t.equal(status, 'deferred')
  await messageWhen(await send(['ann@both.test']), (seen) => seen.status === 'delivered')
  t.equal(mx.sessions.length, 1)
})

t.test('delivery 27: null MX, no such domain, no DNS, an IP literal, no MX', async (t) => {
  const mx = await server()
  zone.set('null.test', { type: 'MX', exchange: '', priority: 0 })
  zone.fail('fail.test', 'servfail')
  zone.set(
    'literal.test',
    { type: 'MX', exchange: mx.address, priority: 0 },
    { type: 'MX', exchange: 'mx.literal.test', priority: 5 },
  )
  zone.set('mx.literal.test', { type: 'A', address: mx.address })
  zone.set('only-a.test', { type: 'A', address: mx.address })
  zone.set('loop.test', { type: 'MX', exchange: 'MX.service.example', priority: 0 })
  const rows: [domain: string, status: string, details: object][] = [
    ['null.test', 'bounced', { code: null, classification: 'BadDomain', hard: true, response: /^5\.1\.10 / }],
    ['missing.test', 'bounced', { code: null, classification: 'BadDomain', hard: true, response: /^5\.1\.2 / }],
    ['fail.test', 'deferred', { code: null, response: /^4\.4\.3 .*ESERVFAIL/ }],
    ['literal.test', 'delivered', { code: 250 }],
    ['only-a.test', 'delivered', { code: 250 }],
    ['loop.test', 'bounced', { code: null, classification: 'RoutingErrors', hard: false, response: /^5\.4\.6 / }],
  ]
  for (const [domain, status, details] of rows) {
    const seen = await messageWhen(await send([`ann@${domain}`]), (one) => one.status !== 'accepted')
    t.equal(seen.status, status, domain)
    t.match(seen.events[0]?.details, details, domain)
  }
})

t.test('delivery 30: 250 messages, five connections, a hundred messages each at most, each once', async (t) => {
  const mx = await destination('many.test')
  const lists = Array.from({ length: 5 }, (_, list) => Array.from({ length: 50 }, (_, n) => `p${list}-${n}@many.test`))
  const ids = await Promise.all(lists.map((to) => send(to)))
  for (const id of ids) await messageWhen(id, ({ status }) => status === 'delivered')
  t.ok(mx.open.most <= 5, `${mx.open.most} at once`)
  t.ok(mx.sessions.length >= 3, `${mx.sessions.length} connections`)
  t.ok(mx.sessions.every(({ messages }) => messages.length <= 100))
  const recipients = mx.sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('RCPT')))
  t.equal(recipients.length, 250)
  t.equal(new Set(recipients).size, 250)
})

t.test('delivery 24 and 31: a connection that is gone is replaced without an event', async (t) => {
  const mx = await destination('idle.test')
  await messageWhen(await send(['ann@idle.test']), ({ status }) => status === 'delivered')
  mx.answer('421 4.4.2 idle for too long !drop')
  const { events } = await messageWhen(await send(['bob@idle.test']), ({ status }) => status === 'delivered')
  t.equal(events.length, 1)
  t.equal(mx.sessions.length, 2)
})

t.test('delivery 32: a server that wants RSET gets it', async (t) => {
  let isSpoilt = false
  const mx = await destination('reset.test', {
    mail: () => (isSpoilt ? '503 5.5.1 bad sequence' : '250 2.1.0 ok'),
    rcpt(line) {
      isSpoilt = line.includes('bad@')
      return isSpoilt ? '550 5.1.1 no such user' : '250 2.1.5 ok'
    },
    rset() {
      isSpoilt = false
      return '250 2.0.0 ok'
    },
  })
  await messageWhen(await send(['bad@reset.test']), ({ status }) => status === 'bounced')
  const { events } = await messageWhen(await send(['ann@reset.test']), ({ status }) => status === 'delivered')
  t.equal(events.length, 1)
  t.ok(
    mx.sessions.every(
      ({ commands }) => commands.filter((line) => line.startsWith('MAIL')).length <= 1 || commands.includes('RSET'),
    ),
  )
})

t.test('delivery 33: strange line ends and long lines arrive as they were signed', async (t) => {
  const mx = await destination('lines.test')
  const text = `a\rb\nc\r\n.\n.\r\n..\n.d\n${'é'.repeat(600)}${'x'.repeat(1200)}\n.\n`
  await messageWhen(
    await send(['ann@lines.test'], { text, html: `<p>${text}</p>` }),
    ({ status }) => status === 'delivered',
  )
  const [raw = ''] = mx.sessions[0]?.raw ?? []
  t.notMatch(raw, /\r(?!\n)|(?<!\r)\n/, 'no line end but CRLF')
  t.equal(raw.indexOf('\r\n.\r\n'), raw.length - 5, 'one end of data')
  t.ok(raw.split('\r\n').every((line) => line.length <= 998))
  const resolver = async (name: string, type: string) => {
    const { Resolver } = await import('node:dns/promises')
    const client = new Resolver()
    client.setServers([zone.server])
    return client.resolve(name, type)
  }
  const { results } = await dkimVerify(Buffer.from(mx.sessions[0]?.messages[0] ?? '', 'latin1'), {
    resolver: resolver as never,
  })
  t.equal(results[0]?.status.result, 'pass')
})

t.test('delivery 34: to, cc and bcc of one domain: three transactions, three outcomes', async (t) => {
  const rcpt = (line: string) =>
    line.includes('bad@') ? '550 5.1.1 no such user' : line.includes('late@') ? '450 4.2.0 later' : '250 2.1.5 ok'
  const mx = await destination('three.test', { rcpt })
  const id = await send(['ann@three.test'], { cc: ['bad@three.test'], bcc: ['late@three.test'] })
  const { recipients } = await messageWhen(id, (one) => one.recipients.every(({ status }) => status !== 'accepted'))
  t.same(
    recipients.map(({ recipient, status }) => [recipient, status]),
    [
      ['ann@three.test', 'delivered'],
      ['bad@three.test', 'bounced'],
      ['late@three.test', 'deferred'],
    ],
  )
  const senders = mx.sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('MAIL')))
  t.equal(new Set(senders).size, 3)
  const whole = mx.sessions.flatMap(({ messages }) => messages).filter((one) => one.length > 0)
  t.equal(whole.length, 1)
  t.match(whole[0], /^To: ann@three\.test\r$/m)
  t.match(whole[0], /^Cc: bad@three\.test\r$/m)
  t.notMatch(whole[0], /late@|^Bcc/im)
})

t.test('delivery: a dead destination costs the others nothing', async (t) => {
  const dead = Array.from({ length: 20 }, (_, n) => `dead${n}.test`)
  // As many as are begun at once where the site is not known yet: more may come after the pause has begun.
  const people = Array.from({ length: 16 }, (_, n) => `p${n}`)
  for (const domain of dead) await destination(domain, { banner: 'hang' })
  const ids = await Promise.all(dead.map((domain) => send(people.map((name) => `${name}@${domain}`))))
  await destination('living.test')
  await messageWhen(await send(['ann@living.test']), ({ status }) => status === 'delivered')
  for (const id of ids) {
    const { events } = await messageWhen(id, ({ status }) => status === 'deferred')
    t.equal(events.length, people.length, 'those that waited share the failure, one event each')
  }
})

t.test('delivery: a throttled site is left alone, and nothing is told of those that wait', async (t) => {
  const mx = await destination('throttle.test', { rcpt: '421 4.7.0 slow down' })
  await messageWhen(await send(['ann@throttle.test']), ({ status }) => status === 'deferred')
  const sessions = mx.sessions.length
  const id = await send(['bob@throttle.test'])
  await until(async () => (await operate('GET /queue?limit=100')).json, 5000)
  t.match(await message(id), { status: 'accepted', events: [] })
  t.equal(mx.sessions.length, sessions)
  mx.sever()
  mx.script({})
  await operate('POST /queue/retry', { domain: 'throttle.test' })
  await messageWhen(id, ({ status }) => status === 'delivered')
})
