/** converse - one test per kind of reply and per place where a dialogue can break, over real sockets. */

import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { SMTP_TIMEOUTS } from '../../../src/outbound/thread/converse.ts'
import { until } from '../../support/machine/until.ts'
import type { MxScript } from '../../support/peers/mx.ts'
import { makeSelfSigned } from '../../support/peers/self-signed.ts'
import { JOB, type SenderDeps, SHORT_TIMEOUTS, setUpTransmit } from '../../support/peers/sender.ts'

/** A set-up whose sessions end with their message. */
async function setUp(t: Test, script: MxScript, more: Partial<SenderDeps> = {}) {
  const made = await setUpTransmit(t, script, more)
  made.deps.pool.close()
  return made
}

interface Row {
  readonly name: string
  readonly script: MxScript
  readonly more?: Partial<SenderDeps>
  /** result, code, classification, hard, phase */
  readonly expect: [string, number | null, string | null, boolean, string]
  readonly response?: RegExp | string
}

const ROWS: Row[] = [
  { name: 'success', script: {}, expect: ['delivered', 250, null, false, 'dot'], response: '250 2.0.0 queued' },
  { name: 'success without PIPELINING', script: { capabilities: [] }, expect: ['delivered', 250, null, false, 'dot'] },
  {
    name: 'a banner of several lines',
    script: { banner: '220-mx\n220 mx' },
    expect: ['delivered', 250, null, false, 'dot'],
  },
  {
    name: 'banner 421',
    script: { banner: '421 4.7.0 busy' },
    expect: ['deferred', 421, 'PolicyRelated', false, 'conn'],
  },
  {
    name: 'banner 554',
    script: { banner: '554 5.7.1 blocked by zen.spamhaus.org' },
    expect: ['deferred', 554, 'SpamBlock', false, 'conn'],
  },
  {
    name: 'drop before the banner',
    script: { banner: 'drop' },
    expect: ['deferred', null, 'BadConnection', false, 'conn'],
    response: /mx\.test\[127\.0\.0\.1\]/,
  },
  {
    name: 'no banner',
    script: { banner: 'hang' },
    more: { timeouts: { ...SHORT_TIMEOUTS, greetingMs: 200 } },
    expect: ['deferred', null, 'BadConnection', false, 'conn'],
    response: /^timeout at conn/,
  },
  { name: 'EHLO 502 and HELO', script: { ehlo: '502 5.5.1 no' }, expect: ['delivered', 250, null, false, 'dot'] },
  {
    name: 'EHLO and HELO 550',
    script: { ehlo: '550 no', helo: '550 5.7.1 denied' },
    expect: ['deferred', 550, 'PolicyRelated', false, 'conn'],
  },
  {
    name: 'MAIL 451',
    script: { mail: '451 4.3.0 internal error' },
    expect: ['deferred', 451, 'TransientFailure', false, 'mail'],
  },
  { name: 'MAIL 550', script: { mail: '550 5.7.1 policy' }, expect: ['bounced', 550, 'PolicyRelated', false, 'mail'] },
  {
    name: 'RCPT 550 5.1.1',
    script: { rcpt: '550 5.1.1 no such user', data: '554 5.5.1 no valid recipients' },
    expect: ['bounced', 550, 'InvalidRecipient', true, 'rcpt'],
    response: '550 5.1.1 no such user',
  },
  {
    name: 'RCPT 550 5.1.1 and DATA 354 anyway',
    script: { rcpt: '550 5.1.1 no such user' },
    expect: ['bounced', 550, 'InvalidRecipient', true, 'rcpt'],
  },
  {
    name: 'RCPT 550 without PIPELINING',
    script: { capabilities: [], rcpt: '550 5.1.1 no such user' },
    expect: ['bounced', 550, 'InvalidRecipient', true, 'rcpt'],
  },
  {
    name: 'RCPT 450 greylisted',
    script: { rcpt: '450 4.2.0 greylisted, try again in 300 seconds', data: '554 no' },
    expect: ['deferred', 450, 'TransientFailure', false, 'rcpt'],
  },
  {
    name: 'RCPT 554 access denied',
    script: { rcpt: '554 5.7.1 Recipient address rejected: Access denied', data: '554 no' },
    expect: ['bounced', 554, 'PolicyRelated', false, 'rcpt'],
  },
  {
    name: 'RCPT 421',
    script: { rcpt: '421 4.7.0 too many connections' },
    expect: ['deferred', 421, 'PolicyRelated', false, 'mail'],
  },
  {
    name: 'DATA 451',
    script: { data: '451 4.3.0 internal error' },
    expect: ['deferred', 451, 'TransientFailure', false, 'data'],
  },
  { name: 'DATA 550', script: { data: '554 5.7.1 policy' }, expect: ['bounced', 554, 'PolicyRelated', false, 'data'] },
  {
    name: 'dot 554 of three lines',
    script: { dot: '554-5.7.1 a\n554-5.7.1 b\n554 5.7.1 spam c' },
    expect: ['bounced', 554, 'SpamContent', false, 'dot'],
    response: '554 5.7.1 a b spam c',
  },
  {
    name: 'dot 451',
    script: { dot: '451 4.3.0 internal error' },
    expect: ['deferred', 451, 'TransientFailure', false, 'dot'],
  },
  {
    name: 'dot: user unknown after DATA',
    script: { dot: "554 delivery error: dd This user doesn't have a yahoo.com account" },
    expect: ['bounced', 554, 'InvalidRecipient', true, 'dot'],
  },
  {
    name: 'dot 552 too large',
    script: { dot: '552 5.3.4 message too big' },
    expect: ['bounced', 552, 'ContentRelated', false, 'dot'],
  },
  {
    name: 'SIZE below the message',
    script: { capabilities: ['SIZE 10'] },
    expect: ['bounced', null, 'ContentRelated', false, 'mail'],
    response: /^5\.3\.4 /,
  },
  {
    name: 'drop at RCPT',
    script: { capabilities: [], rcpt: 'drop' },
    expect: ['deferred', null, 'BadConnection', false, 'mail'],
  },
  {
    name: 'silence at RCPT',
    script: { capabilities: [], rcpt: 'hang' },
    more: { timeouts: { ...SHORT_TIMEOUTS, envelopeMs: 200 } },
    expect: ['deferred', null, 'BadConnection', false, 'mail'],
    response: /^timeout/,
  },
  { name: 'drop after the dot', script: { dot: 'drop' }, expect: ['deferred', null, 'BadConnection', false, 'dot'] },
  {
    name: 'silence after the dot',
    script: { dot: 'hang' },
    // Also the session's bound of silence: the dialogue before the dot must be possible within it.
    more: { timeouts: { ...SHORT_TIMEOUTS, dotMs: 2_000 } },
    expect: ['deferred', null, 'BadConnection', false, 'dot'],
    response: /^timeout at dot/,
  },
  { name: 'no SMTP at all', script: { mail: 'ok fine' }, expect: ['deferred', null, 'ProtocolErrors', false, 'mail'] },
  {
    name: 'a reply of 2 MB',
    script: { mail: `250 ${'x'.repeat(2_000_000)}` },
    expect: ['deferred', null, 'BadConnection', false, 'mail'],
  },
  {
    name: 'EHLO of 200 lines',
    script: { capabilities: Array.from({ length: 200 }, (_, n) => `X-${n}`) },
    expect: ['delivered', 250, null, false, 'dot'],
  },
  {
    name: 'STARTTLS 454',
    script: { capabilities: ['STARTTLS'], starttls: '454 4.7.0 no' },
    expect: ['delivered', 250, null, false, 'dot'],
  },
  {
    name: 'STARTTLS 502',
    script: { capabilities: ['STARTTLS'], starttls: '502 5.5.1 no' },
    expect: ['delivered', 250, null, false, 'dot'],
  },
]

