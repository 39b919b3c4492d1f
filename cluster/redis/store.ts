/**
 * store - the store over Redis: connections, scripts, and the meaning of their answers.
 *
 * There are separate connections for commits and heartbeats, for reads, for the caller's own commands (`views`), for
 * enqueues and for replies from the first enqueue on, and for subscriptions, if there are any. A slow read or a large
 * value delays no commit.
 *
 * Guarantees: a commit whose connection ended is `lost`, never refused, and after a reconnect the old connection is
 * ended in Redis before anything is sent, so that the first copy of a commit cannot run after the second was answered.
 * A connection on which a heartbeat stays unanswered is given up. A store whose settings break the durability level is
 * not used.
 */
import type { Redis } from 'ioredis'
import type { FactValue, Signal, ViewFact } from '../behaviour.ts'
import type { Durability } from '../embedded/binary.ts'
import { fencedKey, metaKey, RELEASED_CHANNEL, toldKey, topicName, WORKERS_KEY } from '../keyspace.ts'
import type {
  Acquired,
  Beat,
  Commit,
  Cursors,
  Enqueue,
  Enqueued,
  EntriesRequest,
  InboxEntry,
  Lag,
  Listening,
  Meta,
  Receivers,
  Replies,
  RepliesRequest,
  Store,
  Verdict,
  WorkerRecord,
} from '../store.ts'
import { factValues, parseFlatPairs, parseMeta, parseVerdict } from './answer.ts'
import { KeyTypeCache } from './key-type-cache.ts'
import { RedisLink, runScript, type Sending, type StoreAnswer } from './link.ts'
import { RedisMailbox } from './mailbox.ts'
import { mergedOf, packCommit, packRead, scriptBytes } from './pack.ts'
import { META_FIELDS } from './read-script.ts'
import { ReplyStream } from './reply-stream.ts'
import { ACQUIRE, COMMIT, FREEING_COMMIT, HEARTBEAT, READ, RELEASE, RETIRE, SCRIPTS, type Script } from './scripts.ts'
import { checkSettings, requireInfo, StoreRefused } from './settings.ts'
import { type Heard, listenToRedis, RedisSignals } from './subscriber.ts'

/** A connection on which a heartbeat waits this long is dead. */
const BEAT_SILENT_MS = 10_000
/**
 * If a read waits this long, its connection is dead. Shorter than the time after which a shard that waits for it
 * counts as stuck.
 */
const READ_SILENT_MS = 5_000
/** The first connection must be there within this. */
const OPEN_MS_MAX = 10_000
const VIEWS_SILENT_MS = 30_000 // A rewrite of files, many values.
/** The first enqueue waits for its connection this long. */
const ENQUEUE_OPEN_MS = 1_000

export interface RedisStoreOptions {
  /** `redis://` or `rediss://` address, or the path of a unix socket. */
  readonly address: string
  readonly durability: Durability
  /** A heartbeat without an answer for this long ends its connection; 10 s. */
  readonly beatSilentMs?: number
  /** The commit connection is open, at first and after each reconnect. */
  onUp?(): void
  /** The commit connection has ended. */
  onDown?(): void
  /** After a reconnect the store breaks its durability level: it stays down. */
  onRefused?(error: Error): void
  /** Called for a read that failed in the store, with the first word of the error. */
  onReadFailed?(word: string): void
  /** One node of a cluster; absent for a single server. */
  readonly cluster?: ClusterNode
}

/** Events about other nodes for a node of a cluster. */
export interface ClusterNode {
  /** Sends a redirected command to the right node; null if the refusal is not a redirection. */
  sendOn(refusal: string, sending: Sending): Promise<StoreAnswer> | null
  /** The store answered MOVED: the known places of slots are out of date. */
  moved(): void
}

/**
 * Connects and checks the store.
 * @throws StoreRefused when its settings break the durability level; Error when it does not answer within 10 s
 */
export async function connectRedisStore(options: RedisStoreOptions): Promise<RedisStore> {
  if (options.cluster === undefined) await requireInfo(options.address)
  const store = new RedisStore(options)
  try {
    await store.ready()
  } catch (error) {
    store.close()
    throw error
  }
  return store
}

