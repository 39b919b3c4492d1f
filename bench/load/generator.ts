/**
 * generator - an open-loop load: requests leave when they are due, even if earlier ones are unanswered
 *
 * It is a separate process over bare sockets, because a generator that waits for answers before it asks again hides
 * the waits that it should measure. Latency counts from the moment a request was due, not from when it got a
 * connection. Without a rate it is a closed loop of a given count, for runs that need an exact number of messages.
 *
 * States of a connection: idle, asked. The end: everything asked is answered, or 10 s have gone by.
 */

import { connect, type Socket } from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import type { Measured } from './measured.ts'
import { formatPlace, PLACE, type Target } from './message.ts'

export interface GeneratorOrder {
  readonly target: Target
  readonly template: string
  readonly connections: number
  /** Requests a second; null to follow the answers. */
  readonly rate: number | null
  /** Requests in all. */
  readonly count: number
  /** Addresses that they go to, in turn. */
  readonly addresses: number
  /** Path and header fields of each key's requests; absent for those of our own route. */
  readonly asks?: readonly Ask[]
}

/** Path and header fields of a request. */
export interface Ask {
  readonly path: string
  readonly headers: readonly string[]
}

const TICK_MS = 1
const DRAIN_MS_MAX = 10_000
/**
 * Maximum number of due requests without a connection; beyond it the contestant does not keep up, and further waiting
 * is pointless.
 */
const WAITING_MAX = 200_000
const LATENCY_US_MAX = 600_000_000

/** A keep-alive connection with at most one request on it. */
interface Line {
  readonly socket: Socket
  dueAtMs: number
  isAsked: boolean
  text: string
}

function ownAsk(key: string): Ask {
  return { path: '/v1/email', headers: [`Authorization: Bearer ${key}`, 'Content-Type: application/json'] }
}

/** Everything of one run. */
class Run {
  private readonly order: GeneratorOrder
  private readonly heads: readonly string[]
  private readonly tail: string
  private readonly histogram = createHistogram({ lowest: 1, highest: LATENCY_US_MAX, figures: 3 })
  private readonly idle: Line[] = []
  private readonly startedAtMs = performance.now()
  private asked = 0
  private accepted = 0
  private refused = 0
  /** Asked on a connection that ended without an answer. */
  private lost = 0
  private lines = 0
  private endedAtMs = 0

  constructor(order: GeneratorOrder) {
    this.order = order
    const [first = '', last = ''] = order.template.split(PLACE)
    const bytes = Buffer.byteLength(order.template)
    this.tail = last
    const asks = order.asks ?? order.target.keys.map(ownAsk)
    this.heads = asks.map(
      ({ path, headers }) =>
        `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers.join('\r\n')}\r\n` +
        `Content-Length: ${bytes}\r\n\r\n${first}`,
    )
  }

  async run(): Promise<Measured> {
    for (let i = 0; i < this.order.connections; i++) this.open()
    while (!this.isOver()) {
      this.ask()
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    const seconds = (this.endedAtMs - this.startedAtMs) / 1000
    return {
      accepted: this.accepted,
      refused: this.refused,
      broken: this.order.count - this.accepted - this.refused,
      perSecond: this.accepted / seconds,
      p50Ms: this.histogram.percentile(50) / 1000,
      p99Ms: this.histogram.percentile(99) / 1000,
    }
  }

  private isOver(): boolean {
    const answered = this.accepted + this.refused + this.lost
    if (this.lines === 0 || (this.asked === this.order.count && answered === this.asked)) return true
    return this.order.rate !== null && performance.now() - this.dueAtMs(this.order.count) > DRAIN_MS_MAX
  }

  /** When request n is due; without a rate each one is due at once. */
  private dueAtMs(n: number): number {
    const { rate } = this.order
    return rate === null ? this.startedAtMs : this.startedAtMs + (n * 1000) / rate
  }

  /** Sends due requests while a connection is free. */
  private ask(): void {
    const nowMs = performance.now()
    const { rate, count } = this.order
    if (rate !== null && ((nowMs - this.startedAtMs) * rate) / 1000 - this.asked > WAITING_MAX)
      throw new Error(`${WAITING_MAX} requests wait: the rate is too high`)
    while (this.asked < count && this.dueAtMs(this.asked) <= nowMs) {
      const line = this.idle.pop()
      if (line === undefined) return
      this.send(line)
    }
  }

  private send(line: Line): void {
    const n = this.asked++
    line.dueAtMs = this.order.rate === null ? performance.now() : this.dueAtMs(n)
    line.isAsked = true
    line.socket.write(this.heads[n % this.heads.length] + formatPlace(n % this.order.addresses) + this.tail, 'latin1')
  }

  private open(): void {
    const socket = connect({ host: '127.0.0.1', port: this.order.target.port, noDelay: true })
    const line: Line = { socket, dueAtMs: 0, isAsked: false, text: '' }
    this.lines += 1
    socket.setEncoding('latin1')
    socket.on('connect', () => this.free(line))
    socket.on('data', (text: string) => this.read(line, text))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.lines -= 1
      if (line.isAsked) this.lost += 1
      // A server closes connections that are idle for long, which is not a missing answer.
      const at = this.idle.indexOf(line)
      if (at < 0) return
      this.idle.splice(at, 1)
      if (!this.isOver()) this.open()
    })
  }

  private free(line: Line): void {
    this.idle.push(line)
    this.ask()
  }

  private read(line: Line, text: string): void {
    line.text += text
    const head = line.text.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/^content-length: (\d+)/im.exec(line.text.slice(0, head))?.[1] ?? 0)
    if (line.text.length < head + 4 + length) return
    const isAccepted = line.text.startsWith('200', 9)
    line.text = ''
    line.isAsked = false
    this.endedAtMs = performance.now()
    if (isAccepted) this.accepted += 1
    else this.refused += 1
    this.histogram.record(Math.min(Math.max(1, Math.round((this.endedAtMs - line.dueAtMs) * 1000)), LATENCY_US_MAX))
    this.free(line)
  }
}

process.once('message', (order) => {
  void new Run(order as GeneratorOrder).run().then((measured) => process.send?.(measured, () => process.exit(0)))
})