for (const row of ROWS) {
  t.test(`converse: ${row.name}`, async (t) => {
    const { mx, run } = await setUp(t, row.script, row.more)
    const outcome = await run()
    const { result, code, classification, hard, phase } = outcome
    t.same([result, code, classification, hard, phase], row.expect)
    if (row.response !== undefined) t.match(outcome.response, row.response)
    t.equal(mx.sessions.length, 1, 'one session')
    if (result === 'delivered') t.same(mx.sessions[0]!.messages, [JOB.message.toString()], 'the bytes arrived')
    else t.notOk(mx.sessions[0]!.messages.length > 0 && phase !== 'dot' && phase !== 'rcpt')
    await until(() => mx.sessions[0]!.closed, 5000)
  })
}

t.test('converse: the dialogue', async (t) => {
  const { mx, run } = await setUp(t, {})
  await run()
  await until(() => mx.sessions[0]!.closed, 5000)
  const { commands, reads } = mx.sessions[0]!
  t.same(commands, ['EHLO out.svc.test', 'MAIL FROM:<bounce@rp.svc.test>', 'RCPT TO:<ann@a.test>', 'DATA', 'QUIT'])
  t.ok(reads.includes('MAIL FROM:<bounce@rp.svc.test>\r\nRCPT TO:<ann@a.test>\r\nDATA\r\n'), 'pipelined')
})

t.test('converse: a large message arrives whole', async (t) => {
  const { mx, run } = await setUp(t, {})
  const message = Buffer.from(`Subject: x\r\n\r\n${`.${'y'.repeat(75)}\r\n`.repeat(40_000)}`)
  t.match(await run({ ...JOB, message }), { result: 'delivered' })
  t.ok(Buffer.from(mx.sessions[0]!.messages[0]!).equals(message))
})

const selfSigned = makeSelfSigned()
t.test(
  'converse: TLS if it is offered, with any certificate',
  { skip: selfSigned ? false : 'no openssl' },
  async (t) => {
    const { mx, run } = await setUp(t, { capabilities: ['STARTTLS', 'PIPELINING'], tls: selfSigned! })
    t.match(await run(), { result: 'delivered' })
    t.ok(mx.sessions[0]!.secure)
    t.same(mx.sessions[0]!.commands.slice(0, 3), ['EHLO out.svc.test', 'STARTTLS', 'EHLO out.svc.test'])
  },
)

