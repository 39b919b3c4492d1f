/**
 * submitter - clients of SMTP submission that stay connected, encrypted and, if required, logged in, and send message
 * after message
 *
 * It is a separate process. Each connection hands over its next message when the one before has its answer, or, with a
 * rate, when it is due. MAIL, RCPT and DATA go out together (RFC 2920).
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { Measured } from './measured.ts'
import { ADDRESSES, formatPlace } from './message.ts'

export interface SubmitterOrder {
  readonly port: number
  readonly host: string
  /** Passwords, used by the connections in turn; empty for no login. */
  readonly keys: readonly string[]
  readonly connections: number
  /** Messages of each connection. */
  readonly each: number
  /** Messages a second of all connections; null to follow the answers. */
  readonly rate: number | null
  readonly from: string
  /** Domain of the recipients. */
  readonly domain: string
}

/** A usual message, a receipt as text and HTML. */
const MESSAGE_BYTES = 1400
const LATENCY_US_MAX = 600_000_000

/** One connection. */
class Line {
  #socket: Socket
  #text = ''
  #wake: () => void = () => undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#listen()
  }

  static async open({ port, host }: SubmitterOrder, key: string | undefined): Promise<Line> {
    const socket = connect({ port, host, noDelay: true })
    await once(socket, 'connect')
    const line = new Line(socket)
    await line.expect('220')
    await line.say('EHLO bench.test', '250')
    await line.say('STARTTLS', '220')
    socket.removeAllListeners('data')
    const secure = connectTls({ socket, rejectUnauthorized: false })
    await once(secure, 'secureConnect')
    line.#socket = secure
    line.#listen()
    await line.say('EHLO bench.test', '250')
    if (key !== undefined) await line.say(`AUTH PLAIN ${Buffer.from(`\0bench\0${key}`).toString('base64')}`, '235')
    return line
  }

  /** Hands one message over; false: it was refused. */
  async submit(mailFrom: string, recipient: string, message: string): Promise<boolean> {
    this.#socket.write(`MAIL FROM:<${mailFrom}>\r\nRCPT TO:<${recipient}>\r\nDATA\r\n`)
    for (const code of ['250', '250', '354']) await this.expect(code)
    this.#socket.write(message)
    return (await this.#reply()).startsWith('250')
  }

  async say(line: string, code: string): Promise<void> {
    this.#socket.write(`${line}\r\n`)
    await this.expect(code)
  }

  async expect(code: string): Promise<void> {
    const reply = await this.#reply()
    if (!reply.startsWith(code)) throw new Error(`${code} was expected, not: ${reply}`)
  }

  end(): void {
    this.#socket.end('QUIT\r\n')
    this.#socket.destroySoon()
  }

  #listen(): void {
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (text: string) => {
      this.#text += text
      this.#wake()
    })
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => {
      this.#text += '000 closed\r\n'
      this.#wake()
    })
  }

  async #reply(): Promise<string> {
    for (;;) {
      const whole = /^(?:\d{3}-[^\r\n]*\r\n)*\d{3} [^\r\n]*\r\n/.exec(this.#text)
      if (whole !== null) {
        this.#text = this.#text.slice(whole[0].length)
        return whole[0]
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

function makeMessage(from: string, recipient: string): string {
  const head = [
    `From: Acme Billing <${from}>`,
    `To: A. Customer <${recipient}>`,
    'Subject: Your receipt for order 4711-09',
    'Date: Mon, 23 Nov 2026 09:00:00 +0000',
    'Message-ID: <4711-09@bench.test>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/alternative; boundary="b1"',
    '',
    '--b1\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThank you for your order.',
    '--b1\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Thank you for your order.</p>',
  ].join('\r\n')
  const tail = '\r\n--b1--\r\n'
  const line = `<p>${'One pair of shoes, size 42, brown. '.repeat(2)}</p>\r\n`
  const missing = MESSAGE_BYTES - head.length - tail.length - 2
  return `${head}\r\n${line
    .repeat(Math.ceil(missing / line.length))
    .slice(0, missing)
    .trimEnd()}${tail}.\r\n`
}

async function run(order: SubmitterOrder): Promise<Measured> {
  const { connections, each, rate, keys, from, domain } = order
  const histogram = createHistogram({ lowest: 1, highest: LATENCY_US_MAX, figures: 3 })
  const open: Promise<Line>[] = []
  for (let n = 0; n < connections; n += 1) open.push(Line.open(order, keys[n % Math.max(1, keys.length)]))
  const lines = await Promise.all(open)
  let [asked, accepted, refused, broken] = [0, 0, 0, 0]
  const startedAtMs = performance.now()
  const serve = async (line: Line): Promise<void> => {
    for (let left = each; left > 0; left -= 1) {
      const n = asked++
      const dueAtMs = rate === null ? performance.now() : startedAtMs + (n * 1000) / rate
      if (dueAtMs > performance.now()) await pause(dueAtMs - performance.now())
      const recipient = `person${formatPlace(n % ADDRESSES)}@${domain}`
      const isTaken = await line.submit(from, recipient, makeMessage(from, recipient))
      histogram.record(Math.min(Math.max(1, Math.round((performance.now() - dueAtMs) * 1000)), LATENCY_US_MAX))
      if (isTaken) accepted += 1
      else refused += 1
    }
  }
  const ends = await Promise.allSettled(lines.map(serve))
  broken = connections * each - accepted - refused
  const fault = ends.find((one) => one.status === 'rejected')
  if (fault !== undefined) console.error(String(fault.reason))
  const seconds = (performance.now() - startedAtMs) / 1000
  for (const line of lines) line.end()
  return {
    accepted,
    refused,
    broken,
    perSecond: accepted / seconds,
    p50Ms: histogram.percentile(50) / 1000,
    p99Ms: histogram.percentile(99) / 1000,
  }
}

process.once('message', (order) => {
  void run(order as SubmitterOrder).then((measured) => process.send?.(measured, () => process.exit(0)))
})
