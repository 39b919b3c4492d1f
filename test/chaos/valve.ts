/**
 * valve - a socket between one process and the store that blocks or delays the traffic, connection by connection.
 *
 * A connection is known by the name that its client sets first (`CLIENT SETNAME`). A blocked connection loses nothing:
 * it continues once it is released, as after a partition in which packets are sent again. A severed one ends at once;
 * a client that reconnects meanwhile is accepted and receives nothing.
 */
import { rmSync } from 'node:fs'
import { createConnection, createServer, type Socket } from 'node:net'

/** Longer than any command before the name. */
const NAME_BYTES_MAX = 4_096

/** The fault of one direction: it is blocked, or delayed by this much. */
export interface Flow {
  readonly held: boolean
  readonly delayMs: number
}

export interface Rule {
  /** Connections by name; null: all. */
  readonly names: readonly string[] | null
  readonly toStore: Flow
  readonly fromStore: Flow
  /** Open connections are ended first. */
  readonly severs: boolean
}

export interface Valve {
  /** From now on; null: all traffic passes again. */
  set(rule: Rule | null): void
  close(): void
}

export const FREE: Flow = { held: false, delayMs: 0 }
export const HELD: Flow = { held: true, delayMs: 0 }

/** Opens the socket `path`, behind which the store on `storePath` answers. */
export async function openValve(path: string, storePath: () => string): Promise<Valve> {
  const lines = new Set<Line>()
  let rule: Rule | null = null
  const server = createServer((near) => {
    const line = new Line(near, createConnection(storePath()), () => rule)
    lines.add(line)
    near.on('close', () => lines.delete(line))
  })
  rmSync(path, { force: true })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    set(next) {
      rule = next
      for (const line of [...lines]) if (next?.severs === true && line.isMeant(next)) line.end()
      for (const line of lines) line.flush()
    },
    close() {
      server.close()
      for (const line of lines) line.end()
    },
  }
}

class Line {
  private readonly near: Socket
  private readonly far: Socket
  private readonly ruleOf: () => Rule | null
  private readonly queues: { toStore: Piece[]; fromStore: Piece[] } = { toStore: [], fromStore: [] }
  private head = ''
  private timer: NodeJS.Timeout | undefined

  constructor(near: Socket, far: Socket, ruleOf: () => Rule | null) {
    this.near = near
    this.far = far
    this.ruleOf = ruleOf
    near.on('data', (bytes) => {
      if (this.head.length < NAME_BYTES_MAX) this.head += bytes.toString('latin1').toLowerCase()
      this.push('toStore', bytes)
    })
    far.on('data', (bytes) => this.push('fromStore', bytes))
    for (const socket of [near, far]) {
      socket.on('error', () => undefined)
      socket.on('close', () => this.end())
    }
  }

  isMeant({ names }: Rule): boolean {
    return names?.some((name) => new RegExp(`setname\\r\\n\\$\\d+\\r\\n${name}\\r`).test(this.head)) ?? true
  }

  end(): void {
    clearTimeout(this.timer)
    this.near.destroy()
    this.far.destroy()
  }

  flush(): void {
    clearTimeout(this.timer)
    const nowMs = performance.now()
    let nextMs = Number.POSITIVE_INFINITY
    for (const way of ['toStore', 'fromStore'] as const) {
      const rule = this.ruleOf()
      const flow = rule !== null && this.isMeant(rule) ? rule[way] : FREE
      const queue = this.queues[way]
      while (!flow.held && queue[0] !== undefined && queue[0].atMs + flow.delayMs <= nowMs) {
        const { bytes } = queue.shift() as Piece
        if (way === 'toStore') this.far.write(bytes)
        else this.near.write(bytes)
      }
      if (!flow.held && queue[0] !== undefined) nextMs = Math.min(nextMs, queue[0].atMs + flow.delayMs)
    }
    if (nextMs !== Number.POSITIVE_INFINITY) this.timer = setTimeout(() => this.flush(), Math.max(1, nextMs - nowMs))
  }

  private push(way: 'toStore' | 'fromStore', bytes: Buffer): void {
    this.queues[way].push({ bytes, atMs: performance.now() })
    this.flush()
  }
}

interface Piece {
  readonly bytes: Buffer
  readonly atMs: number
}
