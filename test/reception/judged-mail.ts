/**
 * judged-mail - the sender of a mail according to a running service: mail over real SMTP, a real DNS server, the
 * verdicts in the API and in the event, and another round after an unreachable DNS.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import type { Authentication } from '../../src/mail/authenticate/authentication.ts'
import { until } from '../support/machine/until.ts'
import { joinMail, publicKeyText, signField } from '../support/peers/sign-mail.ts'
import { openDialog } from '../support/peers/smtp-dialog.ts'
import { startZone, type ZoneRecord } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const JUDGED_MS_MAX = 30_000
const txt = (data: string): ZoneRecord => ({ type: 'TXT', data })
const zone = await startZone()
const service = await startTestService({
  CONTENT_STORE: 'file',
  INBOUND_DOMAIN: 'in.service.example',
  DNS_SERVERS: zone.server,
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
})
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await zone.close()
})
const { token } = service.firstRun.liveServer
const stream = (await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Mail' } })).json
const hook = await service.call('POST /v1/webhooks', {
  token,
  body: { url: 'https://127.0.0.1:9/', events: ['inbound'] },
})

const mailOf = (domain: string) => ({ fields: [`From: Ada <ada@${domain}>`, 'Subject: Greetings'], body: 'Hello\r\n' })
/** A mail that its domain has signed. */
function signedBy(domain: string): Buffer {
  const mail = mailOf(domain)
  const tags = `v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain}; s=s; h=from:subject; bh={bh}; b={b}`
  const names = ['from', 'subject']
  const field = signField(mail, { field: `DKIM-Signature: ${tags}`, names, canon: 'relaxed/relaxed', key: 'rsa' })
  return joinMail({ ...mail, fields: [field, ...mail.fields] })
}
const SIGNED = signedBy('a.test')
const UNSIGNED = joinMail(mailOf('a.test'))

function publish(domain: string): void {
  zone.set(domain, txt('v=spf1 ip4:127.0.0.1 -all'))
  zone.set(`mx.${domain}`, txt('v=spf1 ip4:127.0.0.1 -all'))
  zone.set(`s._domainkey.${domain}`, txt(`v=DKIM1; p=${publicKeyText('rsa')}`))
  zone.set(`_dmarc.${domain}`, txt('v=DMARC1; p=quarantine'))
}
publish('a.test')

/** Hands a mail over, and answers its id. */
async function deliver(raw: Buffer, sender = 'bounce@a.test', helo = 'mx.a.test'): Promise<string> {
  const dialog = await openDialog(service.config.mxPort)
  await dialog.say(`EHLO ${helo}`)
  await dialog.say(`MAIL FROM:<${sender}>`)
  await dialog.say(`RCPT TO:<${stream.inboundAddress}>`)
  await dialog.say('DATA')
  dialog.write(raw)
  const reply = await dialog.say('.')
  dialog.end()
  return /accepted ([0-9a-f-]{36})/.exec(reply)?.[1] ?? reply
}

type Told = Authentication & { readonly checkedAt: string | null }
const authenticationOf = async (id: string): Promise<Told> =>
  (await service.call(`GET /v1/inbound/${id}`, { token })).json.authentication
const judged = (id: string): Promise<Told> =>
  until(async () => {
    const told = await authenticationOf(id)
    return told.checkedAt === null ? null : told
  }, JUDGED_MS_MAX)
/** Deliveries of the event. */
async function eventsOf(id: string): Promise<{ inboundMessageId: string }[]> {
  const { json } = await service.call(`GET /v1/webhooks/${hook.json.webhookId}/deliveries`, { token })
  return json.deliveries.filter((one: { inboundMessageId: string }) => one.inboundMessageId === id)
}

