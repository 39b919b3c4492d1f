/** slow-mx - a receiving server that takes its time after the final dot, and counts what it took by recipient. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A message that was received completely. `isHeard`: the connection was open when its answer was sent. */
export interface Copy {
  readonly recipient: string
  isHeard: boolean | null
}

export interface SlowMx {
  readonly port: number
  readonly copies: readonly Copy[]
  close(): void
}

/** Starts it. `waitMs` returns its wait before each answer to a dot. */
export async function startSlowMx(waitMs: () => number): Promise<SlowMx> {
  const copies: Copy[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    socket.setNoDelay(true)
    socket.write('220 mx.example ESMTP\r\n')
    let [recipient, isData, rest] = ['', false, '']
    const line = (text: string): void => {
      if (isData && text === '.') {
        isData = false
        const copy: Copy = { recipient, isHeard: null }
        copies.push(copy)
        setTimeout(() => {
          copy.isHeard = !socket.destroyed && socket.writable
          if (copy.isHeard) socket.write('250 2.0.0 taken\r\n')
        }, waitMs())
      }
      if (isData || text === '.') return
      const verb = text.slice(0, 4).toUpperCase()
      if (verb === 'RCPT') recipient = /<([^>]*)>/.exec(text)?.[1] ?? ''
      isData = verb === 'DATA'
      const answer = verb === 'DATA' ? '354 go on' : verb === 'QUIT' ? '221 bye' : '250 ok'
      socket.write(`${answer}\r\n`)
    }
    socket.on('data', (bytes) => {
      const lines = (rest + bytes.toString('latin1')).split('\r\n')
      rest = lines.pop() ?? ''
      for (const one of lines) line(one)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    copies,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
