/**
 * process - brings up the one redis-server of a directory: adopts it, or starts it under the directory's lock.
 *
 * The lock (directory-lock.ts) is inherited by the redis, so it is free only when no redis is left. Before a Redis is
 * spawned its files are checked (store-mark.ts): it is not started if it would begin empty, or with less data than
 * before.
 */
import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { cutUnreadableEnd, damageOfBase, isBadFormat, isDamagedBase } from './aof-end.ts'
import { readAofFiles, removeHalfWritten } from './aof-files.ts'
import { compareSums, dropMissingSums, makeDamageError } from './aof-sums.ts'
import { type Durability, findRedisBinary, redisArguments, type StoreLog } from './binary.ts'
import { describeProcess, logTail } from './crash-diagnostics.ts'
import { type DirectoryLock, lockDirectory } from './directory-lock.ts'
import { setRight, writtenWhole } from './durable.ts'
import { livingRedisPid, probeRedis, strandedRedisPid } from './probe.ts'
import { openRedisLog } from './redis-log.ts'
import { faultOfFiles, readMark } from './store-mark.ts'
import { readUnmarked } from './unmarked.ts'

const STEP_MS = 20
/** Redis logs a few lines after the reason of its end. */
const LINES_OF_AN_END = 5
/** 15 s for a starter that holds the lock to bring its redis up. */
const STEPS_MAX = 750
/** 30 minutes for a redis that reads its files; it answers LOADING all the while. */
const LOADING_STEPS_MAX = 90_000
/** Two unanswered probes of 2.5 s: frozen. */
const SILENT_MAX = 2
/** As long as a redis may read its files, it may write them. */
const WHOLE_MS_MAX = 1_800_000

/** Where a store lives and how it must behave. */
export interface Place {
  directory: string
  socketPath: string
  durability: Durability
  log: StoreLog
  /** Ends every wait for the store; a started Redis continues on its own. */
  signal: AbortSignal
  /** Port of the loopback beside the socket; none by default. */
  port?: number | undefined
  /** Memory that the store may use; half of the machine's by default. */
  memoryBytes?: number | undefined
  /** Whether the directory is known to have held a store, asked before one is started in it. */
  mustHold?: (() => boolean) | undefined
}

/**
 * Adopts a running Redis, or starts one under the lock, or waits for the holder of the lock.
 * @returns an open connection to the store
 * @throws Error when a living redis does not answer, or none can be started; AbortError when `signal` ends the wait
 */
export async function openRedis(place: Place): Promise<{ client: Redis; adopted: boolean }> {
  let silent = 0
  let loading = 0
  for (let step = 0; step < STEPS_MAX; ) {
    const probe = await probeRedis(place.socketPath, place.directory)
    if (probe.state === 'ready') return { client: await adopt(place, probe.client), adopted: true }
    if (probe.state === 'foreign')
      throw new Error(`The Redis on ${place.socketPath} uses the directory ${probe.directory}`)
    if (probe.state === 'silent' && ++silent >= SILENT_MAX) throw notAnswering(place)
    if (probe.state === 'loading' && ++loading >= LOADING_STEPS_MAX) throw notAnswering(place)
    if (probe.state === 'absent') {
      const lock = await lockDirectory(place.directory)
      const client = lock === null ? null : await startUnder(lock, place)
      if (client !== null) return { client, adopted: false }
      step += 1
    }
    await pause(STEP_MS, undefined, { signal: place.signal })
  }
  throw notAnswering(place)
}

/**
 * Makes an adopted store as strict as we need; it may have been started with another durability, or changed by hand.
 */
async function adopt(place: Place, client: Redis): Promise<Redis> {
  const { socketPath, durability, log, port = 0, memoryBytes } = place
  const breaches = await setRight(client, durability)
  for (const { name, is, must } of breaches) log.warn({ name, is, must }, 'The running Redis was repaired')
  if (breaches.some(({ name }) => name === 'appendonly')) {
    log.warn({}, 'Writing to disk first what Redis accepted without an append-only file')
    if (!(await writtenWhole(client, WHOLE_MS_MAX))) throw notAnswering(place)
  }
  if (memoryBytes !== undefined) await client.config('SET', 'maxmemory', memoryBytes)
  if (port !== 0) await client.config('SET', 'port', port)
  log.info({ socketPath }, 'Adopted the running redis')
  return client
}

