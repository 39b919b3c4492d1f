/** front - SMTP listeners behind a proxy: real HAProxy if it is installed, and headers over real sockets. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { makeCertificate } from '../../../src/process/certificate.ts'
import { startMxListener } from '../../../src/reception/mx-listener.ts'
import type { SenderRate } from '../../../src/reception/sender-rate.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { startRig } from '../../support/service/submission-rig.ts'

const WAIT_MS = 15_000
const TLS = makeCertificate('mx.service.example', Date.now())
const HAS_HAPROXY = spawnSync('haproxy', ['-v']).error === undefined
const CLIENT = Buffer.from('0d0a0d0a000d0a515549540a2111000cc0000201c6336401ea60024b', 'hex')
const LOCAL = Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex')

/** An MX listener. Returns its port, and the addresses that it counted. */
async function startMx(t: Test, proxies: readonly string[]): Promise<{ port: number; opened: string[] }> {
  const opened: string[] = []
  const rate: SenderRate = { open: (ip) => opened.push(ip) > 0, close: () => undefined } as SenderRate
  const listener = await startMxListener({
    host: '127.0.0.1',
    port: 0,
    name: 'mx.service.example',
    proxies,
    certificate: { current: TLS, onRenewed: () => undefined },
    rate,
    handlers: {
      recipient: async () => ({ target: 'one' }),
      mail: async ({ pieces }) => {
        for await (const _ of pieces);
        return { code: 250, text: '2.0.0 Ok' }
      },
    },
    log: { error: () => undefined, debug: () => undefined },
  })
  t.teardown(() => listener.close())
  return { port: listener.port, opened }
}

/** A connection that sends bytes at once, and the data received until it was closed. */
function open(port: number, bytes: Buffer | string): { socket: Socket; said: () => string; closed: Promise<unknown> } {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  socket.on('data', (piece: Buffer) => (said += piece.toString('latin1'))).on('error', () => undefined)
  socket.write(bytes)
  return { socket, said: () => said, closed: once(socket, 'close') }
}

t.test('proxy front: the client in the header is the one that is counted', async (t) => {
  const { port, opened } = await startMx(t, ['127.0.0.0/8'])
  const { socket, said, closed } = open(port, CLIENT)
  await once(socket, 'data')
  socket.write('EHLO client.example\r\nQUIT\r\n')
  await closed
  t.match(said(), /^220 .*\r\n250-.*[\s\S]*221 /)
  t.same(opened, ['192.0.2.1'])
})

t.test('proxy front: a client that speaks before the greeting is refused as without a proxy', async (t) => {
  const { port } = await startMx(t, ['127.0.0.0/8'])
  const { said, closed } = open(port, Buffer.concat([CLIENT, Buffer.from('EHLO client.example\r\n')]))
  await closed
  t.match(said(), /^421 .*too soon/, 'bytes behind the header are read')
})

t.test('proxy front: a header byte by byte, then STARTTLS and a mail', async (t) => {
  const { port, opened } = await startMx(t, ['127.0.0.0/8'])
  const socket = connect(port, '127.0.0.1')
  for (const byte of CLIENT) socket.write(Buffer.of(byte))
  const next = async (line: string | null): Promise<string> => {
    if (line !== null) socket.write(`${line}\r\n`)
    return String((await once(socket, 'data'))[0])
  }
  t.match(await next(null), /^220 /)
  await next('EHLO client.example')
  t.match(await next('STARTTLS'), /^220 /)
  const secure = connectTls({ socket, rejectUnauthorized: false })
  await once(secure, 'secureConnect')
  secure.write('EHLO client.example\r\n')
  t.match(String((await once(secure, 'data'))[0]), /^250/)
  secure.destroy()
  t.same(opened, ['192.0.2.1'])
})

t.test('proxy front: no header, a wrong one, and half of one are closed without a greeting', async (t) => {
  const { port, opened } = await startMx(t, ['127.0.0.0/8'])
  for (const [name, bytes] of [
    ['a command', 'EHLO client.example\r\nQUIT\r\n'],
    ['version 1', 'PROXY TCP4 192.0.2.1 198.51.100.1 60000 25\r\n'],
    ['another family', Buffer.from('0d0a0d0a000d0a515549540a2112000cc0000201c6336401ea60024b', 'hex')],
    ['too long', Buffer.from('0d0a0d0a000d0a515549540a21110209', 'hex')],
    ['half, and silence', CLIENT.subarray(0, 20)],
    ['silence', ''],
  ] as const) {
    const { said, closed } = open(port, bytes)
    await closed
    t.equal(said(), '', name)
  }
  const { socket, closed } = open(port, CLIENT.subarray(0, 14))
  socket.end()
  await closed
  t.same(opened, [], 'and none is counted')
})

