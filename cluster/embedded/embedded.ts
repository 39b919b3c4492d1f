/** embedded-redis - the redis-server that a process without a store of its own runs in its data directory.
 *
 *  States: adopt (one is there and answers) | start (none is there) | watch | recover (it went away) | stop.
 *
 *  Guarantees:
 *  - Never two on one directory. A redis inherits the directory's lock (directory-lock.ts) and holds it to its own
 *    end, so even a starter killed between spawn and the first answer leaves no gap. A second redis would unlink the
 *    first one's socket and write the same files: acknowledged writes would be lost.
 *  - A redis that lives and does not answer stops the start with an error instead.
 *  - It survives us: own process group (Ctrl-C in a terminal reaches the group and would end it before us), no pipe to
 *    us. The next process adopts it. Whoever watches restarts it when it dies; the lock lets one of them.
 *  - It is never killed, only asked to shut down, and only by the process that is told it is the last.
 *
 *  Files: `redis.sock redis.pid redis.log appendonlydir/` in the data directory.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Durability, StoreLog } from './binary.ts'
import { lockDirectory } from './directory-lock.ts'
import { livingRedisPid } from './probe.ts'
import { openStore, type Place } from './process.ts'

/** `sun_path` is 108 bytes on Linux and 104 elsewhere, with the closing zero. */
const SOCKET_PATH_BYTES_MAX = 103
const STEP_MS = 20
/** 7 s: the whole service has ten. */
const SHUTDOWN_STEPS_MAX = 350
const BACKOFF_MS_MAX = 5000
/** A redis that lived this long was well: the next failure begins a new series. */
const WELL_MS = 10_000

export interface EmbeddedRedisOptions {
  dataDir: string
  durability: Durability
  log: StoreLog
  /** The connection to the store broke; it is being brought back. */
  onDown: () => void
  /** It answers again. */
  onUp: () => void
}

export interface EmbeddedRedis {
  /** At most 103 bytes, however deep the data directory lies. */
  socketPath: string
  /** True when it already ran. */
  adopted: boolean
  /**
   * Ends the watch and, when `whenLast` says so, the store. Resolves once the store's process has gone.
   * @returns whether the store was stopped; throws what `whenLast` threw or why the store refused
   */
  stop(options: { whenLast: () => Promise<boolean> }): Promise<boolean>
}

/**
 * Adopts the store of `dataDir` or starts one, and keeps it running until stop().
 * @throws Error when a living redis does not answer, none can be started, or the directory is another redis's
 */
export async function startEmbeddedRedis(options: EmbeddedRedisOptions): Promise<EmbeddedRedis> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 })
  const directory = realpathSync(options.dataDir)
  const { socketPath, forget } = reachableSocket(directory)
  const stopping = new AbortController()
  const { durability, log } = options
  const place: Place = { directory, socketPath, durability, log, signal: stopping.signal }
  const opened = await openStore(place).catch((error: unknown) => {
    forget()
    throw error
  })
  const watch = watchStore(place, opened.client, options)
  return {
    socketPath,
    adopted: opened.adopted,
    async stop({ whenLast }) {
      stopping.abort()
      const client = await watch.end()
      try {
        if (client === null || !(await whenLast())) return false
        await shutDown(place, client)
        return true
      } finally {
        client?.disconnect()
        forget()
      }
    },
  }
}

/** Follows one open connection: its end is the store's end, and the store is opened again until it answers. */
function watchStore(place: Place, first: Redis, { onDown, onUp }: EmbeddedRedisOptions) {
  let client: Redis | null = null
  let failures = 0
  let recovered: Promise<void> = Promise.resolve()

  function follow(next: Redis): void {
    const sinceMs = performance.now()
    client = next
    next.once('end', () => {
      client = null
      if (place.signal.aborted) return
      failures = performance.now() - sinceMs > WELL_MS ? 0 : failures + 1
      place.log.error({ failures }, 'Lost redis')
      onDown()
      recovered = recover()
    })
  }

  async function recover(): Promise<void> {
    while (!place.signal.aborted) {
      const waitMs = failures === 0 ? 0 : Math.min(BACKOFF_MS_MAX, 50 * 2 ** Math.min(failures, 10))
      await pause(waitMs, undefined, { signal: place.signal }).catch(() => undefined)
      if (place.signal.aborted) return
      try {
        follow((await openStore(place)).client)
        return onUp()
      } catch (error) {
        if (place.signal.aborted) return
        failures += 1
        place.log.error({ reason: (error as Error).message, failures }, 'Could not bring redis back: trying again')
      }
    }
  }

  follow(first)
  return {
    /** The open connection, if there is one, once nothing is being brought back any more. */
    async end(): Promise<Redis | null> {
      await recovered
      return client
    },
  }
}

/** Asks the store to write everything and leave, and waits until its lock is free: then its process has gone. */
async function shutDown(place: Place, client: Redis): Promise<void> {
  const refusal = await client.shutdown('NOSAVE').then(
    () => null,
    // A closed connection is the answer; only a reply in words is a refusal.
    (error: Error) => (error.name === 'ReplyError' ? error : null),
  )
  if (refusal) throw refusal
  for (let step = 0; step < SHUTDOWN_STEPS_MAX; step++) {
    const lock = await lockDirectory(place.directory)
    if (lock !== null) {
      await lock.release()
      if (livingRedisPid(place.directory) === null) return
    }
    await pause(STEP_MS)
  }
  throw new Error(`The redis of ${place.directory} was asked to shut down and has not gone`)
}

/** A path of the socket that connect(2) takes: the plain one, or through a short link where that is too long. */
function reachableSocket(directory: string): { socketPath: string; forget: () => void } {
  const plain = join(directory, 'redis.sock')
  if (Buffer.byteLength(plain) <= SOCKET_PATH_BYTES_MAX) return { socketPath: plain, forget: () => undefined }
  // A fresh directory that only we may enter: a name that others can guess could be made by them first.
  const short = mkdtempSync('/tmp/redis-')
  symlinkSync(directory, join(short, 'at'))
  return { socketPath: join(short, 'at', 'redis.sock'), forget: () => rmSync(short, { recursive: true, force: true }) }
}