/** Starts a Redis while holding the lock; null if another process has just started one. */
async function startUnder(lock: DirectoryLock, place: Place): Promise<Redis | null> {
  const { directory, log, socketPath } = place
  try {
    const probe = await probeRedis(socketPath, directory)
    if (probe.state === 'ready') probe.client.disconnect()
    if (probe.state !== 'absent') return null
    if (livingRedisPid(directory) !== null) throw notAnswering(place)
    refuseWrongFiles(place)
    await refuseDamage(place)
    const files = removeHalfWritten(directory)
    if (files.length > 0) log.info({ files }, 'Incomplete writes of a killed Redis were removed')
    const isUnmarked = readMark(directory) === null && readAofFiles(directory) !== null
    const { command, version } = await findRedisBinary()
    const client = await spawnRedis(command, lock, place).catch(async (error: unknown) => {
      const log = logTail(directory, LINES_OF_AN_END)
      if (isDamagedBase(log)) throw damageOfBase(directory, readAofFiles(directory))
      if (!isBadFormat(log) || !cutEnd(place)) throw error
      return await spawnRedis(command, lock, place)
    })
    dropSums(place)
    log.info({ binary: command, version, socketPath }, 'Started redis')
    if (isUnmarked)
      log.warn(
        { ...(await readUnmarked(client)) },
        'The store was started without store-mark: data accepted after its newest commit may be missing',
      )
    return client
  } finally {
    await lock.release()
  }
}

/** Moves away an unreadable end that held nothing accepted. Returns whether there was one. */
function cutEnd({ directory, log }: Place): boolean {
  const files = readAofFiles(directory)
  const cut =
    files === null ? null : cutUnreadableEnd(directory, { files, mark: readMark(directory), nowMs: Date.now() })
  if (cut !== null)
    log.warn({ ...cut }, 'The append-only file had an unreadable end: it was moved into a file of its own')
  return cut !== null
}

/** Throws the sentence if a Redis would begin empty, or with less than was acknowledged. */
function refuseWrongFiles({ directory, durability, log, mustHold }: Place): void {
  const stranded = strandedRedisPid(directory)
  if (stranded !== null)
    throw new Error(
      `redis-server ${stranded} has the only copy of the deleted data of ${directory}: no second Redis ` +
        `is started. Copy its files from /proc/${stranded}/fd, then stop the process`,
    )
  const fault = faultOfFiles(directory, {
    files: readAofFiles(directory),
    mark: readMark(directory),
    mustHold: mustHold?.() ?? false,
  })
  if (fault === null) return
  if (!fault.isCut || durability !== 'memory') throw new Error(fault.sentence)
  log.warn({ reason: fault.sentence }, 'The end of what was accepted is missing, as DURABILITY=memory allows')
}

/** Throws the sentence if a Redis would load other bytes than were written. */
async function refuseDamage({ directory, durability, log }: Place): Promise<void> {
  const isMarked = readMark(directory) !== null
  for (const found of await compareSums(directory, readAofFiles(directory)?.named ?? [])) {
    const { path, damaged, missing } = found
    if (damaged.length > 0) {
      const damage = makeDamageError(directory, found)
      if (durability !== 'memory' || !found.isLastOnly) throw damage
      log.warn({ reason: damage.message }, 'The end of what was accepted is damaged, as DURABILITY=memory allows')
    }
    // With a mark, a truncated file has already been refused.
    if (missing > 0 && !isMarked)
      log.error({ path, missing }, 'Bytes of accepted data are missing at the end of an append-only file')
  }
}

/** A Redis that runs is not given up because of its sums. */
function dropSums({ directory, log }: Place): void {
  try {
    dropMissingSums(directory, readAofFiles(directory)?.named ?? [])
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'Checksums of missing data could not be removed')
  }
}

async function spawnRedis(command: string, lock: DirectoryLock, place: Place): Promise<Redis> {
  const output = openRedisLog(place.directory)
  const { directory, durability, port, memoryBytes } = place
  const more = { ...(port !== undefined && { port }), ...(memoryBytes !== undefined && { memoryBytes }) }
  const child = spawn(command, redisArguments(directory, durability, more), {
    cwd: directory,
    detached: true,
    stdio: ['ignore', output, output, lock.fd],
  })
  closeSync(output)
  child.unref()
  let ended: string | null = null
  child.once('error', (error) => {
    ended = error.message
  })
  child.once('exit', (code, signal) => {
    ended = `exit ${code ?? signal}`
  })
  for (let step = 0; step < LOADING_STEPS_MAX; step++) {
    const probe = await probeRedis(place.socketPath, directory)
    if (probe.state === 'ready') return probe.client
    if (ended !== null) throw new Error(`${command} did not start: ${ended}\n${logTail(directory, 5)}`)
    await pause(STEP_MS, undefined, { signal: place.signal })
  }
  throw notAnswering(place)
}

function notAnswering({ directory }: Place): Error {
  const pid = livingRedisPid(directory)
  const who = pid === null ? 'A process that holds' : `redis-server ${pid} in`
  const seen = pid === null ? '' : ` (${describeProcess(pid)})`
  return new Error(
    `${who} ${directory} does not answer${seen}: no second Redis is started, because that would lose data. ` +
      `See ${join(directory, 'redis.log')}; if the process is stuck, stop it, then start again`,
  )
}
