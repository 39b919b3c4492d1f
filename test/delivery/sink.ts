/** Mail over MX to a server of Postfix's own: everything arrives, over connections that are used again. */

import t from 'tap'
import { SMTP_SINK_SKIP, startSmtpSink } from '../support/peers/smtp-sink.ts'
import { startDelivery } from '../support/service/delivery.ts'

t.test("delivery: Postfix's smtp-sink takes two hundred messages over MX", { skip: SMTP_SINK_SKIP }, async (t) => {
  const sink = await startSmtpSink()
  const delivery = await startDelivery({ DELIVERY_PORT: String(sink.port) })
  t.teardown(async () => {
    await delivery.stop()
    await sink.close()
  })
  const { zone, send, messageWhen, service } = delivery
  const domains = ['one.test', 'two.test', 'three.test', 'four.test']
  for (const domain of domains) {
    zone.set(domain, { type: 'MX', exchange: `mx.${domain}`, priority: 10 })
    zone.set(`mx.${domain}`, { type: 'A', address: '127.0.0.1' })
  }
  const ids = await Promise.all(domains.map((domain) => send(Array.from({ length: 50 }, (_, n) => `p${n}@${domain}`))))
  for (const id of ids) {
    const { recipients, events } = await messageWhen(id, ({ status }) => status === 'delivered')
    t.ok(recipients.every(({ attempts, code }) => attempts === 1 && code === 250))
    t.equal(events.length, 50)
  }
  const { text } = await service.operateActors('GET /metrics')
  const opened = Number(/^sendwright_sessions_total\{tls="none",verified="false"\} (\d+)$/m.exec(text)?.[1])
  t.ok(opened >= 4 && opened <= 40, `${opened} connections for 200 messages`)
  t.match(text, /^sendwright_connections \d+$/m)
})
