/**
 * Usual clients hand mail over, each with the settings that docs/start/smtp.md names; those that are not installed are
 * skipped.
 */

import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createTransport } from 'nodemailer'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { POSTFIX_SKIP, startPostfix } from '../../support/peers/postfix.ts'
import { startTestService } from '../../support/service/service.ts'

const WAIT_MS = 30_000
const service = await startTestService()
const { firstRun, config, dataDir } = service
const token = firstRun.testServer.token
const folder = mkdtempSync(join(tmpdir(), 'sendwright-clients-'))
t.teardown(async () => {
  await service.stop()
  rmSync(folder, { recursive: true })
})
const ca = join(dataDir, 'tls-cert.pem')
const to = 'person@simulator.test'
const from = 'you@simulator.test'
const { submissionPort, submissionTlsPort } = config

const isInstalled = (command: string): boolean =>
  (spawnSync('sh', ['-c', `command -v ${command}`]) as SpawnSyncReturns<Buffer>).status === 0
const skipOf = (command: string) => !isInstalled(command) && `${command} is not installed`

/** Runs a program on its own event loop, so that the service in this process can answer it. */
async function run(command: string, args: readonly string[], { input = '', env = {} } = {}): Promise<string> {
  const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', command, ...args], {
    cwd: folder,
    env: { ...process.env, ...env },
    timeout: WAIT_MS,
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${out}${err}`)
  return out + err
}

/** The message with a subject, once it is delivered. */
function delivered(subject: string) {
  return until(async () => {
    const found = await service.call('POST /v1/messages/search', { token, body: { source: 'smtp' } })
    const one = found.json.messages.find((message: { subject: string }) => message.subject === subject)
    return one?.status === 'delivered' ? one : null
  }, WAIT_MS)
}

t.test('clients: nodemailer, over either port, one connection for many', async (t) => {
  for (const [port, secure] of [
    [submissionPort, false],
    [submissionTlsPort, true],
  ] as const) {
    const transport = createTransport({
      host: '127.0.0.1',
      port,
      secure,
      requireTLS: true,
      pool: true,
      auth: { user: 'any', pass: token },
      tls: { rejectUnauthorized: false },
    })
    const attachments = [{ filename: 'ü.txt', content: 'attached' }]
    for (let n = 0; n < 3; n += 1) {
      const subject = `nodemailer ${secure} ${n}`
      // It writes the names of fields its own way: `-n` goes out as `-N`.
      const headers = { 'X-Sendwright-Tag': 'nodemailer', 'X-Sendwright-Metadata-n': String(n) }
      const sent = await transport.sendMail({
        from,
        to,
        bcc: 'blind@simulator.test',
        subject,
        text: 'ü',
        attachments,
        headers,
      })
      t.match(sent.response, /^250 2\.0\.0 accepted /)
      t.match(await delivered(subject), { tag: 'nodemailer', metadata: { N: String(n) }, attachmentCount: 1 })
    }
    transport.close()
  }
})

t.test('clients: swaks', { skip: skipOf('swaks') }, async (t) => {
  for (const auth of ['PLAIN', 'LOGIN']) {
    const server = ['--server', '127.0.0.1', '--port', String(submissionPort), '--tls']
    const login = ['--auth', auth, '--auth-user', 'any', '--auth-password', token]
    const mail = ['--from', from, '--to', to, '--header', `Subject: swaks ${auth}`, '--body', 'Hello\n.\n..dots']
    t.match(await run('swaks', [...server, ...login, ...mail]), /250 2\.0\.0 accepted /)
    await delivered(`swaks ${auth}`)
  }
})

t.test('clients: smtplib of Python, which verifies the certificate', { skip: skipOf('python3') }, async (t) => {
  const script = [
    'import smtplib, ssl, sys',
    'from email.message import EmailMessage',
    'message = EmailMessage()',
    `message["From"], message["To"], message["Subject"] = "${from}", "${to}", "smtplib"`,
    'message.set_content("Grüße\\n.\\n")',
    'tls = ssl.create_default_context(cafile=sys.argv[1])',
    'tls.check_hostname = False',
    `with smtplib.SMTP("127.0.0.1", ${submissionPort}) as smtp:`,
    '    smtp.starttls(context=tls)',
    '    smtp.login("any", sys.argv[2])',
    '    smtp.send_message(message)',
    `with smtplib.SMTP_SSL("127.0.0.1", ${submissionTlsPort}, context=tls) as smtp:`,
    '    try: smtp.login("any", "wrong")',
    '    except smtplib.SMTPAuthenticationError as error: print(error.smtp_code)',
  ].join('\n')
  t.equal((await run('python3', ['-', ca, token], { input: script })).trim(), '535')
  await delivered('smtplib')
})

/** A configuration of msmtp; only its owner may read it. */
function msmtpConfig(): string {
  const path = join(folder, 'msmtprc')
  const lines = ['account default', 'host 127.0.0.1', `port ${submissionPort}`, 'tls on', 'tls_starttls on']
  const trust = ['tls_certcheck off', 'auth plain', 'user any', `password ${token}`, `from ${from}`]
  writeFileSync(path, `${[...lines, ...trust].join('\n')}\n`, { mode: 0o600 })
  return path
}

t.test('clients: msmtp', { skip: skipOf('msmtp') }, async () => {
  await run('msmtp', ['-C', msmtpConfig(), to], { input: `From: ${from}\nTo: ${to}\nSubject: msmtp\n\nHello\n` })
  await delivered('msmtp')
})

t.test('clients: mail() of PHP, by msmtp', { skip: skipOf('php') || skipOf('msmtp') }, async () => {
  const sendmail = join(folder, 'sendmail')
  writeFileSync(sendmail, `#!/bin/sh\nexec msmtp -C ${msmtpConfig()} -t\n`)
  chmodSync(sendmail, 0o755)
  const script = `<?php exit(mail("${to}", "php", "Hello", "From: ${from}") ? 0 : 1);`
  await run('php', ['-d', `sendmail_path=${sendmail}`], { input: script })
  await delivered('php')
})

