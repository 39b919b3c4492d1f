/** Scenarios of delivery: what a domain's MTA-STS policy demands is done, over real HTTPS and real TLS. */

import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import t from 'tap'
import { freePort } from '../support/machine/port.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'
import { startDelivery, TIMEOUTS } from '../support/service/delivery.ts'

const NAMES = ['mta-sts.good.test', 'mx.good.test', 'mta-sts.bad.test', 'mta-sts.other.test', 'mta-sts.tried.test']
const trusted = makeSelfSigned(2, NAMES)
const stranger = makeSelfSigned()
if (trusted === null || stranger === null) {
  t.pass('mta-sts', { skip: 'no openssl' })
  process.exit(0)
}

const policies = new Map<string, string>()
const asked: string[] = []
const hosts: Server = createServer({ ...trusted }, (request, response) => {
  asked.push(request.headers.host ?? '')
  const policy = policies.get(request.headers.host ?? '')
  response.writeHead(policy === undefined ? 404 : 200, { 'content-type': 'text/plain' }).end(policy)
})
const stsPort = await freePort()
await new Promise<void>((resolve) => hosts.listen(stsPort, '127.0.0.1', resolve))
const delivery = await startDelivery({}, { smtp: { timeouts: TIMEOUTS, ca: trusted.cert, stsPort } })
const { send, messageWhen, destination, zone, service, operate } = delivery
t.teardown(async () => {
  await delivery.stop()
  await new Promise((resolve) => hosts.close(resolve))
})
t.equal((hosts.address() as AddressInfo).port, stsPort)

function publish(domain: string, { mode, mx, id = '1' }: { mode: string; mx: string; id?: string }): void {
  policies.set(`mta-sts.${domain}`, `version: STSv1\r\nmode: ${mode}\r\nmx: ${mx}\r\nmax_age: 86400\r\n`)
  zone.set(`_mta-sts.${domain}`, { type: 'TXT', data: `v=STSv1; id=${id}` })
  zone.set(`mta-sts.${domain}`, { type: 'A', address: '127.0.0.1' })
}

t.test('mta-sts: enforce and a certificate that holds: delivered, verified [delivery.sts]', async (t) => {
  const mx = await destination('good.test', { capabilities: ['STARTTLS'], tls: trusted })
  publish('good.test', { mode: 'enforce', mx: 'mx.good.test' })
  await messageWhen(await send(['ann@good.test']), ({ status }) => status === 'delivered')
  t.ok(mx.sessions[0]?.secure)
  await messageWhen(await send(['bob@good.test']), ({ status }) => status === 'delivered')
  t.equal(asked.filter((host) => host === 'mta-sts.good.test').length, 1, 'the policy is kept')
  const redis = new Redis(service.redis.socketPath)
  t.match(JSON.parse((await redis.get('{s000}:sts:good.test')) ?? ''), {
    id: '1',
    mode: 'enforce',
    mx: ['mx.good.test'],
  })
  t.ok((await redis.pttl('{s000}:sts:good.test')) > 86_000_000)
  redis.disconnect()
})

t.test('mta-sts 12: enforce and a certificate of nobody: put off, never in plaintext [delivery.sts]', async (t) => {
  const mx = await destination('bad.test', { capabilities: ['STARTTLS'], tls: stranger })
  publish('bad.test', { mode: 'enforce', mx: '*.bad.test' })
  const { recipients, events } = await messageWhen(await send(['ann@bad.test']), ({ status }) => status === 'deferred')
  t.match(recipients[0], { code: null, response: /^4\.7\.5 MTA-STS: .*SELF_SIGNED/ })
  t.equal(events.length, 1)
  t.notOk(mx.sessions.flatMap(({ commands }) => commands).some((line) => line.startsWith('MAIL')))
  mx.script({ capabilities: [] })
  await operate('POST /queue/retry', { domain: 'bad.test' })
  const again = await messageWhen(await send(['bob@bad.test']), ({ status }) => status === 'deferred')
  t.match(again.recipients[0]?.response, /^4\.7\.5 MTA-STS/, 'nor where no TLS is offered')
})

t.test('mta-sts 13: enforce and a server that is not named: no connection [delivery.sts]', async (t) => {
  const mx = await destination('other.test')
  publish('other.test', { mode: 'enforce', mx: 'mx.elsewhere.test' })
  const { recipients } = await messageWhen(await send(['ann@other.test']), ({ status }) => status === 'deferred')
  t.match(recipients[0], { code: null, response: '4.7.0 No mail server matches the MTA-STS policy' })
  t.equal(mx.sessions.length, 0)
})

t.test('mta-sts: testing and no policy change nothing [delivery.sts]', async (t) => {
  const mx = await destination('tried.test')
  publish('tried.test', { mode: 'testing', mx: 'mx.elsewhere.test' })
  await messageWhen(await send(['ann@tried.test']), ({ status }) => status === 'delivered')
  t.equal(mx.sessions.length, 1)
  await destination('lost.test')
  zone.set('_mta-sts.lost.test', { type: 'TXT', data: 'v=STSv1; id=1' })
  await messageWhen(await send(['ann@lost.test']), ({ status }) => status === 'delivered')
})