t.test('judged-mail: verdicts are stored, shown, and searched with [inbound.authentication]', async (t) => {
  const cases: [string, string, Partial<Authentication>][] = [
    [await deliver(SIGNED), 'as it should be', {}],
    [await deliver(SIGNED, 'list@b.test', '[127.0.0.1]'), 'forwarded', { spf: 'none', spfHelo: 'none' }],
    [await deliver(SIGNED, ''), 'a returned mail', { spf: 'none' }],
    [
      await deliver(UNSIGNED, 'evil@b.test', 'mx.b.test'),
      'forged',
      { spf: 'none', spfHelo: 'none', dkim: 'none', dmarc: 'fail', dmarcPolicy: 'quarantine' },
    ],
    [await deliver(Buffer.concat([SIGNED, Buffer.from('and more\r\n')])), 'changed on the way', { dkim: 'fail' }],
  ]
  const good = { spf: 'pass', spfHelo: 'pass', dkim: 'pass', dmarc: 'pass', dmarcPolicy: null, arc: 'none' }
  for (const [id, what, differs] of cases) {
    const { checkedAt, ...told } = await judged(id)
    t.same(told, { ...good, ...differs }, what)
    t.ok(Math.abs(Date.parse(checkedAt as string) - Date.now()) < JUDGED_MS_MAX, what)
  }
  const { json } = await service.call('POST /v1/inbound/search', { token, body: {} })
  const found = json.messages.map((one: { authentication: Told }) => one.authentication.dmarc)
  t.same([...found].sort(), ['fail', 'pass', 'pass', 'pass', 'pass'])
  const metrics = (await service.operate('GET /metrics', { token: service.firstRun.operatorToken })).text
  t.match(metrics, /sendwright_checks_total\{check="dmarc",verdict="fail"\} 1/)
  t.match(metrics, /^sendwright_judge_seconds_count [1-9]/m)
})

t.test('judged-mail: a temporary verdict is judged again, without a second event', async (t) => {
  publish('c.test')
  zone.fail('s._domainkey.c.test', 'servfail')
  zone.fail('c.test', 'servfail')
  const id = await deliver(signedBy('c.test'), 'bounce@c.test', 'mx.c.test')
  const { checkedAt: firstAt, ...first } = await judged(id)
  t.match(first, { spf: 'temperror', spfHelo: 'pass', dkim: 'temperror', dmarc: 'temperror', dmarcPolicy: null })
  t.equal((await eventsOf(id)).length, 1, 'the event waited for the first round, and for no more')
  publish('c.test')
  // The reported verdict is final. The records have changed since.
  zone.set('mx.c.test', txt('v=spf1 -all'))
  await makeDue()
  const { checkedAt, ...again } = await until(async () => {
    const told = await authenticationOf(id)
    return told.checkedAt === firstAt ? null : told
  }, JUDGED_MS_MAX)
  t.same(again, { spf: 'pass', spfHelo: 'pass', dkim: 'pass', dmarc: 'pass', dmarcPolicy: null, arc: 'none' })
  t.ok((checkedAt as string) > (firstAt as string))
  t.equal((await eventsOf(id)).length, 1)
  t.same(await redis.keys('*:due:judge/*'), [], 'no round is left')
})

t.test('judged-mail: a mail whose judging a stop interrupts is judged afterwards, and announced once', async (t) => {
  for (const name of ['d.test', 'mx.d.test', 's._domainkey.d.test', '_dmarc.d.test']) zone.fail(name, 'timeout')
  const asked = zone.asked.length
  const id = await deliver(signedBy('d.test'), 'bounce@d.test', 'mx.d.test')
  await until(async () => zone.asked.length > asked || null, JUDGED_MS_MAX)
  await service.service.stop()
  publish('d.test')
  await service.restart()
  const { checkedAt: _, ...told } = await judged(id)
  // The interrupted judging was no verdict.
  t.same(told, { spf: 'pass', spfHelo: 'pass', dkim: 'pass', dmarc: 'pass', dmarcPolicy: null, arc: 'none' })
  t.equal((await eventsOf(id)).length, 1)
})

/** Makes the round due, over a restart, because only the owner may write what it holds in memory. */
async function makeDue(): Promise<void> {
  await service.service.stop()
  const lanes = await redis.keys('*:due:judge/*')
  if (lanes.length !== 1) throw new Error(`${lanes.length} lanes`)
  for (const lane of lanes) {
    for (const item of await redis.zrange(lane, 0, -1)) await redis.zadd(lane, 1, item)
    await redis.zadd(lane.replace(/:judge.*$/, ''), 1, lane.replace(/^.*:due:/, ''))
  }
  await service.restart()
}
