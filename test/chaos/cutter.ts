/**
 * cutter - a socket between one process and the store that cuts its connections at any byte.
 *
 * There are two ways to cut: both sides end at once; or the process' side ends and the bytes that it sent reach the
 * store three seconds later, as from a network that had kept them: a copy of a commit that must not run after the one
 * that replaced it.
 */
import { rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'

const LATE_MS = 3_000

export interface Cutter {
  readonly path: string
  /** Cuts one connection after this many more bytes; `isLate`: the store gets the bytes three seconds later. */
  cut(afterBytes: number, isLate: boolean): void
  /** Connections that were cut. */
  readonly cuts: number
  close(): void
}

interface Pair {
  readonly near: Socket
  readonly far: Socket
  leftBytes: number
  isLate: boolean
}

/** Opens the socket `path`, behind which the store on `storePath` answers. */
export async function openCutter(path: string, storePath: () => string): Promise<Cutter> {
  const pairs = new Set<Pair>()
  let cuts = 0
  const server: Server = createServer((near) => {
    const far = createConnection(storePath())
    const pair: Pair = { near, far, leftBytes: Number.POSITIVE_INFINITY, isLate: false }
    pairs.add(pair)
    const end = (): void => {
      pairs.delete(pair)
      near.destroy()
      far.destroy()
    }
    const sever = (piece: Buffer): void => {
      cuts += 1
      pairs.delete(pair)
      far.removeAllListeners('data')
      near.destroy()
      if (!pair.isLate) return void far.destroy()
      setTimeout(() => far.end(piece), LATE_MS).unref()
    }
    near.on('data', (piece) => {
      if (piece.length < pair.leftBytes) {
        pair.leftBytes -= piece.length
        far.write(piece)
      } else {
        const passed = pair.isLate ? 0 : pair.leftBytes
        far.write(piece.subarray(0, passed))
        sever(piece)
      }
    })
    far.on('data', (piece) => void near.write(piece))
    near.on('close', () => {
      if (pairs.has(pair)) end()
    })
    far.on('close', () => {
      if (pairs.has(pair)) end()
    })
    near.on('error', () => undefined)
    far.on('error', () => undefined)
  })
  rmSync(path, { force: true })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    path,
    cut(afterBytes, isLate) {
      // The next one that sends anything. Idle connections are cut when they resume.
      for (const pair of pairs)
        if (pair.leftBytes === Number.POSITIVE_INFINITY) {
          pair.leftBytes = afterBytes
          pair.isLate = isLate
        }
    },
    get cuts() {
      return cuts
    },
    close() {
      server.close()
      for (const { near, far } of pairs) {
        near.destroy()
        far.destroy()
      }
    },
  }
}
