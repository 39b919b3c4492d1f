/**
 * Scenarios of delivery, each a domain of its own: what the receiving server says, and what becomes of the recipient.
 *
 * All run at once against one service; the numbers are those of the list of scenarios.
 */

import { Redis } from 'ioredis'
import t from 'tap'
import type { MxScript } from '../support/peers/mx.ts'
import { startDelivery } from '../support/service/delivery.ts'
import { dumpRedis } from '../support/store/redis-dump.ts'

const delivery = await startDelivery()
const { send, messageWhen, destination } = delivery
t.teardown(() => delivery.stop())

const BAD = '550 5.1.1 no such user'
const NO_PIPELINING = ['ENHANCEDSTATUSCODES']

interface Row {
  readonly number: string
  readonly name: string
  readonly script: MxScript
  /** Status, code, class, hard. */
  readonly expect: readonly [status: string, code: number | null, classification?: string, hard?: boolean]
  readonly response?: RegExp
  /** Sessions that the server saw; 1 by default. */
  readonly sessions?: number
  /** A command that must never have come. */
  readonly never?: RegExp
  /** Bytes of the message text. */
  readonly text?: string
}

const ROWS: readonly Row[] = [
  {
    number: '5',
    name: 'banner of several lines',
    script: { banner: '220-mx.test\n220-be nice\n220 go' },
    expect: ['delivered', 250],
  },
  {
    number: '2',
    name: 'banner 421',
    script: { banner: '421 4.7.0 too busy' },
    expect: ['deferred', 421],
    response: /^421 4\.7\.0 too busy$/,
  },
  {
    number: '3',
    name: 'banner 554 with a block list',
    script: { banner: '554 5.7.1 blocked using zen.spamhaus.org' },
    expect: ['deferred', 554],
    never: /EHLO/,
  },
  {
    number: '4',
    name: 'no banner at all',
    script: { banner: 'hang' },
    expect: ['deferred', null],
    response: /timeout at conn mx\./,
  },
  {
    number: '6',
    name: 'gone before the banner',
    script: { banner: 'drop' },
    expect: ['deferred', null],
    response: /mx\./,
  },
  {
    number: '7',
    name: 'EHLO 502, HELO taken',
    script: { ehlo: '502 5.5.1 what' },
    expect: ['delivered', 250],
    never: /STARTTLS/,
  },
  {
    number: '8',
    name: 'EHLO and HELO refused',
    script: { ehlo: '550 no', helo: '550 5.7.1 no' },
    expect: ['deferred', 550],
  },
  {
    number: '9',
    name: 'STARTTLS 454',
    script: { capabilities: ['STARTTLS'], starttls: '454 4.7.0 no' },
    expect: ['delivered', 250],
  },
  {
    number: '9',
    name: 'STARTTLS 502',
    script: { capabilities: ['STARTTLS'], starttls: '502 5.5.1 no' },
    expect: ['delivered', 250],
  },
  {
    number: '10',
    name: 'garbage for a handshake',
    script: { capabilities: ['STARTTLS'], handshake: 'garbage' },
    expect: ['delivered', 250],
    sessions: 2,
  },
  {
    number: '10',
    name: 'a silent handshake',
    script: { capabilities: ['STARTTLS'], handshake: 'hang' },
    expect: ['delivered', 250],
    sessions: 2,
  },
  {
    number: '16',
    name: 'unknown user, pipelined, DATA 554',
    script: { rcpt: BAD, data: '554 5.5.1 no recipients' },
    expect: ['bounced', 550, 'InvalidRecipient', true],
  },
  {
    number: '16',
    name: 'unknown user, pipelined, 354 all the same',
    script: { rcpt: BAD },
    expect: ['bounced', 550, 'InvalidRecipient', true],
  },
  {
    number: '16',
    name: 'unknown user, one command at a time',
    script: { rcpt: BAD, capabilities: NO_PIPELINING },
    expect: ['bounced', 550, 'InvalidRecipient', true],
    never: /^DATA/,
  },
  {
    number: '17',
    name: 'policy at RCPT',
    script: { rcpt: '550 5.7.1 policy' },
    expect: ['bounced', 550, 'PolicyRelated', false],
  },
  {
    number: '17',
    name: 'access denied at RCPT',
    script: { rcpt: '554 5.7.1 <ann>: Recipient address rejected: Access denied' },
    expect: ['bounced', 554, 'PolicyRelated', false],
  },
  {
    number: '18',
    name: '421 at RCPT, then gone',
    script: { rcpt: '421 4.7.0 slow down !drop', capabilities: NO_PIPELINING },
    expect: ['deferred', 421],
  },
  {
    number: '19',
    name: 'too large after the dot',
    script: { dot: '552 5.3.4 too large' },
    expect: ['bounced', 552, 'ContentRelated', false],
  },
  {
    number: '19',
    name: 'larger than the SIZE that is offered',
    script: { capabilities: ['SIZE 10'] },
    expect: ['bounced', null, 'ContentRelated', false],
    response: /^5\.3\.4 /,
    never: /^MAIL/,
  },
  {
    number: '20',
    name: 'DATA 451',
    script: { data: '451 4.3.0 later' },
    expect: ['deferred', 451],
    response: /^451 4\.3\.0 later$/,
  },
  { number: '20', name: '451 after the dot', script: { dot: '451 4.3.0 later' }, expect: ['deferred', 451] },
  {
    number: '21',
    name: 'three lines after the dot',
    script: { dot: '554-5.7.1 a\n554-5.7.1 b\n554 5.7.1 c' },
    expect: ['bounced', 554, 'PolicyRelated', false],
    response: /^554 5\.7\.1 a b c$/,
  },
  {
    number: '22',
    name: 'unknown user after the dot',
    script: { dot: "554 delivery error: dd This user doesn't have a yahoo.com account (ann@yahoo.com) [-5]" },
    expect: ['bounced', 554, 'InvalidRecipient', true],
  },
  {
    number: '23',
    name: 'cut after the dot',
    script: { dot: 'drop' },
    expect: ['deferred', null],
    response: /connection/,
  },
  {
    number: '23',
    name: 'closed after the dot',
    script: { dot: 'fin' },
    expect: ['deferred', null],
    response: /connection/,
  },
  {
    number: '23',
    name: 'silence after the dot',
    script: { dot: 'hang' },
    expect: ['deferred', null],
    response: /^timeout at dot /,
  },
  {
    number: '24',
    name: 'gone after RCPT',
    script: { rcpt: 'drop', capabilities: NO_PIPELINING },
    expect: ['deferred', null],
  },
  {
    number: '29',
    name: 'a reply without a code',
    script: { rcpt: 'hello there', capabilities: NO_PIPELINING },
    expect: ['deferred', null],
  },
  {
    number: '29',
    name: 'a reply of two megabytes',
    script: { rcpt: `250 ${'x'.repeat(2_000_000)}`, capabilities: NO_PIPELINING },
    expect: ['deferred', null],
  },
  {
    number: '29',
    name: 'EHLO of 200 lines',
    script: { capabilities: Array.from({ length: 200 }, (_, n) => `X-${n}`) },
    expect: ['delivered', 250],
  },
]

