/**
 * store-watch - the store, checked every two seconds while it runs: whether it is unchanged since it was opened
 *
 * One round trip (INFO, CONFIG GET, the installation's id) and a few calls of stat. A fault that breaks the promise of
 * a 200 (a setting changed by hand, a directory that was deleted, moved or damaged, a missing installation) stops
 * every request that would change something, at once, and is repaired if the store is embedded. The fill level of
 * the store and its disk is reported at 70 %, and once new mail is refused; a store that does not answer is
 * described as far as visible.
 *
 * States: sound | faulty (with a sentence; no commands to actors, no deliveries) | lost (the service ends).
 */

import { readFileSync, statSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { ClusterLog } from '../../cluster/cluster-log.ts'
import type { Durability } from '../../cluster/embedded/binary.ts'
import { describeProcess } from '../../cluster/embedded/crash-diagnostics.ts'
import { DURABLE_SETTINGS, findBreaches, isRewriting, setRight } from '../../cluster/embedded/durable.ts'
import { type DirectoryFault, StoreDirectory } from '../../cluster/embedded/store-directory.ts'
import { readMark } from '../../cluster/embedded/store-mark.ts'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { hiddenFault } from '../../cluster/redis/hidden-settings.ts'
import { breachSentence } from '../../cluster/redis/settings.ts'
import { keptFree, readDisk } from '../content/disk-space.ts'
import { type CapacityShortage, type FillLevel, FULL_SHARE, fillLevel, parseFill } from './memory-pressure.ts'

/** For each primary if answers wait for a replica: docs/operate/cluster.md. */
const REPLICAS_WANTED = 2
const LOOK_MS = 2_000
/** Number of unanswered checks after which the store counts as silent: four to six seconds. */
const UNANSWERED_MAX = 3
/** A full disk counts as usable again once its free space exceeds the limit by this factor. */
const DISK_SLACK = 1.1
const LOCATED_SETTINGS = ['dir', 'appenddirname', 'appendfilename'] as const
const WRITES_ANEW = 'Redis is writing its data to a new append-only file; mail is accepted again afterwards'

/** Repairs of the embedded store. */
export interface OwnStore {
  readonly directory: StoreDirectory
  rescue(): Promise<void>
  /** Why it does not answer, as far as can be seen from outside. */
  describe(): string
}

export interface StoreWatch {
  /** Used share of `maxmemory` when last seen; 0 if it has none. */
  readonly share: number
  /** The resource that new mail lacks, or null. */
  readonly lack: CapacityShortage | null
  /** Why nothing is accepted now; null while the store syncs acknowledged writes. */
  readonly fault: string | null
  /** Each primary of a cluster; empty for a single Redis. */
  readonly nodes: readonly RedisFigure[]
  stop(): void
}

/** A primary of a cluster as it was seen last. */
export interface RedisFigure {
  /** `host:port`. */
  readonly name: string
  readonly isUp: boolean
  /** Used share of its `maxmemory`; 0 if it has none. */
  readonly share: number
  /** Replicas that are connected and in sync, as it reports. */
  readonly replicas: number
  /** As many as the durability wants. */
  readonly replicasWanted: number
  /** Its clock less that of this machine, ms; half of the round trip is uncertain. */
  readonly clockOffMs: number
}

/** The watch of one Redis. */
export interface OneWatch extends StoreWatch, Omit<RedisFigure, 'name'> {}

export interface WatchOptions {
  readonly redis: () => Redis
  readonly durability: Durability
  readonly log: ClusterLog
  /** The embedded store; null for an external store. */
  readonly own: OwnStore | null
  /** The required installation id of the store. Null for any. */
  readonly installationId: string | null
  /** The store has a different installation than before, or none. Takes its current id. */
  readonly onLost: (id: string | null) => void
  /** Called after each check without a fault. */
  readonly onWell?: () => void
  /** Called as soon as the store is faulty, and when it is sound again. */
  readonly onFault?: (isFaulty: boolean) => void
  /** In place of our own. */
  readonly fullShare?: number
}

/** Looks at once, and again until it is stopped. A store that does not answer is as it was, but for its directory. */
export async function watchStore(options: WatchOptions): Promise<OneWatch> {
  const watch = new Watch(options)
  await watch.look()
  const timer = setInterval(() => void watch.look(), LOOK_MS).unref()
  return {
    get share() {
      return watch.share
    },
    get lack() {
      return watch.lack
    },
    get fault() {
      return watch.fault
    },
    get isUp() {
      return watch.isUp
    },
    get replicas() {
      return watch.replicas
    },
    replicasWanted: options.durability === 'replica' ? REPLICAS_WANTED : 0,
    get clockOffMs() {
      return watch.clockOffMs
    },
    nodes: [],
    stop: () => clearInterval(timer),
  }
}

/**
 * A store of another process: its process, its directory if on this machine, and the embedded store if we run it.
 */
interface Located {
  readonly processId: string
  readonly directory: StoreDirectory | null
  readonly ownPath: string | null
}

/** The results of one round trip. */
interface Answers {
  readonly info: string
  /** Null if the store does not allow CONFIG. */
  readonly settings: readonly string[] | null
  readonly id: string | null
}

class Watch {
  share = 0
  replicas = 0
  clockOffMs = 0
  fault: string | null = null
  private level: FillLevel = 'roomy'
  private isDiskFull = false
  private isAsking = false
  /** Times in a row that the clock came by and there was no answer. */
  private unanswered = 0
  private readonly options: WatchOptions
  /** An external store on this machine: its directory, and the process through which it was found. */
  private located: Located | null = null
  /** The file does not hold everything before a rewrite has ended. */
  private isBehind = false
  private isLooking = false
  /** Found once: a store of others that does not allow CONFIG. */
  private isHidden = false

  constructor(options: WatchOptions) {
    this.options = options
  }

  get lack(): CapacityShortage | null {
    if (this.share >= (this.options.fullShare ?? FULL_SHARE)) return 'memory'
    return this.isDiskFull ? 'disk' : null
  }

  get isUp(): boolean {
    return this.unanswered === 0
  }

  async look(): Promise<void> {
    if (this.isAsking) this.noteSilence()
    if (this.isLooking) return
    this.isLooking = true
    try {
      await this.lookOnce()
    } catch (error) {
      this.options.log.warn({ reason: (error as Error).message }, 'The store could not be checked')
    } finally {
      this.isLooking = false
    }
  }

  private async lookOnce(): Promise<void> {
    const { own } = this.options
    const path = own?.directory.path ?? this.located?.ownPath ?? null
    if (path !== null) await this.noteDisk(path)
    if (own !== null && (await this.isWrong(own.directory.look()))) return
    const answers = await this.ask()
    if (answers !== null && own === null) await this.locate(answers.info)
    const directory = own?.directory ?? this.located?.directory ?? null
    if (own === null && (await this.isWrong(directory?.look() ?? null))) return
    if (answers === null) return
    this.noteFill(answers.info)
    const written = Number(/^aof_current_size:(\d+)/m.exec(answers.info)?.[1] ?? 0)
    const isStill = !this.isBehind && !isRewriting(answers.info)
    if (isStill && (await this.isWrong(directory?.lookAtBytes(written) ?? null))) return
    await this.judge(answers, directory)
  }

  private async isWrong(wrong: DirectoryFault | null): Promise<boolean> {
    if (wrong === null) return false
    const { own } = this.options
    this.note(formatFault(wrong, own !== null))
    if (own !== null) await this.mend(wrong, own)
    return true
  }

  /** Judges a store with intact files by the answers. */
  private async judge({ info, settings, id }: Answers, directory: StoreDirectory | null): Promise<void> {
    const { durability, installationId, own, redis, onLost, onWell } = this.options
    if (installationId !== null && id !== installationId) {
      this.note('The store has a different installation than before, or none')
      return onLost(id)
    }
    if (settings === null) {
      const hidden = await hiddenFault(redis(), durability, { info, proofs: 1 })
      this.note(hidden)
      if (hidden === null) onWell?.()
      return
    }
    const breaches = findBreaches(settings, durability)
    if (breaches.some(({ name }) => name === 'appendonly')) this.isBehind = true
    const sentence = breachSentence(breaches, durability)
    if (sentence !== null) {
      this.note(own === null ? sentence : `${sentence}. Repairing it now`)
      if (own !== null) await setRight(redis(), durability)
      return
    }
    if (this.isBehind && !(await this.hasCaughtUp(info))) return this.note(WRITES_ANEW)
    // The first sums of large files take minutes, and the next looks must not wait for them.
    void directory?.confirm(Date.now())
    this.note(null)
    onWell?.()
  }

  private async hasCaughtUp(info: string): Promise<boolean> {
    if (isRewriting(info)) return false
    this.isBehind = !/^aof_last_bgrewrite_status:ok/m.test(info)
    if (this.isBehind && this.options.own !== null) await this.options.redis().bgrewriteaof()
    return !this.isBehind
  }

  /** Brings the files back that the store does not know to be missing. */
  private async mend({ kind }: DirectoryFault, own: OwnStore): Promise<void> {
    const { redis, log } = this.options
    if (kind === 'damaged') {
      this.isBehind = true
      const refusal = await redis()
        .bgrewriteaof()
        .then(() => null, messageOf)
      if (refusal === null) own.directory.forget()
    }
    if (kind !== 'deleted') return
    const refusal = await own.rescue().then(() => null, messageOf)
    if (refusal === null)
      log.warn(
        { path: own.directory.path },
        'All that the store holds was written into a new directory; large content in files is gone',
      )
    else log.error({ reason: refusal }, 'The store could not be written to a new directory')
  }

  private async ask(): Promise<Answers | null> {
    const pipeline = this.options.redis().pipeline()
    pipeline.call('INFO', 'server', 'memory', 'persistence', 'replication')
    // One of several need not hold it, and would refuse to be asked for it.
    if (this.options.installationId === null) pipeline.ping()
    else pipeline.hget(CONF_KEY, 'id')
    if (!this.isHidden) pipeline.call('CONFIG', 'GET', ...DURABLE_SETTINGS)
    this.isAsking = true
    const askedAtMs = Date.now()
    const answers = await pipeline.exec().catch(() => null)
    const atMs = (askedAtMs + Date.now()) / 2
    this.isAsking = false
    const [refusal = null] = answers?.[2] ?? []
    this.isHidden ||= this.options.own === null && refusal?.name === 'ReplyError'
    if (answers === null || answers.slice(0, this.isHidden ? 2 : 3).some(([error]) => error !== null)) {
      this.noteSilence()
      return null
    }
    if (this.unanswered >= UNANSWERED_MAX) this.options.log.warn({}, 'The store answers again')
    this.unanswered = 0
    const [info, id, found] = answers.map(([, value]) => value) as [string, string | null, string[]]
    const settings = this.isHidden ? null : found
    const micros = /^server_time_usec:(\d+)/m.exec(info)?.[1]
    if (micros !== undefined) this.clockOffMs = Number(micros) / 1_000 - atMs
    return { info, settings, id }
  }

  private noteFill(info: string): void {
    const { log, fullShare = FULL_SHARE } = this.options
    this.share = parseFill(info)
    this.replicas = parseReplicas(info)
    const { share, level: before } = this
    this.level = fillLevel(share, before, fullShare)
    if (this.level === before) return
    if (before === 'full') log.info({ share }, 'Store has room again')
    if (this.level === 'full') log.warn({ share }, 'Store is nearly full: new mail is refused')
    if (this.level === 'filling')
      log.warn({ share }, `Store fills up: from ${fullShare * 100} % on new mail is refused`)
  }

  /** The disk of the embedded store, also if `sendwright store` runs it: a full disk ends Redis. */
  private async noteDisk(path: string): Promise<void> {
    const disk = await readDisk(path)
    if (disk === null) return
    const { log } = this.options
    const before = this.isDiskFull
    this.isDiskFull = disk.free < keptFree(disk.bytes) * (before ? DISK_SLACK : 1)
    const freeShare = disk.free / disk.bytes
    if (this.isDiskFull && !before)
      log.warn({ freeShare, path }, "The store's disk is nearly full: new mail is refused")
    if (!this.isDiskFull && before) log.info({ freeShare, path }, "The store's disk has room again")
  }

  /** Another missing answer. After a time the silence is reported, with the state visible from outside. */
  private noteSilence(): void {
    this.unanswered += 1
    if (this.unanswered !== UNANSWERED_MAX) return
    const { own, log } = this.options
    const found = this.located?.directory
      ? describeProcess(Number(this.located.processId))
      : 'It is not on this machine'
    log.error({ reason: own?.describe() ?? found }, 'The store does not answer')
  }

  /** Finds the directory of an external store, if it is on this machine and this user can read it. */
  private async locate(info: string): Promise<void> {
    const processId = /^process_id:(\d+)/m.exec(info)?.[1] ?? ''
    if (this.located?.processId === processId) return
    const answer = this.isHidden
      ? []
      : ((await this.options.redis().call('CONFIG', 'GET', ...LOCATED_SETTINGS)) as string[])
    const value = (name: string): string => answer[answer.indexOf(name) + 1] ?? ''
    const [path, directory, file] = LOCATED_SETTINGS.map(value) as [string, string, string]
    const isHere = worksIn(processId, path)
    const options = { path, processId: () => Number(processId), isOwn: false, names: { directory, file } }
    const ownPath = isHere && readMark(path) !== null ? path : null
    this.located = { processId, directory: isHere ? new StoreDirectory(options) : null, ownPath }
  }

  private note(fault: string | null): void {
    const { log, onFault } = this.options
    if (fault === this.fault) return
    const before = this.fault
    this.fault = fault
    if (fault === null) log.warn({}, 'Store is durable again')
    else log.error({ reason: fault }, 'Store is not durable: rejecting all requests')
    if ((before === null) !== (fault === null)) onFault?.(fault !== null)
  }
}

/** The message to the operator about a directory. */
function formatFault({ kind, sentence }: DirectoryFault, isOwn: boolean): string {
  if (kind === 'moved') return sentence
  if (kind === 'deleted' && isOwn) return `${sentence}: rewriting all data of Redis into it`
  if (isOwn) return `${sentence}: ${WRITES_ANEW}`
  if (kind === 'damaged')
    return `${sentence}: run BGREWRITEAOF, and Redis writes what it holds into new files; mail is taken again after that`
  return (
    `${sentence}, and what Redis holds is in memory alone: do not stop it, copy it with redis-cli --rdb <file> to another ` +
    'disk, then create the directory again and start Redis on the copy'
  )
}

function worksIn(processId: string, path: string): boolean {
  try {
    if (!/^(redis|valkey)/.test(readFileSync(`/proc/${processId}/comm`, 'utf8'))) return false
    const [here, there] = [statSync(`/proc/${processId}/cwd`), statSync(path)]
    return here.dev === there.dev && here.ino === there.ino
  } catch {
    return false
  }
}

function messageOf(error: Error): string {
  return error.message
}

/** Replicas that follow within `min-replicas-max-lag`; if that is not set, the connected ones. */
function parseReplicas(info: string): number {
  const inStep = /^min_slaves_good_slaves:(\d+)/m.exec(info) ?? /^connected_slaves:(\d+)/m.exec(info)
  return Number(inStep?.[1] ?? 0)
}
