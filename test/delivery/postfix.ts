/**
 * Mail over MX to a real Postfix, over its STARTTLS: what lies in its maildir is what was sent, and its signature
 * holds.
 */

import { promises as dns } from 'node:dns'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { POSTFIX_SKIP, startPostfix } from '../support/peers/postfix.ts'
import { startDelivery } from '../support/service/delivery.ts'

const DOMAIN = 'postfix.test'
const HOST = '127.0.78.1'
const BODY = `A line\n.dot\n..dots\n\nümlaut and 😀, then a long one: ${'word '.repeat(400)}\n`

t.test(
  'delivery: Postfix takes signed mail over TLS [dkim.signed, delivery.tls]',
  { skip: POSTFIX_SKIP },
  async (t) => {
    const delivery = await startDelivery()
    const { zone, port, send, messageWhen, service } = delivery
    const postfix = await startPostfix({ host: HOST, port }, { name: `mx.${DOMAIN}`, domain: DOMAIN })
    t.teardown(async () => {
      await postfix.close()
      await delivery.stop()
    })
    zone.set(DOMAIN, { type: 'MX', exchange: `mx.${DOMAIN}`, priority: 10 })
    zone.set(`mx.${DOMAIN}`, { type: 'A', address: HOST })
    const attachments = [
      { name: 'ü.pdf', contentType: 'application/pdf', content: Buffer.alloc(200_000, 7).toString('base64') },
    ]
    const ids = await Promise.all([
      send([`ann@${DOMAIN}`, `bob@${DOMAIN}`], { text: BODY }),
      send([`carl@${DOMAIN}`], { text: BODY, html: '<p>ü</p>', attachments }),
    ])
    for (const id of ids) {
      const { recipients, events } = await messageWhen(id, (message) =>
        message.recipients.every(({ status }) => status === 'delivered'),
      )
      t.ok(recipients.every(({ attempts, code }) => attempts === 1 && code === 250))
      t.match(events[0], { details: { response: /^250 2\.0\.0 Ok: queued as / } })
    }
    const messages = await until(() => {
      const arrived = postfix.messages()
      return arrived.length === 3 ? arrived : null
    }, 20_000)
    const resolver = new dns.Resolver()
    resolver.setServers([zone.server])
    for (const message of messages) {
      const { results } = await dkimVerify(Buffer.from(message.replace(/\r?\n/g, '\r\n'), 'latin1'), {
        resolver: (name: string) => resolver.resolveTxt(name),
      })
      t.match(results, [{ status: { result: 'pass' } }])
      t.ok(/^Return-Path: <b-[a-z2-7]{40}@sw-bounce\.acme\.example>$/m.test(message), 'a return path of its own')
      t.ok(/^Received: [^:]*\(using TLSv1\.3 with cipher /m.test(message), 'over TLS')
    }
    t.same(
      new Set(messages.map((message) => /^Delivered-To: (\S+)$/m.exec(message)?.[1])),
      new Set([`ann@${DOMAIN}`, `bob@${DOMAIN}`, `carl@${DOMAIN}`]),
    )
    const { text } = await service.operateActors('GET /metrics')
    t.match(text, /^sendwright_sessions_total\{tls="TLSv1\.3",verified="false"\} \d+$/m)
  },
)
