/** Clients that take all places of SMTP submission and of the MX listener, and hold them: others are served. */
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'

interface Flood {
  readonly connections: number
  readonly addresses: number
  readonly isTalking: boolean
}

/** Both listeners are crowded with them. */
const HELD_MIN = 180
const WAIT_MS = 60_000

const service = await startAttacked(t, { SERVICE_DOMAIN: 'service.example' })

/** Opens connections that greet. Returns what ends them. With `isTalking` each sends a command every half second. */
async function flood(port: number, { connections, addresses, isTalking }: Flood): Promise<() => void> {
  // A client that speaks before the greeting is disconnected.
  const greeted = new Set<Socket>()
  const sockets = Array.from({ length: connections }, (_, n) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.77.${1 + (n % addresses)}` })
    socket.on('error', () => undefined)
    socket.once('data', () => greeted.add(socket) && socket.write('EHLO flood.example\r\n'))
    socket.on('close', () => greeted.delete(socket))
    return socket.resume()
  })
  const noops = setInterval(() => {
    for (const socket of isTalking ? greeted : []) socket.write('NOOP\r\n')
  }, 500)
  await until(async () => greeted.size >= HELD_MIN || null, WAIT_MS)
  return () => {
    clearInterval(noops)
    for (const socket of sockets) socket.destroy()
  }
}

for (const { others, port, ...asked } of [
  { others: 'submission', port: service.submissionPort, connections: 260, addresses: 1, isTalking: false },
  { others: 'mx', port: service.mxPort, connections: 600, addresses: 20, isTalking: true },
] as const)
  t.test(
    `places: ${asked.connections} connections hold no other client of ${others} up [submission.connections] [mx.places]`,
    async (t) => {
      const end = await flood(port, asked)
      const harm = await service.during(() => new Promise((resolve) => setTimeout(resolve, 3_000)), ['http', others])
      end()
      isHarmless(t, harm, { grownMb: 100 })
    },
  )
