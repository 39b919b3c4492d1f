/**
 * embedded - the redis-server that a process without a store URL runs in its data directory.
 *
 * States: adopt (one is running and answers) | start (none is running) | watch | recover (it has ended) | stop.
 *
 * Guarantees:
 * - Two never run on one directory. A redis inherits the directory's lock (directory-lock.ts) and holds it to its own
 *   end, so even a starter killed between spawn and the first answer leaves no gap. A second redis would unlink the
 *   first one's socket and write the same files, and acknowledged writes would be lost.
 * - A redis that lives and does not answer stops the start with an error instead.
 * - It survives this process: it has its own process group (Ctrl-C in a terminal reaches the group and would end it
 *   first) and no pipe to this process. The next process adopts it. Every watching process restarts it when it dies;
 *   the lock lets one of them.
 * - It is never killed, only asked to shut down, and only by the last process that uses it. Before that its data is in
 *   its file, even if its settings or its directory were changed in the meantime; otherwise it is left running.
 *
 * Files: `redis.sock redis.pid redis.log store-mark store-sums/ appendonlydir/` in the data directory.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { removeOldEnds } from './aof-end.ts'
import type { Durability, StoreLog } from './binary.ts'
import { describeEnd, describeSilence } from './crash-diagnostics.ts'
import { lockDirectory } from './directory-lock.ts'
import { rewriteIfWorth, setRight, writtenWhole } from './durable.ts'
import { livingRedisPid, strandedRedisPid } from './probe.ts'
import { openRedis, type Place } from './process.ts'
import { watchRedisLog } from './redis-log.ts'
import { type RescueLines, rescueStore } from './rescue.ts'
import { StoreDirectory } from './store-directory.ts'

/** `sun_path` is 108 bytes on Linux and 104 elsewhere, with the closing zero. */
const SOCKET_PATH_BYTES_MAX = 103
const STEP_MS = 20
/** 7 s, because the whole service has ten. */
const SHUTDOWN_STEPS_MAX = 350
/** Of these, the time that a repaired store has to write its file; one that takes longer is left running. */
const WHOLE_MS_MAX = 5000
/** The time that a stop waits for sums; without them the next start has less to compare. */
const SUMS_MS_MAX = 2000
/** Of a rewrite before the end, which makes the next start faster. */
const REWRITE_MS_MAX = 5000
const BACKOFF_MS_MAX = 5000
const SWEEP_MS = 3_600_000
/** A Redis that lived this long was healthy, and the next failure begins a new series. */
const WELL_MS = 10_000
/** Number of consecutive failures that cannot be chance. */
const SERIES_MIN = 2

export interface EmbeddedRedisOptions {
  dataDir: string
  durability: Durability
  log: StoreLog
  /** The connection to the store broke; it is being brought back. */
  onDown: () => void
  /** It answers again. */
  onUp: () => void
  /** Port of the loopback on which the store listens beside its socket; none by default. */
  port?: number
  /** Memory that the store may use; half of the machine's by default. */
  memoryBytes?: number | undefined
  /** Whether the directory is known to have held a store: then an empty one is not started. False by default. */
  mustHold?: () => boolean
  /**
   * The directory was made again, with the store's files in it: other files can be written. Takes the store, which
   * lives until this is done.
   */
  onRemade?: (client: Redis) => Promise<void>
}

export interface EmbeddedRedis {
  /** At most 103 bytes, for any path of the data directory. */
  socketPath: string
  /** True when it already ran. */
  adopted: boolean
  /** Its directory, to be checked while it runs. */
  directory: StoreDirectory
  /** Why it does not answer, as far as visible from outside, in one line for people. */
  describe(): string
  /**
   * Writes all data of the store into its recreated directory, and starts a store on it; the store that lost its files
   * ends. Writes wait in the meantime.
   * @throws Error when it cannot: the store continues unchanged
   */
  rescue(): Promise<void>
  /**
   * Ends the watch and, if `whenLast` allows it, the store. With `rewrites` the store rewrites its file first if that
   * pays, for 5 s at most. Resolves once the store's process has gone.
   * @returns whether the store was stopped; throws what `whenLast` threw or why the store refused
   */
  stop(options: { whenLast: () => Promise<boolean>; rewrites?: boolean }): Promise<boolean>
}

