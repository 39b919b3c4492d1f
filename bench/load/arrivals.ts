/**
 * arrivals - a receiving server that accepts everything and records times: the first byte of a session, and the
 * latency of each message
 *
 * The time of acceptance is in the message's own id, so no list of sent messages is needed. On one set of addresses it
 * accepts connections and sends nothing, so mail to them hangs.
 */

import { createServer, type Socket } from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import { msOf } from '../../cluster/id.ts'

const ID = /^Message-ID: <([0-9a-f-]{36})@/im

export interface Arrivals {
  readonly port: number
  /** Milliseconds from acceptance to the final dot, since the last `take`. */
  take(): { readonly count: number; readonly p50Ms: number; readonly p99Ms: number }
  /** `performance.now()` of the first byte of a session that comes next. */
  nextFirstByte(): Promise<number>
  close(): Promise<void>
}

/** Listens on every address. In: which local addresses are silent. */
export async function startArrivals(isSilent: (address: string) => boolean): Promise<Arrivals> {
  let histogram = createHistogram({ lowest: 1, highest: 600_000, figures: 3 })
  let waiting: ((atMs: number) => void)[] = []
  const sockets = new Set<Socket>()
  const listener = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    if (isSilent(socket.localAddress ?? '')) return
    socket.setNoDelay(true)
    let isFirst = true
    receive(socket, {
      onData() {
        if (!isFirst) return
        isFirst = false
        for (const resolve of waiting) resolve(performance.now())
        waiting = []
      },
      onMessage(text) {
        const id = ID.exec(text)?.[1]
        if (id !== undefined) histogram.record(Math.max(1, Date.now() - msOf(id)))
      },
    })
  })
  await new Promise<void>((resolve) => listener.listen({ port: 0, host: '0.0.0.0', backlog: 4096 }, resolve))
  return {
    port: (listener.address() as { port: number }).port,
    take() {
      const taken = { count: histogram.count, p50Ms: histogram.percentile(50), p99Ms: histogram.percentile(99) }
      histogram = createHistogram({ lowest: 1, highest: 600_000, figures: 3 })
      return taken
    },
    nextFirstByte: () => new Promise((resolve) => waiting.push(resolve)),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

/** The least of SMTP that a sender needs. */
function receive(socket: Socket, { onData, onMessage }: { onData(): void; onMessage(text: string): void }): void {
  let buffered = ''
  let isData = false
  socket.write('220 arrivals ESMTP\r\n')
  socket.on('data', (chunk: Buffer) => {
    onData()
    buffered += chunk.toString('latin1')
    while (true) {
      const end = buffered.indexOf(isData ? '\r\n.\r\n' : '\r\n')
      if (end < 0) return
      const text = buffered.slice(0, end)
      buffered = buffered.slice(end + (isData ? 5 : 2))
      if (isData) onMessage(text)
      socket.write(isData ? '250 2.0.0 taken\r\n' : replyTo(text))
      isData = !isData && text === 'DATA'
    }
  })
}

function replyTo(line: string): string {
  if (line.startsWith('EHLO')) return '250-arrivals\r\n250 PIPELINING\r\n'
  if (line === 'DATA') return '354 go\r\n'
  return line === 'QUIT' ? '221 bye\r\n' : '250 ok\r\n'
}
