/**
 * lagging-proxy - stands before a node of a Redis Cluster and holds back what its replicas are sent, like a slow link
 *
 * Clients pass at once. A connection that begins to replicate is told by its first commands; what the node says there
 * arrives so much later, and what is on its way when the node ends never arrives.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface LaggingProxy {
  close(): void
}

/** Listens on `port` for the node at `to`. In: how late replicas are, ms, asked for each piece. */
export async function startLaggingProxy(port: number, to: number, lagMs: () => number): Promise<LaggingProxy> {
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const node = connect(to, '127.0.0.1')
    let isReplica = false
    for (const socket of [client, node]) {
      open.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        open.delete(socket)
        client.destroy()
        node.destroy()
      })
    }
    client.on('data', (data: Buffer) => {
      isReplica ||= /REPLCONF|PSYNC/.test(data.subarray(0, 512).toString('latin1'))
      node.write(data)
    })
    node.on('data', (data: Buffer) => {
      if (!isReplica) client.write(data)
      else setTimeout(() => client.destroyed || client.write(data), lagMs())
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}