/**
 * Adopts the store of `dataDir` or starts one, and keeps it running until stop().
 * @throws Error when a living redis does not answer, none can be started, or the directory is another redis's
 */
export async function startEmbeddedRedis(options: EmbeddedRedisOptions): Promise<EmbeddedRedis> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 })
  const path = realpathSync(options.dataDir)
  const { socketPath, forget } = reachableSocket(path)
  const stopping = new AbortController()
  const { durability, log, port, memoryBytes, mustHold } = options
  const place: Place = {
    directory: path,
    socketPath,
    durability,
    log,
    signal: stopping.signal,
    port,
    memoryBytes,
    mustHold,
  }
  const opened = await openRedis(place).catch((error: unknown) => {
    forget()
    throw error
  })
  const watch = await watchStore(place, opened.client, options)
  const directory = new StoreDirectory({ path, processId: () => watch.processId(), isOwn: true })
  const rescue = (): Promise<void> => watch.rescue(directory)
  const endLogWatch = watchRedisLog(path, log)
  const sweep = setInterval(() => sweepOldEnds(path, log), SWEEP_MS).unref()
  sweepOldEnds(path, log)
  return {
    socketPath,
    adopted: opened.adopted,
    directory,
    describe: () => describeSilence(path),
    rescue,
    async stop({ whenLast, rewrites = false }) {
      stopping.abort()
      clearInterval(sweep)
      endLogWatch()
      const running = await watch.end()
      try {
        if (running === null || !(await whenLast())) return false
        const fault = directory.look()
        if (rewrites && fault === null && (await rewriteIfWorth(running.client, REWRITE_MS_MAX)))
          log.info({}, 'The append-only file was rewritten for a faster start')
        // If it ends, its data is lost.
        if (fault?.kind === 'deleted') await rescue()
        else if (!(await shutDown(place, running.client, fault?.kind === 'damaged'))) return false
        if (directory.look() === null) await confirmSoon(directory)
        return true
      } finally {
        running?.spare.disconnect()
        running?.client.disconnect()
        forget()
      }
    },
  }
}

/** The sums of a large file that was never summed take minutes, which a stop does not have. */
async function confirmSoon(directory: StoreDirectory): Promise<void> {
  const limit = new AbortController()
  const isOver = pause(SUMS_MS_MAX, undefined, { signal: limit.signal }).catch(() => undefined)
  await Promise.race([directory.confirm(Date.now()), isOver])
  limit.abort()
}

function sweepOldEnds(path: string, log: StoreLog): void {
  try {
    const files = removeOldEnds(path, Date.now())
    if (files.length > 0) log.info({ files }, 'Old unreadable ends of append-only files were removed')
  } catch (error) {
    // The check of the directory reports that it was deleted or moved.
    log.warn({ reason: (error as Error).message }, 'Old unreadable ends could not be looked for')
  }
}

/** State of the running store. */
interface Running extends RescueLines {
  readonly processId: number | null
}