t.jobs = 16
for (const [index, row] of ROWS.entries()) {
  t.test(`delivery ${row.number}: ${row.name}`, async (t) => {
    const domain = `d${index}.test`
    const mx = await destination(domain, row.script)
    const id = await send([`ann@${domain}`])
    const message = await messageWhen(id, ({ status }) => status !== 'accepted')
    const [status, code, classification, hard] = row.expect
    const [recipient] = message.recipients
    t.match(recipient, { status, code, attempts: 1 })
    if (row.response) t.match(recipient?.response, row.response)
    t.equal(message.events.length, 1, 'one event')
    if (classification !== undefined) t.match(message.events[0]?.details, { classification, hard, expired: false })
    t.equal(mx.sessions.length, row.sessions ?? 1, 'sessions')
    const commands = mx.sessions.flatMap((session) => session.commands)
    if (row.never)
      t.notOk(
        commands.some((line) => row.never?.test(line)),
        `never ${row.never}`,
      )
    if (status === 'delivered') t.equal(mx.sessions.flatMap(({ messages }) => messages).length, 1, 'it arrived once')
    if (hard !== true) return
    const again = await messageWhen(await send([`ann@${domain}`]), (seen) => seen.status !== 'accepted')
    t.equal(again.status, 'suppressed', 'a hard bounce suppresses')
    t.equal(mx.sessions.length, 1)
  })
}