export class RedisStore implements Store {
  private readonly options: RedisStoreOptions
  private readonly commits: RedisLink
  private readonly reads: RedisLink
  private readonly own: RedisLink
  private readonly signals: RedisSignals
  private enqueues: RedisLink | null = null
  private readonly mailbox: RedisMailbox
  private readonly listenings: Listening[] = []
  /** By the worker that listens. */
  private readonly told = new Map<string, ReplyStream>()
  private readonly keys = new KeyTypeCache()
  private known = { clientId: 0, runId: '' }
  private lastAnswerMs = performance.now()
  private isOpen = false

  constructor(options: RedisStoreOptions) {
    this.options = options
    const { address } = options
    this.commits = new RedisLink({
      address,
      name: 'commit',
      prepare: (client) => this.prepare(client),
      onUp: () => options.onUp?.(),
      onDown: () => options.onDown?.(),
      ...options.cluster,
    })
    this.reads = this.linkOf('read', READ_SILENT_MS)
    this.own = this.linkOf('views', VIEWS_SILENT_MS)
    this.signals = new RedisSignals(address)
    const isOfCluster = options.cluster !== undefined
    this.mailbox = new RedisMailbox({ reads: this.reads, enqueues: () => this.enqueueLink(), isOfCluster })
  }

  async ready(): Promise<void> {
    await Promise.all([this.commits, this.reads, this.own].map((link) => link.ready(OPEN_MS_MAX)))
    this.isOpen = true
  }

  close(): void {
    for (const link of [this.commits, this.reads, this.own, this.enqueues]) link?.close()
    for (const listening of this.listenings) listening.close()
    this.signals.close()
  }

  /** Whether commits and reads can be sent now. */
  get connected(): boolean {
    return this.commits.up && this.reads.up
  }

  /** For how long each connection that is in use has owed an answer. */
  get lags(): readonly Lag[] {
    const lags = [this.commits, this.reads, this.own, ...(this.enqueues === null ? [] : [this.enqueues])]
    const told = [...this.told.values()].flatMap(({ lagMs }) => (lagMs === null ? [] : [lagMs]))
    return [
      ...lags.map(({ name, lagMs }) => ({ connection: name, ms: lagMs })),
      ...told.map((ms) => ({ connection: 'told', ms })),
    ]
  }

  /** Opens the connections to other owners early, so that a process that only asks knows at once whether they work. */
  prepareToAsk(worker: string): void {
    this.told.get(worker)?.begin()
    void this.openEnqueues()
  }

  /** The commit connection as others can look for it, and the run of the store that knows it. */
  get identity(): { readonly clientId: number; readonly runId: string } {
    return this.known
  }

  /** Monotonic time (`performance.now`) of the last answered heartbeat or commit. */
  get answeredAtMs(): number {
    return this.lastAnswerMs
  }

  /** A client for commands that are not the runtime's. Its errors name no arguments. */
  get views(): Redis {
    return this.own.client
  }

  async commit(commit: Commit): Promise<Verdict> {
    const { shard } = commit
    const merged = mergedOf(commit)
    const looked = this.keys.look(shard, merged, commit)
    const bytes = packCommit(commit, { merged, letters: looked.letters })
    if ('reason' in bytes) return { kind: 'badop', reason: bytes.reason }
    const answer = await runScript(this.commits, commit.frees ? FREEING_COMMIT : COMMIT, bytes)
    this.noteAnswer(answer)
    const verdict = parseVerdict(answer, this.options.cluster !== undefined)
    if (verdict.kind === 'ok') this.keys.note(shard, looked)
    else this.keys.forget(shard)
    return verdict
  }

  async read(_shard: number, facts: readonly ViewFact[]): Promise<readonly FactValue[] | null> {
    const { bytes, pieces } = packRead(facts)
    const answer = await runScript(this.reads, READ, bytes)
    if (answer.kind === 'reply') return factValues(facts, pieces, answer.value as string)
    if (answer.kind === 'error') this.options.onReadFailed?.(answer.message.split(' ', 1)[0] ?? '')
    return null
  }

