/**
 * Real senders bring mail to an inbound stream: swaks, smtp-source, and a Postfix that delivers what it was given; what
 * each brought is there byte for byte as it wrote it. Those that are not installed are skipped.
 */

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { freePort } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'
import { POSTFIX_SKIP, startPostfix } from '../support/peers/postfix.ts'
import { openDialog } from '../support/peers/smtp-dialog.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 30_000
const MAILS = 60
const zone = await startZone()
const service = await startTestService({ CONTENT_STORE: 'file', DNS_SERVERS: zone.server })
t.teardown(async () => {
  await service.stop()
  await zone.close()
})
const { token } = service.firstRun.liveServer
const { mxPort } = service.config
const made = (await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Mail' } })).json
const to: string = made.inboundAddress

const skipOf = (command: string) =>
  spawnSync('sh', ['-c', `command -v ${command}`]).status !== 0 && `${command} is not installed`

/** Runs a program on its own event loop, so that the service in this process can answer it. */
async function run(command: string, args: readonly string[]): Promise<string> {
  const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', command, ...args], { timeout: 2 * WAIT_MS })
  child.stdin.end()
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${out}${err}`)
  return out + err
}

/** The mails from a sender, once so many are parsed. */
function parsed(sender: string, count: number) {
  return until(async () => {
    const { json } = await service.call('POST /v1/inbound/search', { token, body: { from: sender, limit: 100 } })
    return json.messages.length === count && json.messages.every(isParsed) ? json.messages : null
  }, WAIT_MS)
}

const isParsed = ({ from, parseIssue }: { from: unknown; parseIssue: unknown }) => from !== null || parseIssue !== null

async function rawOf(id: string): Promise<string> {
  const url = `http://127.0.0.1:${service.config.httpPort}/v1/inbound/${id}/raw`
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  return Buffer.from(await answer.arrayBuffer()).toString('latin1')
}

t.test('senders: swaks, over TLS, with an attachment [inbound.receive]', { skip: skipOf('swaks') }, async (t) => {
  const server = ['--server', '127.0.0.1', '--port', String(mxPort), '--tls', '--ehlo', 'swaks.example']
  const mail = ['--from', 'swaks@example.net', '--to', to, '--header', 'Subject: swaks', '--body', 'Hello\n.\n..dots']
  const said = await run('swaks', [...server, ...mail, '--attach', '@/bin/sh'])
  t.match(said, /250 2\.0\.0 accepted [0-9a-f-]{36}/)
  const [one] = await parsed('swaks@example.net', 1)
  const { json } = await service.call(`GET /v1/inbound/${one.inboundMessageId}`, { token })
  t.match(json, { subject: 'swaks', text: /^Hello\n\.\n\.\.dots/, attachmentCount: 1, parseIssue: null })
})

t.test('senders: smtp-source, on connections that stay open', { skip: skipOf('smtp-source') }, async (t) => {
  const load = ['-d', '-s', '6', '-m', String(MAILS), '-l', '4096', '-f', 'source@example.net', '-t', to]
  await run('smtp-source', [...load, `127.0.0.1:${mxPort}`])
  const all = await parsed('source@example.net', MAILS)
  t.equal(new Set(all.map(({ inboundMessageId }: { inboundMessageId: string }) => inboundMessageId)).size, MAILS)
  t.ok(
    all.every(({ sizeBytes, parseIssue }: { sizeBytes: number; parseIssue: string | null }) => {
      return sizeBytes > 4096 && parseIssue === null
    }),
  )
})

t.test('senders: a Postfix delivers what it was given [inbound.receive]', { skip: POSTFIX_SKIP }, async (t) => {
  const port = await freePort()
  const settings = [
    `relayhost = [127.0.0.1]:${mxPort}`,
    'mynetworks = 127.0.0.0/8',
    'smtp_tls_security_level = may',
    'smtpd_relay_restrictions = permit_mynetworks,reject',
  ]
  const postfix = await startPostfix(
    { host: '127.0.0.1', port },
    { name: 'relay.test', domain: 'local.test', settings },
  )
  t.teardown(() => postfix.close())
  const body =
    'From: postfix@example.net\r\nSubject: =?utf-8?q?=C3=9C?=\r\n\r\nA line\r\n.dot\r\n..dots\r\n\xfcmlaut\r\n'
  const dialog = await openDialog(port)
  for (const line of ['EHLO x', 'MAIL FROM:<postfix@example.net> BODY=8BITMIME', `RCPT TO:<${to}>`, 'DATA'])
    t.match(await dialog.say(line), /^[23]/)
  dialog.write(Buffer.from(body.replace(/^\./gm, '..'), 'latin1'))
  t.match(await dialog.say('.'), /^250/)
  dialog.end()
  const [one] = await parsed('postfix@example.net', 1).catch((error) => {
    throw new Error(postfix.log(), { cause: error })
  })
  t.match(one, { subject: 'Ü', envelopeRecipient: to })
  const raw = await rawOf(one.inboundMessageId)
  t.match(raw, /^Received: from x/)
  t.equal(raw.slice(raw.indexOf('From: postfix')).replace(/(Message-Id|Date): [^\r]*\r\n/gi, ''), body)
  t.match(postfix.log(), /status=sent \(250 2\.0\.0 accepted [0-9a-f-]{36}\)/)
})