t.test('delivery 1: pipelined over TLS, dots stuffed, one EHLO each side of it', async (t) => {
  const mx = await destination('plain.test', { capabilities: ['PIPELINING'] })
  await messageWhen(await send(['ann@plain.test']), ({ status }) => status === 'delivered')
  const [session] = mx.sessions
  const sender = session?.commands.find((line) => line.startsWith('MAIL')) ?? ''
  t.match(sender, /^MAIL FROM:<b-[a-z0-9]{40}@sw-bounce\.acme\.example>/)
  t.ok(session?.reads.includes(`${sender}\r\nRCPT TO:<ann@plain.test>\r\nDATA\r\n`), 'in one write')
  t.match(session?.raw[0], /\r\n\.\.dot\r\n/)
  t.match(session?.messages[0], /\r\n\.dot\r\n/)
})

t.test('delivery 4: a slow banner is waited for', async (t) => {
  const mx = await destination('slow.test', { banner: 'hang' })
  const id = await send(['ann@slow.test'])
  await messageWhen(id, () => mx.sessions.length === 1)
  mx.answer('220 at last')
  const { events } = await messageWhen(id, ({ status }) => status === 'delivered')
  t.equal(events.length, 1)
})

/** What a server answers to `ann` at its own domain, and how the answer is shown. */
const NAMED: readonly (readonly [domain: string, script: MxScript, status: string, shown: string])[] = [
  [
    'forwards.test',
    { rcpt: '550 5.1.1 <ann@forwards.test> (forwarded to Ann.Secret@home.example): user unknown' },
    'bounced',
    '550 5.1.1 <ann@forwards.test> (forwarded to <address>): user unknown',
  ],
  [
    'moves.test',
    { rcpt: '450 4.2.0 try <ann.secret@home.example>, https://moves.test/?a=ann.secret%40home.example' },
    'deferred',
    '450 4.2.0 try <<address>>, https://moves.test/?<address>',
  ],
  [
    'tells.test',
    { dot: '250 2.0.0 ann@tells.test goes to "ann secret"@home.example' },
    'delivered',
    '250 2.0.0 ann@tells.test goes to <address>',
  ],
]

t.test("delivery: another's address in an answer is kept nowhere, the recipient's own is shown", async (t) => {
  for (const [domain, script, status, shown] of NAMED) {
    await destination(domain, script)
    const seen = await messageWhen(await send([`ann@${domain}`]), (message) => message.status !== 'accepted')
    t.match(seen.recipients[0], { status, response: shown })
    t.match(seen.events[0]?.details, { response: shown })
  }
  const { json } = await delivery.service.call('POST /v1/suppressions/search', {
    token: delivery.service.firstRun.liveServer.token,
    body: { recipient: 'ann@forwards.test' },
  })
  t.equal(json.suppressions[0].response, NAMED[0]?.[3])
  const redis = new Redis(delivery.service.redis.socketPath)
  t.teardown(() => redis.disconnect())
  const kept = JSON.stringify([...(await dumpRedis(redis, '*'))])
  t.match(kept, /forwarded to <address>/, 'the answer is in the store')
  t.notMatch(kept, /ann.secret|home\.example/i)
})

t.test('delivery 15: a server that names its patience gets it', async (t) => {
  await destination('patient.test', { rcpt: '450 4.2.0 Greylisted, try again in 300 seconds' })
  const id = await send(['ann@patient.test'])
  const { recipients, events } = await messageWhen(id, ({ status }) => status === 'deferred')
  const waitMs = Date.parse(recipients[0]?.nextAttemptAt ?? '') - Date.parse(events[0]?.occurredAt ?? '')
  t.ok(waitMs >= 310_000 && waitMs < 312_000, `${waitMs} ms`)
})

t.test('delivery 28: an address that plain SMTP cannot carry is not accepted at all', async (t) => {
  const { json } = await delivery.service.call('POST /v1/email', {
    token: delivery.service.firstRun.liveServer.token,
    body: { from: 'shop@acme.example', to: ['jürgen@a.test'], subject: 'x', text: 'x' },
  })
  t.match(json, { error: 'invalid_request', issues: [{ path: 'to.0' }] })
})