  async acquire(request: { shard: number; sawToken: string; newToken: string; worker: string }): Promise<Acquired> {
    const { shard, sawToken, newToken, worker } = request
    const keys = [metaKey(shard), fencedKey(shard, sawToken)]
    this.keys.forget(shard)
    const answer = await this.call(this.commits, ACQUIRE, keys, [sawToken, newToken, worker])
    // The answer to an earlier commit may have come in the meantime, and another owner may have changed keys since.
    this.keys.forget(shard)
    if (answer.kind !== 'reply') return { kind: 'failed' }
    const [kind, ...fields] = answer.value as ['ok' | 'changed', ...string[]]
    return { kind, meta: parseMeta(fields) }
  }

  async release({ shard, token }: { shard: number; token: string }): Promise<boolean> {
    this.keys.forget(shard)
    const answer = await this.call(this.commits, RELEASE, [metaKey(shard)], [token, RELEASED_CHANNEL, String(shard)])
    return answer.kind === 'reply' && answer.value === 1
  }

  async fenced({ shard, token }: { shard: number; token: string }): Promise<{ seq: number; last: string } | null> {
    const answer = await this.reads.call('GET', fencedKey(shard, token))
    if (answer.kind !== 'reply' || typeof answer.value !== 'string') return null
    const space = answer.value.indexOf(' ')
    return { seq: Number(answer.value.slice(0, space)), last: answer.value.slice(space + 1) }
  }

  async metas(shards: readonly number[]): Promise<readonly (Meta | null)[] | null> {
    const answers = await Promise.all(shards.map((shard) => this.reads.call('HMGET', metaKey(shard), ...META_FIELDS)))
    const metas: (Meta | null)[] = []
    for (const answer of answers) {
      if (answer.kind !== 'reply') return null
      const fields = answer.value as (string | null)[]
      metas.push(fields[1] === null ? null : parseMeta(fields))
    }
    return metas
  }

  async heartbeat({ worker, record }: { worker: string; record: WorkerRecord }): Promise<Beat> {
    // After a stop of the whole process timers run before sockets, so one more turn lets an arrived answer be read.
    const timer = setTimeout(
      () => setImmediate(() => answer === null && this.commits.cut()),
      this.options.beatSilentMs ?? BEAT_SILENT_MS,
    )
    let answer: StoreAnswer | null = null
    answer = await this.call(
      this.commits,
      HEARTBEAT,
      [WORKERS_KEY],
      [worker, JSON.stringify(record), RELEASED_CHANNEL, record.isLeaving ? '1' : ''],
    )
    clearTimeout(timer)
    this.noteAnswer(answer)
    if (answer.kind !== 'reply') return { kind: 'failed' }
    const [nowMs, flat] = answer.value as [number, string[]]
    return { kind: 'ok', nowMs, workers: parseFlatPairs(flat) }
  }

  async retire(worker: string, seen?: string): Promise<void> {
    await this.call(this.commits, RETIRE, [WORKERS_KEY], seen === undefined ? [worker] : [worker, seen])
  }

  async look(
    clients: readonly number[],
  ): Promise<{ workers: ReadonlyMap<string, string>; connected: Set<number> } | null> {
    const [records, list] = await Promise.all([
      this.reads.call('HGETALL', WORKERS_KEY),
      clients.length === 0 ? null : this.reads.call('CLIENT', 'LIST', 'ID', ...clients.map(String)),
    ])
    if (records.kind !== 'reply' || (list !== null && list.kind !== 'reply')) return null
    const ids = [...String(list?.value ?? '').matchAll(/^id=(\d+)/gm)]
    return { workers: parseFlatPairs(records.value as string[]), connected: new Set(ids.map(([, id]) => Number(id))) }
  }

  /** Subscribes to a topic; resolves with a function that ends it. */
  hear(topic: string, heard: Heard): Promise<() => void> {
    return this.signals.hear(topic, heard)
  }

  signal(signals: readonly Signal[]): void {
    for (const { topic, text } of signals) void this.own.call('PUBLISH', topicName(topic), text)
  }

