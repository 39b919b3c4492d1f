/** doctor --mail-file: a mail in a file, explained on the command line with a real DNS server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { joinMail, publicKeyText, signField } from '../support/peers/sign-mail.ts'
import { startZone } from '../support/peers/zone.ts'
import { startCommandLine } from '../support/service/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'sendwright-mail-file-'))
const zone = await startZone()
const { run, stop } = await startCommandLine()
t.teardown(async () => {
  stop()
  await zone.close()
  rmSync(folder, { recursive: true })
})
zone.set('a.test', { type: 'TXT', data: 'v=spf1 ip4:198.51.101.7 -all' })
zone.set('s._domainkey.a.test', { type: 'TXT', data: `v=DKIM1; p=${publicKeyText('rsa')}` })
zone.set('_dmarc.a.test', { type: 'TXT', data: 'v=DMARC1; p=reject' })

const MAIL = { fields: ['From: Ada <ada@a.test>', 'Subject: Greetings'], body: 'Hello\r\n' }
const signature = signField(MAIL, {
  field: 'DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=a.test; s=s; h=from:subject; bh={bh}; b={b}',
  names: ['from', 'subject'],
  canon: 'relaxed/relaxed',
  key: 'rsa',
})
const BROUGHT = ['Return-Path: <bounce@a.test>', 'Received: from mx.a.test (mx.a.test [198.51.101.7]) by mx.b.test']

function write(name: string, fields: readonly string[]): string {
  const path = join(folder, name)
  writeFileSync(path, joinMail({ ...MAIL, fields: [...fields, ...MAIL.fields] }))
  return path
}
const doctor = (...args: string[]) => run(['doctor', '--mail-file', ...args], { DNS_SERVERS: zone.server })

t.test('doctor: a mail that is as it should be', async (t) => {
  const { out, err, code } = await doctor(write('good.eml', [...BROUGHT, signature]))
  t.same([code, err], [0, ''])
  const lines = out.split('\n')
  t.match(lines[0], /^MAIL FROM:<bounce@a\.test> from 198\.51\.101\.7, HELO mx\.a\.test\./)
  t.same(
    lines.slice(2).filter((line) => /^\w/.test(line)),
    [
      'spf      pass       198.51.101.7 may send for a.test',
      'spfHelo  none       mx.a.test has no SPF record',
      'dkim     pass       The signature of a.test (selector s) is valid',
      'dmarc    pass       From a.test is confirmed by the signature of a.test and SPF for a.test',
      'arc      none       No forwarder has sealed it',
    ],
  )
  t.match(out, /\n {20}_dmarc\.a\.test: v=DMARC1; p=reject\n/)
})

t.test('doctor: who connected is said otherwise, and it is forged', async (t) => {
  const path = write('forged.eml', BROUGHT)
  const { out, code } = await doctor(path, '--ip', '198.51.101.8', '--helo', 'x.test', '--mail-from', 'a@a.test')
  t.equal(code, 1)
  t.match(out, /^spf {6}fail {7}a\.test does not let 198\.51\.101\.8 send for it$/m)
  t.match(out, /-> It passes from an address that the record names; to let this one send: ip4:198\.51\.101\.8 in /)
  t.match(out, /^dmarc {4}fail {7}Nothing confirms From a\.test: .*; its policy is reject$/m)
})

t.test('doctor: what a record says to a terminal is not heard', async (t) => {
  zone.set('b.test', { type: 'TXT', data: 'v=spf1 ip4:198.51.101.7 \u001b]0;owned\u0007 -all' })
  const path = write('terminal.eml', BROUGHT)
  const { out } = await doctor(path, '--mail-from', 'a@b.test')
  t.match(out, /b\.test/)
  t.notMatch(out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
})

t.test('doctor: as JSON, and without a session', async (t) => {
  const { out, code } = await doctor(write('bare.eml', [signature]), '--json')
  t.equal(code, 0)
  const told = JSON.parse(out)
  t.match(told, { session: { mailFrom: '', ip: null, helo: '' }, authentication: { spf: 'unchecked', dmarc: 'pass' } })
  t.same(
    told.checks.map(({ check }: { check: string }) => check),
    ['spf', 'spfHelo', 'dkim', 'dmarc', 'arc'],
  )
})

t.test('doctor: a file that is not there, an address that is none', async (t) => {
  const missing = await doctor(join(folder, 'nothing.eml'))
  t.equal(missing.code, 1)
  t.match(missing.err, /^Cannot read the message: ENOENT/)
  const wrong = await doctor(write('any.eml', []), '--ip', '300.1.1.1')
  t.equal(wrong.code, 2)
  t.match(wrong.err, /Expected an\s+IP address/)
})