for (const handshake of ['garbage', 'hang'] as const) {
  t.test(`converse: a handshake that is ${handshake} leads to plain text, and is cached`, async (t) => {
    const timeouts = { ...SHORT_TIMEOUTS, greetingMs: 5_000 }
    const { mx, run } = await setUp(t, { capabilities: ['STARTTLS'], handshake }, { timeouts })
    t.match(await run(), { result: 'delivered' })
    t.equal(mx.sessions.length, 2)
    t.notOk(mx.sessions[1]!.commands.includes('STARTTLS'))
    t.match(await run(), { result: 'delivered' })
    t.equal(mx.sessions.length, 3)
    t.notOk(mx.sessions[2]!.commands.includes('STARTTLS'))
  })
}

t.test('converse: the fence holds back the final dot', async (t) => {
  let asked = 0
  const mayFinish = () => {
    asked += 1
    return 'shut' as const
  }
  const { mx, run } = await setUp(t, {})
  const outcome = await run({ ...JOB, mayFinish })
  t.match(outcome, { result: 'returned', phase: 'fence', code: null, hard: false })
  await until(() => mx.sessions[0]!.closed, 5000)
  t.equal(asked, 1)
  t.ok(mx.sessions[0]!.commands.includes('DATA'), 'the message was under way')
  t.same(mx.sessions[0]!.messages, [], 'and not finished')
  t.equal(mx.sessions.length, 1, 'no other server is tried')
})

t.test('converse: who has lost the claim begins nothing', async (t) => {
  const { mx, run } = await setUp(t, {})
  t.match(await run({ ...JOB, mayBegin: () => false }), { result: 'returned', phase: 'fence', code: null })
  t.notOk(mx.sessions[0]!.commands.some((line) => line.startsWith('MAIL')))
  t.match(await run(), { result: 'delivered' })
})

t.test('converse: while the fence is held the transaction waits before the final dot', async (t) => {
  const states: ('held' | 'open')[] = ['held', 'held', 'open']
  const { mx, run } = await setUp(t, {})
  t.match(await run({ ...JOB, mayFinish: () => states.shift() ?? 'open' }), { result: 'delivered' })
  t.equal(mx.sessions[0]!.messages.length, 1)
  t.same(states, [])
})

t.test('converse: the signal cuts the attempt off at any time', async (t) => {
  const { mx, run } = await setUp(t, { dot: 'hang' })
  t.match(await run(JOB, AbortSignal.abort()), { result: 'returned', phase: 'abort' })
  t.equal(mx.sessions.length, 0)
  const controller = new AbortController()
  const outcome = run(JOB, controller.signal)
  await until(() => mx.sessions[0]?.messages.length === 1, 5000)
  controller.abort()
  t.match(await outcome, { result: 'returned', phase: 'abort', code: null })
  await until(() => mx.sessions[0]!.closed, 5000)
})

t.test('converse: the time limits in milliseconds (RFC 5321 4.5.3.2)', async (t) => {
  t.strictSame(SMTP_TIMEOUTS, {
    connectMs: 30_000,
    connectAllMs: 60_000,
    greetingMs: 60_000,
    // Greeting, then EHLO and STARTTLS.
    openMs: 120_000,
    envelopeMs: 300_000,
    dataMs: 180_000,
    dotMs: 600_000,
    closeMs: 5_000,
  })
})

t.test('converse: a server that stops reading the message is given up', async (t) => {
  const { zone, deps, attempt } = await setUp(t, {}, { timeouts: { ...SHORT_TIMEOUTS, dataMs: 300 } })
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.write('220 mx.test\r\n')
    socket.on('data', (bytes) => {
      const isData = bytes.includes('DATA')
      socket.write(isData ? '354 go ahead\r\n' : '250 ok\r\n')
      if (isData) socket.pause()
    })
  })
  await new Promise<void>((resolve) => server.listen(deps.port, '127.0.0.9', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  t.equal((server.address() as AddressInfo).address, '127.0.0.9')
  zone.set('mx.test', { type: 'A', address: '127.0.0.9' })
  const { outcome } = await attempt({ ...JOB, message: Buffer.alloc(16_000_000, `${'x'.repeat(70)}\r\n`) })
  t.match(outcome, { result: 'deferred', code: null, phase: 'data', response: /^timeout at data/ })
})

t.test('converse: silence after RSET ends the connection, not the outcome', async (t) => {
  const { mx, run } = await setUpTransmit(
    t,
    { rcpt: '550 5.1.1 no such user', data: '554 no', rset: 'hang' },
    { timeouts: { ...SHORT_TIMEOUTS, closeMs: 200 } },
  )
  t.match(await run(), { result: 'bounced', classification: 'InvalidRecipient', hard: true })
  await until(() => mx.sessions[0]!.closed, 5000)
  t.ok(mx.sessions[0]!.commands.includes('RSET'))
})
