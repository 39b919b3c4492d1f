/**
 * delivery - a service that delivers to scripted receiving servers: its own zone, a verified domain, short time limits
 *
 * Every destination has its own address on the loopback, so that it is a separate site. All listen on one port, which
 * is the service's DELIVERY_PORT.
 */

import type { Message } from '../../../schemas/message.ts'
import type { ServiceOptions } from '../../../src/main.ts'
import { SMTP_TIMEOUTS } from '../../../src/outbound/thread/converse.ts'
import { freePort } from '../machine/port.ts'
import { until } from '../machine/until.ts'
import { type FakeMx, type MxScript, startMx } from '../peers/mx.ts'
import { startZone, type Zone } from '../peers/zone.ts'
import { verifyDomain } from './crash-live.ts'
import { startTestService, type TestService } from './service.ts'

/** The domain that mail comes from. */
const FROM_DOMAIN = 'acme.example'

/** Long enough for a loaded machine, short enough for a test of silence. */
export const TIMEOUTS = {
  ...SMTP_TIMEOUTS,
  connectMs: 12_000,
  greetingMs: 12_000,
  openMs: 24_000,
  envelopeMs: 12_000,
  dataMs: 12_000,
  dotMs: 12_000,
  closeMs: 500,
}

export interface Delivery {
  readonly service: TestService
  readonly zone: Zone
  readonly port: number
  /** A domain whose only mail server obeys the script. */
  destination(domain: string, script?: MxScript): Promise<FakeMx>
  /** A server on its own address. */
  server(script?: MxScript): Promise<FakeMx & { readonly address: string }>
  /** Sends to the addresses. Returns the message's id. */
  send(to: readonly string[], body?: object): Promise<string>
  message(messageId: string): Promise<Message>
  /** The message once `isSo`. */
  messageWhen(messageId: string, isSo: (message: Message) => boolean): Promise<Message>
  operate(what: string, body?: object): Promise<{ status: number; json: Record<string, unknown> }>
  stop(): Promise<void>
}

/** Starts it. In: settings and options over those of the tests; `zone` = the zone behind `DNS_SERVERS`. */
export async function startDelivery(
  environment: Readonly<Record<string, string>> = {},
  { zone: given, ...options }: ServiceOptions & { readonly zone?: Zone } = {},
): Promise<Delivery> {
  const zone = given ?? (await startZone())
  const port = await freePort()
  const service = await startTestService(
    {
      DNS_SERVERS: zone.server,
      DELIVERY_PORT: String(port),
      PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
      SERVICE_DOMAIN: 'service.example',
      ...environment,
    },
    { smtp: { timeouts: TIMEOUTS }, ...options },
  )
  const { firstRun, config } = service
  await verifyDomain(config.httpPort, firstRun, { zone, domain: FROM_DOMAIN })
  await service.operate(`PATCH /v1/operator/accounts/${firstRun.account.accountId}`, {
    token: firstRun.operatorToken,
    body: { perMinuteLimit: 1_000_000, monthlyCap: 100_000 },
  })
  const servers: FakeMx[] = []
  let nextAddress = 0

  async function server(script: MxScript = {}) {
    nextAddress += 1
    const address = `127.0.77.${nextAddress}`
    const mx = await startMx(script, { host: address, port })
    servers.push(mx)
    return { ...mx, address }
  }

  async function message(messageId: string): Promise<Message> {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token: firstRun.liveServer.token })
    return json
  }

  return {
    service,
    zone,
    port,
    server,
    async destination(domain, script) {
      const mx = await server(script)
      zone.set(domain, { type: 'MX', exchange: `mx.${domain}`, priority: 10 })
      zone.set(`mx.${domain}`, { type: 'A', address: mx.address })
      return mx
    },
    async send(to, body = {}) {
      const sent = await service.call('POST /v1/email', {
        token: firstRun.liveServer.token,
        body: { from: `shop@${FROM_DOMAIN}`, to, subject: 'Order', text: 'Hello\n.dot\n', ...body },
      })
      if (sent.status !== 200) throw new Error(sent.text)
      return sent.json.messageId
    },
    message,
    messageWhen: (messageId, isSo) =>
      until(async () => {
        const seen = await message(messageId)
        return isSo(seen) ? seen : null
      }, 20_000),
    operate: (what, body) =>
      service.operate(what.replace(' ', ' /v1/operator'), {
        token: firstRun.operatorToken,
        ...(body !== undefined && { body }),
      }),
    async stop() {
      await service.stop()
      await Promise.all(servers.map((mx) => mx.close()))
      await zone.close()
    },
  }
}
