/** probe - connects to ports again and again, and counts the refused and reset connections. */
import { connect } from 'node:net'

const EVERY_MS = 20
const CONNECT_MS_MAX = 5_000

export interface Probe {
  /** Connections by port and outcome, such as `25 connected`. */
  end(): Promise<Readonly<Record<string, number>>>
}

export function startProbe(ports: readonly number[]): Probe {
  const counts = new Map<string, number>()
  const open = new Set<Promise<void>>()
  const one = (port: number): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', timeout: CONNECT_MS_MAX })
      const end = (what: string): void => {
        counts.set(`${port} ${what}`, (counts.get(`${port} ${what}`) ?? 0) + 1)
        socket
          .removeAllListeners()
          .on('error', () => undefined)
          .destroy()
        resolve()
      }
      socket.once('connect', () => end('connected'))
      socket.once('error', (error: NodeJS.ErrnoException) => end(String(error.code)))
      socket.once('timeout', () => end('timeout'))
    })
  const timer = setInterval(() => {
    for (const port of ports) {
      const asked = one(port)
      open.add(asked)
      void asked.finally(() => open.delete(asked))
    }
  }, EVERY_MS)
  return {
    async end() {
      clearInterval(timer)
      await Promise.all(open)
      return Object.fromEntries(counts)
    },
  }
}
