/** way - a connection to a port of this machine that can be closed and opened again */

import { connect, createServer, type Socket } from 'node:net'

/** Makes a way from `port` to `target`; it begins closed. */
export function makeWay(port: number, target: number): { open(): Promise<void>; close(): void } {
  let server = createServer()
  const sockets = new Set<Socket>()
  return {
    async open() {
      server = createServer((client) => {
        const there = connect({ port: target, host: '127.0.0.1' })
        for (const socket of [client, there]) sockets.add(socket.on('error', () => undefined))
        client.pipe(there).pipe(client)
      })
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      sockets.clear()
    },
  }
}