t.test('clients: curl', { skip: skipOf('curl') }, async () => {
  writeFileSync(join(folder, 'mail.eml'), `From: ${from}\r\nTo: ${to}\r\nSubject: curl\r\n\r\nHello\r\n`)
  const tls = ['--ssl-reqd', '--insecure', '--silent', '--show-error', '--user', `any:${token}`]
  const mail = ['--mail-from', from, '--mail-rcpt', to, '--upload-file', 'mail.eml']
  await run('curl', [...tls, ...mail, `smtp://127.0.0.1:${submissionPort}`])
  await delivered('curl')
})

t.test('clients: a Postfix that relays all of its mail here', { skip: POSTFIX_SKIP }, async (t) => {
  const port = await freePort()
  const passwords = `inline:{ { [127.0.0.1]:${submissionPort} = any:${token} } }`
  const postfix = await startPostfix(
    { host: '127.0.0.1', port },
    {
      name: 'relay.test',
      domain: 'local.test',
      settings: [
        `relayhost = [127.0.0.1]:${submissionPort}`,
        'mynetworks = 127.0.0.0/8',
        'smtpd_relay_restrictions = permit_mynetworks,reject',
        'smtp_tls_security_level = encrypt',
        'smtp_sasl_auth_enable = yes',
        'smtp_sasl_security_options = noanonymous',
        'smtp_sasl_mechanism_filter = plain',
        `smtp_sasl_password_maps = ${passwords}`,
      ],
    },
  )
  t.teardown(() => postfix.close())
  const socket = connect({ host: '127.0.0.1', port })
  socket.setEncoding('latin1')
  let said = ''
  socket.on('data', (piece: string) => {
    said += piece
  })
  const mail = `From: ${from}\r\nTo: ${to}\r\nSubject: postfix\r\n\r\nÜ\r\n..\r\n`
  const lines = ['EHLO x', `MAIL FROM:<${from}> BODY=8BITMIME`, `RCPT TO:<${to}>`, 'DATA', `${mail}.`, 'QUIT']
  for (const [at, line] of lines.entries()) {
    await until(() => said.split('\r\n').filter((one) => /^\d{3} /.test(one)).length > at, WAIT_MS)
    socket.write(`${line}\r\n`)
  }
  const found = await delivered('postfix').catch((error) => {
    throw new Error(`${said}${postfix.log()}`, { cause: error })
  })
  const { json } = await service.call(`GET /v1/messages/${found.messageId}`, { token })
  t.equal(json.text, 'Ü\n.\n')
})
