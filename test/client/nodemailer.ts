/** The transport for nodemailer, with nodemailer itself: what arrives at the service is what was written. */
import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import t from 'tap'
import { sendwrightTransport } from '../../src/client/nodemailer.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { token } = service.firstRun.testServer
const options = { key: token, url: `http://127.0.0.1:${service.config.httpPort}` }
const transport = nodemailer.createTransport(sendwrightTransport(options))

t.test('nodemailer: a message is sent as it was written [client.nodemailer]', async (t) => {
  const fields = { tag: 'reset', metadata: { user: '7' }, idempotencyKey: 'reset-7' }
  const mail = {
    from: '"Acme, Inc" <hello@simulator.test>',
    to: ['Ada <ada@simulator.test>', 'ben@simulator.test'],
    cc: 'Team: c1@simulator.test, c2@simulator.test;',
    bcc: { name: '', address: 'd@simulator.test' },
    replyTo: '"Help" <help@example.com>',
    subject: 'Grüße',
    text: Readable.from(['Hello']),
    html: '<img src="cid:logo">',
    headers: { 'X-Entity': '7' },
    list: { unsubscribe: 'https://acme.example/u' },
    priority: 'high' as const,
    attachments: [
      { filename: 'ü.txt', content: 'Grüße' },
      { filename: 'logo.png', content: Buffer.from([1, 2, 3]), cid: 'logo', contentType: 'Image/PNG' },
    ],
    sendwright: fields,
  }
  const info = await transport.sendMail(mail)
  const { json } = await service.call(`GET /v1/messages/${info.id}`, { token })
  t.equal(json.messageIdHeader, info.messageId)
  t.match(json, {
    from: { email: 'hello@simulator.test', name: 'Acme, Inc' },
    subject: 'Grüße',
    text: 'Hello',
    html: '<img src="cid:logo">',
    tag: 'reset',
    metadata: { user: '7' },
    attachments: [
      { name: 'ü.txt', size: 7, inline: false },
      { name: 'logo.png', contentType: 'image/png', contentId: 'logo', size: 3 },
    ],
  })
  const names = Object.fromEntries(Object.entries(json.headers).map(([name, value]) => [name.toLowerCase(), value]))
  t.match(names, {
    'reply-to': '"Help" <help@example.com>',
    'x-entity': '7',
    'x-priority': '1 (Highest)',
    'list-unsubscribe': '<https://acme.example/u>',
  })
  t.same(
    json.recipients.map(({ recipient, kind }: { recipient: string; kind: string }) => `${kind} ${recipient}`),
    [
      'to ada@simulator.test',
      'to ben@simulator.test',
      'cc c1@simulator.test',
      'cc c2@simulator.test',
      'bcc d@simulator.test',
    ],
  )
  t.equal((await transport.sendMail({ ...mail, text: 'Hello' })).id, info.id, 'the same key sends once')
})

t.test('nodemailer: what the API does not take is refused before it is sent [client.nodemailer]', async (t) => {
  const plain = { from: 'hello@simulator.test', to: 'a@simulator.test', subject: 'x', text: 'x' }
  await t.rejects(transport.sendMail({ ...plain, raw: 'From: x' }), /raw/)
  await t.rejects(
    transport.sendMail({ ...plain, alternatives: [{ contentType: 'text/x', content: 'x' }] }),
    /alternatives/,
  )
  await t.rejects(
    transport.sendMail({ ...plain, envelope: { from: 'b@simulator.test', to: 'c@x.example' } }),
    /envelope/,
  )
  await t.rejects(transport.sendMail({ ...plain, messageId: '<1@x.example>' }), /messageId/)
  await t.rejects(transport.sendMail({ ...plain, from: 'a@other.example' }), { code: 'domain_not_verified' })
  await t.rejects(transport.sendMail({ ...plain, attachments: [{ path: '/nowhere/at/all' }] }), /ENOENT/)
})