  enqueue(request: Enqueue): Promise<readonly Enqueued[]> {
    this.told.get(request.replyTo)?.begin()
    return this.mailbox.enqueue(request)
  }

  handIn(request: { shard: number; cmdId: string; body: Uint8Array }): Promise<boolean> {
    return this.mailbox.handIn(request)
  }

  entries(request: EntriesRequest): Promise<readonly InboxEntry[] | null> {
    return this.mailbox.entries(request)
  }

  waiting(cursors: readonly Cursors[]): Promise<readonly number[] | null> {
    return this.mailbox.waitingAt(cursors)
  }

  listen(worker: string, ears: Receivers): Listening {
    const { address } = this.options
    const published = listenToRedis(address, worker, ears)
    const told = this.tell(
      worker,
      () => toldKey(worker),
      (text) => ears.replies(text),
    )
    const listening = {
      close() {
        published.close()
        told.close()
      },
    }
    this.listenings.push(listening)
    return listening
  }

  /** Receives the replies for a worker, once begun; `key` names the stream. */
  tell(worker: string, key: () => string, heard: (text: string) => void): ReplyStream {
    const told = new ReplyStream({ address: this.options.address, key }, heard)
    this.listenings.push(told)
    this.told.set(worker, told)
    return told
  }

  /** Sends a command that another node of the cluster did not take, over the link of the same name. */
  async sendHere({ link, bytes, ...options }: Sending): Promise<StoreAnswer> {
    const links = [this.commits, this.reads, this.own]
    const found = links.find(({ name }) => name === link) ?? (await this.enqueueLink())
    return found.send(bytes, options)
  }

  /**
   * Ends every connection, or that of commits alone: commands in flight have an unknown outcome. New ones are opened.
   */
  cut(isAll: boolean): void {
    for (const link of isAll ? [this.commits, this.reads, this.own, this.enqueues] : [this.commits]) link?.cut()
  }

  /** Uses the commit connection for another command, which proves that this connection answers. */
  async askBeside(...args: readonly string[]): Promise<StoreAnswer> {
    const answer = await this.commits.call(...args)
    this.noteAnswer(answer)
    return answer
  }

  replies(parcels: readonly RepliesRequest[]): Promise<readonly (Replies | null)[]> {
    return this.mailbox.replies(parcels)
  }

  private call(
    link: RedisLink,
    script: Script,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<StoreAnswer> {
    return runScript(link, script, scriptBytes(script.sha, keys, args))
  }

  private noteAnswer({ kind }: StoreAnswer): void {
    if (kind === 'reply' || kind === 'error') this.lastAnswerMs = performance.now()
  }

  /** Prepares a new commit connection before its first commit; the old one is ended first. */
  private async prepare(client: Redis): Promise<void> {
    const runId = /run_id:(\w+)/.exec(await client.info('server'))?.[1] ?? ''
    // Client ids start again with the store, so in another run the number could belong to another client.
    if (runId === this.known.runId) await client.client('KILL', 'ID', this.known.clientId)
    const clientId = await client.client('ID')
    try {
      await checkSettings(client, this.options.durability, this.options.cluster !== undefined)
    } catch (error) {
      if (error instanceof StoreRefused && this.isOpen) this.options.onRefused?.(error)
      else if (error instanceof StoreRefused) this.commits.fail(error)
      throw error
    }
    await Promise.all(SCRIPTS.map(({ text }) => client.script('LOAD', text)))
    this.known = { clientId, runId }
  }

  /** A connection that needs nothing before its first command. */
  private linkOf(name: string, silentMsMax: number): RedisLink {
    const { address, cluster } = this.options
    return new RedisLink({ address, name, silentMsMax, prepare: async () => undefined, ...cluster })
  }

  private enqueueLink(): RedisLink | Promise<RedisLink> {
    return this.enqueues?.up === true ? this.enqueues : this.openEnqueues()
  }

  private async openEnqueues(): Promise<RedisLink> {
    this.enqueues ??= this.linkOf('enqueue', READ_SILENT_MS)
    await this.enqueues.ready(ENQUEUE_OPEN_MS).catch(() => undefined)
    return this.enqueues
  }
}
