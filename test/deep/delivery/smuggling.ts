/** What others write after a false end of data stays in the message: a strict and a lenient server see one message. */

import { readFileSync } from 'node:fs'
import t from 'tap'
import { findSuite } from '../../support/machine/suites.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const path = findSuite('smtp/smuggling.json')
if (path === null) {
  t.pass('smuggling', { skip: 'no suites' })
  process.exit(0)
}

const { outbound_eod: ends } = JSON.parse(readFileSync(path, 'utf8')) as { outbound_eod: string[] }
const delivery = await startDelivery()
const { service, messageWhen, destination } = delivery
t.teardown(() => delivery.stop())

const SMUGGLED = 'MAIL FROM:<a@b.test>\r\nRCPT TO:<c@d.test>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n.\r\n'

for (const [index, end] of ends.entries()) {
  for (const part of ['text', 'html', 'subject', 'header'] as const) {
    t.test(`smuggling: ${JSON.stringify(end)} in ${part}`, async (t) => {
      const domain = `${part}${index}.test`
      const mx = await destination(domain)
      const body = { from: 'shop@acme.example', to: [`ann@${domain}`], subject: 'Hello', text: 'Hello' }
      const evil = `before${end}${SMUGGLED}`
      const sent = await service.call('POST /v1/email', {
        token: service.firstRun.liveServer.token,
        body: part === 'header' ? { ...body, headers: { 'X-Note': evil } } : { ...body, [part]: evil },
      })
      if (sent.status !== 200) {
        t.equal(sent.json.error, 'invalid_request')
        t.equal(mx.sessions.length, 0)
        return
      }
      await messageWhen(sent.json.messageId, ({ status }) => status === 'delivered')
      const [session] = mx.sessions
      t.equal(session?.raw.length, 1)
      const [raw = ''] = session?.raw ?? []
      t.notMatch(raw, /\r(?!\n)|(?<!\r)\n|\0/, 'nothing that a lenient server takes for a line end')
      t.equal(raw.indexOf('\r\n.\r\n'), raw.length - 5, 'one end of data')
      t.equal(session?.commands.filter((line) => /^(MAIL|RCPT|DATA)/.test(line)).length, 3)
    })
  }
}