/** Follows one open connection. Its end is the end of the store, which is opened again until it answers. */
async function watchStore(place: Place, first: Redis, { onDown, onUp, onRemade }: EmbeddedRedisOptions) {
  let running: Running | null = null
  let failures = 0
  let recovered: Promise<void> = Promise.resolve()

  async function follow(client: Redis): Promise<void> {
    const sinceMs = performance.now()
    const next = await askRunning(client)
    if (client.status === 'end') throw new Error('Redis exited right after its start')
    running = next
    client.once('end', () => {
      running = null
      next.spare.disconnect()
      if (place.signal.aborted) return
      failures = performance.now() - sinceMs > WELL_MS ? 0 : failures + 1
      if (isTold(failures)) {
        const sentence = failures < SERIES_MIN ? 'Lost redis' : 'Redis ends repeatedly'
        place.log.error({ failures, reason: describeEnd(place.directory, next.processId) }, sentence)
      }
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
        await follow((await openRedis(place)).client)
        return onUp()
      } catch (error) {
        if (place.signal.aborted) return
        failures += 1
        if (isTold(failures))
          place.log.error({ reason: (error as Error).message, failures }, 'Could not restart Redis: retrying')
      }
    }
  }

  await follow(first)
  return {
    processId: () => running?.processId ?? null,
    async rescue(directory: StoreDirectory): Promise<void> {
      if (running === null) throw new Error('Redis is unavailable')
      const { processId, client } = running
      await rescueStore(running, place.directory)
      directory.forget()
      await onRemade?.(client)
      await askToLeave(client)
      await gone(() => processId === null || strandedRedisPid(place.directory) !== processId)
    },
    /** The store, if it runs, once no restart is in progress. */
    async end(): Promise<Running | null> {
      await recovered
      return running
    },
  }
}

/** The first failures of a series are logged, then ever fewer: 1, 2, 4, 8 and so on. */
function isTold(failures: number): boolean {
  return failures === 0 || Number.isInteger(Math.log2(failures))
}

/** A second connection is opened while there is a socket; and which process it is can be asked while it answers. */
async function askRunning(client: Redis): Promise<Running> {
  const spare = client.duplicate()
  spare.on('error', () => undefined)
  await spare.connect()
  const processId = /process_id:(\d+)/.exec(await client.info('server'))?.[1]
  return { client, spare, processId: processId === undefined ? null : Number(processId) }
}

/**
 * Asks the store to write everything and leave, and waits until its lock is free: then its process has gone.
 * In: `isDamaged`, its files are not what it wrote.
 * @returns false when its file does not hold everything yet: it is left running then
 */
async function shutDown({ directory, durability, log }: Place, client: Redis, isDamaged: boolean): Promise<boolean> {
  const breaches = await setRight(client, durability)
  for (const { name, is, must } of breaches) log.warn({ name, is, must }, 'Redis was repaired before its end')
  if (isDamaged) await client.bgrewriteaof()
  const isBehind = isDamaged || breaches.some(({ name }) => name === 'appendonly')
  if (isBehind && !(await writtenWhole(client, WHOLE_MS_MAX))) {
    log.warn(
      { directory },
      'Redis is left running: its file does not hold everything yet. The next start adopts it; do not end it before that',
    )
    return false
  }
  await askToLeave(client)
  await gone(async () => {
    const lock = await lockDirectory(directory)
    await lock?.release()
    return lock !== null && livingRedisPid(directory) === null
  })
  return true
}

/** Asks for its end. Throws Error when it refuses in words. */
async function askToLeave(client: Redis): Promise<void> {
  const refusal = await client.call('SHUTDOWN', 'NOSAVE', 'NOW').then(
    () => null,
    // A closed connection is the answer; only a reply in words is a refusal.
    (error: Error) => (error.name === 'ReplyError' ? error : null),
  )
  if (refusal) throw refusal
}

async function gone(hasGone: () => boolean | Promise<boolean>): Promise<void> {
  for (let step = 0; step < SHUTDOWN_STEPS_MAX; step++) {
    if (await hasGone()) return
    await pause(STEP_MS)
  }
  throw new Error('Redis did not exit after SHUTDOWN')
}

/** A path of the socket that connect(2) accepts: the plain one, or a short link if that is too long. */
function reachableSocket(directory: string): { socketPath: string; forget: () => void } {
  const plain = join(directory, 'redis.sock')
  if (Buffer.byteLength(plain) <= SOCKET_PATH_BYTES_MAX) return { socketPath: plain, forget: () => undefined }
  // A fresh directory that only this user can enter, because others could create a predictable name first.
  const short = mkdtempSync('/tmp/redis-')
  symlinkSync(directory, join(short, 'at'))
  return { socketPath: join(short, 'at', 'redis.sock'), forget: () => rmSync(short, { recursive: true, force: true }) }
}