t.test('proxy front: a health check is answered and counts nowhere', async (t) => {
  const { port, opened } = await startMx(t, ['127.0.0.0/8'])
  const { said, closed } = open(port, Buffer.concat([LOCAL, Buffer.from('EHLO lb\r\nMAIL FROM:<a@b.c>\r\nQUIT\r\n')]))
  await closed
  t.match(said(), /^220 mx\.service\.example ESMTP\r\n250 mx\.service\.example\r\n502 .*\r\n221 /)
  const endless = open(port, Buffer.concat([LOCAL, Buffer.alloc(2000, 'x')]))
  await endless.closed
  t.same(opened, [])
})

t.test('proxy front: a client elsewhere is served as before, and its header is no command', async (t) => {
  const { port, opened } = await startMx(t, ['10.0.0.0/8'])
  const dialog = await openDialog(port)
  t.match(dialog.greeting, /^220 /)
  dialog.end()
  const { said, closed } = open(port, CLIENT)
  await closed
  t.match(said(), /^421 .*too soon/)
  t.same(opened, ['127.0.0.1'])
})

t.test('proxy front: on 465 the header comes before TLS, and failed logins count for its client', async (t) => {
  const rig = await startRig(t, {}, { proxies: ['127.0.0.1/32'], isImplicitTls: true })
  const login = async (header: Buffer): Promise<string> => {
    const socket = connect(rig.port, '127.0.0.1')
    socket.write(header)
    const secure = connectTls({ socket, rejectUnauthorized: false })
    const next = async (line: string | null): Promise<string> => {
      if (line !== null) secure.write(`${line}\r\n`)
      return String((await once(secure, 'data'))[0])
    }
    await next(null)
    await next('EHLO client.example')
    const said = await next(`AUTH PLAIN ${Buffer.from('\0x\0wrong').toString('base64')}`)
    secure.destroy()
    return said
  }
  const another = Buffer.from(CLIENT)
  another[19] = 2
  let said = ''
  for (let n = 0; n < 30 && !/^421/.test(said); n += 1) said = await login(CLIENT)
  t.match(said, /^421/, 'one client is blocked')
  t.match(await login(another), /^535/, 'another one behind the same proxy is not')
})

t.test('proxy front: real HAProxy', { skip: !HAS_HAPROXY && 'haproxy is not installed' }, async (t) => {
  const { port, opened } = await startMx(t, ['127.0.0.0/8'])
  const front = await freePort()
  // HAProxy takes at most 97 characters as the path of a socket: that of a checkout may be longer.
  const folder = mkdtempSync(join(tmpdir(), 'haproxy-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'haproxy.cfg')
  const statistics = join(folder, 'stats')
  writeFileSync(
    file,
    [
      'global',
      `  stats socket ${statistics}`,
      'defaults',
      '  mode tcp',
      '  timeout connect 5s',
      '  timeout client 30s',
      '  timeout server 30s',
      'frontend smtp',
      `  bind 127.0.0.1:${front}`,
      '  default_backend service',
      'backend service',
      '  option smtpchk EHLO lb.example',
      `  server one 127.0.0.1:${port} send-proxy-v2 check inter 200`,
      '',
    ].join('\n'),
  )
  const haproxy = spawn('haproxy', ['-f', file, '-db'], { stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => haproxy.kill('SIGKILL'))
  const complaints = text(haproxy.stderr)
  let greeting = ''
  await until(async () => {
    if (haproxy.exitCode !== null) throw new Error(`HAProxy ended: ${await complaints}`)
    const dialog = await openDialog(front).catch(() => null)
    greeting = dialog?.greeting ?? ''
    dialog?.end()
    return greeting !== ''
  }, WAIT_MS)
  t.match(greeting, /^220 /)
  t.same(new Set(opened), new Set(['127.0.0.1']), 'checks are not counted')
  await until(async () => (await statusOf(statistics)).includes('L7OK'), WAIT_MS)
  const later = await openDialog(front)
  t.match(later.greeting, /^220 /)
  later.end()
})

/** The statistics of HAProxy, with the result of the last health check of each server. */
async function statusOf(path: string): Promise<string> {
  const socket = connect(path)
  socket.end('show stat\n')
  return await text(socket)
}
