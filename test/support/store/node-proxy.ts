/**
 * node-proxy - a proxy in front of a port of a Redis Cluster node: it delays what replicas receive, like a slow link,
 * and separates nodes or clients that are cut off from each other
 *
 * Bytes in transit when the node ends never arrive.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** `cut`: connections end. `held`: they stay, and nothing passes until they are open again. */
export type Way = 'open' | 'cut' | 'held'

export interface NodeProxyOptions {
  /** Its own address, and that of the node. */
  readonly port: number
  readonly to: number
  /** The peer, as it identifies itself; `known`: as it did before, '' for not at all. */
  peerOf(data: Buffer, known: string): string
  wayOf(peer: string): Way
  /** The delay until the node's bytes arrive there, in ms, determined for each piece. */
  lateMs(peer: string): number
}

export interface NodeProxy {
  /** Ways may be others than before. */
  look(): void
  close(): void
}

/** Listens. */
export async function startNodeProxy(options: NodeProxyOptions): Promise<NodeProxy> {
  const open = new Set<Passage>()
  const server = createServer((client) => {
    const passage = new Passage(client, options, () => open.delete(passage))
    open.add(passage)
  })
  server.listen(options.port, '127.0.0.1')
  await once(server, 'listening')
  return {
    look() {
      for (const passage of open) passage.look()
    },
    close() {
      server.close()
      for (const passage of open) passage.end()
    },
  }
}

class Passage {
  private readonly client: Socket
  private readonly node: Socket
  private readonly options: NodeProxyOptions
  private peer = ''

  constructor(client: Socket, options: NodeProxyOptions, ended: () => void) {
    this.client = client
    this.options = options
    this.node = connect(options.to, '127.0.0.1')
    for (const socket of [client, this.node]) {
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        ended()
        this.end()
      })
    }
    client.on('data', (data: Buffer) => {
      const peer = options.peerOf(data, this.peer)
      if (peer !== this.peer) {
        this.peer = peer
        this.look()
      }
      this.node.write(data)
    })
    this.node.on('data', (data: Buffer) => {
      const lateMs = options.lateMs(this.peer)
      if (lateMs === 0) client.write(data)
      else setTimeout(() => client.destroyed || client.write(data), lateMs)
    })
  }

  /** Does what the way there is now. */
  look(): void {
    if (this.peer === '') return
    const way = this.options.wayOf(this.peer)
    if (way === 'cut') this.end()
    for (const socket of [this.client, this.node])
      if (way === 'held') socket.pause()
      else socket.resume()
  }

  end(): void {
    this.client.destroy()
    this.node.destroy()
  }
}
