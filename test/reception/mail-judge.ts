/**
 * mail-judge - verdicts by a real DNS server and a real thread; the questions, an unreachable server, a time limit.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { MAIL_BYTES_MAX } from '../../schemas/limits.ts'
import { createResolver, type Resolver } from '../../src/dns/resolve.ts'
import { makeMailJudge } from '../../src/reception/mail-judge.ts'
import { NO_PEAK, watchPeak } from '../support/machine/peak-memory.ts'
import { joinMail, publicKeyText, signField } from '../support/peers/sign-mail.ts'
import { startZone } from '../support/peers/zone.ts'

const NOW_MS = Date.UTC(2026, 10, 22)
const MAIL = { fields: ['From: Ada <ada@a.test>', 'Subject: Greetings'], body: 'Hello\r\n' }
const TAGS = 'c=relaxed/relaxed; d=a.test; h=from:subject; bh={bh}; b={b}'
const signing = { names: ['from', 'subject'], canon: 'relaxed/relaxed', key: 'rsa' } as const
const SIGNED = joinMail({
  ...MAIL,
  fields: [signField(MAIL, { ...signing, field: `DKIM-Signature: v=1; a=rsa-sha256; s=s; ${TAGS}` }), ...MAIL.fields],
})
const AWAY = {
  spf: 'temperror',
  spfHelo: 'temperror',
  dkim: 'temperror',
  dmarc: 'temperror',
  dmarcPolicy: null,
  arc: 'none',
}
const SENDER = { address: 'bounce@a.test', ip: '192.0.2.1', helo: 'mx.a.test', receiver: 'mx.b.test' }

async function open(t: Test) {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => performance.now(), queryTimeoutMs: 200 })
  const room = makeMailJudge({ resolver, nowMs: () => performance.now() })
  t.teardown(async () => {
    await room.close()
    resolver.close()
    await zone.close()
  })
  zone.set('a.test', { type: 'TXT', data: 'v=spf1 ip4:192.0.2.1 -all' })
  zone.set('mx.a.test', { type: 'TXT', data: 'v=spf1 a -all' }, { type: 'A', address: '192.0.2.1' })
  zone.set('s._domainkey.a.test', { type: 'TXT', data: `v=DKIM1; p=${publicKeyText('rsa')}`.match(/.{1,200}/g) ?? [] })
  zone.set('_dmarc.a.test', { type: 'TXT', data: 'v=DMARC1; p=reject' })
  const judge = (raw: Uint8Array) => room.judge({ raw, sender: SENDER, checkedAtMs: NOW_MS }).judgement
  return { zone, resolver, room, judge }
}

t.test('mail-judge: a valid mail, with each question asked once [inbound.authentication]', async (t) => {
  const { zone, judge } = await open(t)
  const judged = await judge(SIGNED)
  t.same(judged?.authentication, {
    spf: 'pass',
    spfHelo: 'pass',
    dkim: 'pass',
    dmarc: 'pass',
    dmarcPolicy: null,
    arc: 'none',
  })
  t.equal(judged?.isTemporary, false)
  t.same([...zone.asked].sort(), [
    'A mx.a.test',
    'TXT _dmarc.a.test',
    'TXT _dmarc.test',
    'TXT a.test',
    'TXT mx.a.test',
    'TXT s._domainkey.a.test',
  ])
})

t.test('mail-judge: many at once', async (t) => {
  const { judge } = await open(t)
  const verdicts = await Promise.all(
    Array.from({ length: 50 }, (_, at) => judge(at % 2 === 0 ? SIGNED : joinMail(MAIL))),
  )
  t.same(
    verdicts.map((verdict) => verdict?.authentication.dkim),
    Array.from({ length: 50 }, (_, at) => (at % 2 === 0 ? 'pass' : 'none')),
  )
})

t.test('mail-judge: an unreachable DNS makes verdicts temporary [inbound.authentication]', async (t) => {
  const { zone, judge } = await open(t)
  for (const name of ['a.test', 'mx.a.test', 's._domainkey.a.test', '_dmarc.a.test']) zone.fail(name, 'timeout')
  const judged = await judge(SIGNED)
  t.same(judged?.authentication, AWAY)
  t.equal(judged?.isTemporary, true)
})

t.test('mail-judge: verifying that takes too long leaves SPF [inbound.authentication]', async (t) => {
  const { judge, resolver } = await open(t)
  const sender = (await judge(SIGNED))?.authentication
  t.equal(sender?.spf, 'pass')
  // The answers of the DNS are cached by now, so that only the thread takes its time. Its start takes longer.
  const hasty = makeMailJudge({ resolver, nowMs: () => 0, mailMsMax: 1 })
  t.teardown(() => hasty.close())
  const judged = await hasty.judge({ raw: SIGNED, sender: SENDER, checkedAtMs: NOW_MS }).judgement
  t.same(judged?.authentication, {
    spf: 'pass',
    spfHelo: 'pass',
    dkim: 'permerror',
    dmarc: 'permerror',
    dmarcPolicy: null,
    arc: 'fail',
  })
  t.equal(judged?.isTemporary, false)
  t.equal(judged?.findings.signatures, null)
})

t.test('mail-judge: a DNS that never answers ends with the time of the mail', async (t) => {
  const silent: Resolver = { look: () => new Promise(() => undefined), close: () => undefined }
  const room = makeMailJudge({ resolver: silent, nowMs: () => performance.now(), mailMsMax: 6000 })
  t.teardown(() => room.close())
  const nobody = { ...SENDER, address: '', helo: '[192.0.2.1]' }
  // Nothing is asked about it, and the thread has started then.
  await room.judge({ raw: Buffer.from('Subject: x\r\n\r\n'), sender: nobody, checkedAtMs: NOW_MS }).judgement
  // Waiting for the key and for the policy, each by itself, would take twice as long. The thread takes a second or two
  // on a busy machine.
  const { isRead, judgement: ended } = room.judge({ raw: SIGNED, sender: SENDER, checkedAtMs: NOW_MS })
  t.equal(
    await Promise.race([isRead.then(() => 'read'), ended]),
    'read',
    'its bytes are not held while the DNS is waited for',
  )
  const judged = await Promise.race([ended, delay(11_000, null)])
  t.same(judged?.authentication, AWAY)
  t.equal(judged?.isTemporary, true)
})

t.test('mail-judge: 35 MB of one line, in shared memory, take 200 MB at most', { skip: NO_PEAK }, async (t) => {
  const { judge } = await open(t)
  await judge(SIGNED)
  const head = SIGNED.subarray(0, SIGNED.indexOf('\r\n\r\n') + 4)
  const peakMb = watchPeak()
  const raw = Buffer.from(new SharedArrayBuffer(MAIL_BYTES_MAX)).fill('a\t')
  raw.set(head)
  t.equal((await judge(raw))?.authentication.dkim, 'fail')
  const aboveMb = peakMb()
  t.ok(aboveMb < 200, `${Math.round(aboveMb)} MB`)
})

t.test('mail-judge: closed, it judges nothing', async (t) => {
  const { room, judge } = await open(t)
  await room.close()
  t.equal(await judge(SIGNED), null)
})
