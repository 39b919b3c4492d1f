/** Clients that take all places of SMTP submission and of the MX listener, and hold them: others are served. */
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'

const service = await startAttacked(t, { SERVICE_DOMAIN: 'service.example' })

/** Opens connections that greet and then say a command every quarter of a second. */
function flood(port: number, { connections, addresses }: { connections: number; addresses: number }): () => void {
  const sockets: Socket[] = []
  for (let n = 0; n < connections; n += 1) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.77.${1 + (n % addresses)}` })
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write('EHLO flood.example\r\n'))
    socket.resume()
    sockets.push(socket)
  }
  const noops = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write('NOOP\r\n')
  }, 250)
  return () => {
    clearInterval(noops)
    for (const socket of sockets) socket.destroy()
  }
}

for (const { others, port, connections, addresses } of [
  { others: 'submission', port: service.submissionPort, connections: 260, addresses: 1 },
  { others: 'mx', port: service.mxPort, connections: 600, addresses: 20 },
] as const)
  t.test(
    `places: ${connections} connections hold no other client of ${others} up [submission.connections] [mx.places]`,
    async (t) => {
      const end = flood(port, { connections, addresses })
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      const harm = await service.during(() => new Promise((resolve) => setTimeout(resolve, 3_000)), ['http', others])
      end()
      isHarmless(t, harm, { grownMb: 100 })
    },
  )
