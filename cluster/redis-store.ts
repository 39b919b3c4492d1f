/**
 * redis-store - the store in Redis (7.0 or later) or Valkey.
 *
 * Three connections: commits and heartbeats; reads of the shards; views and content (`content`), so that neither a slow
 * view nor 10 MB of content stands before a commit. On each new commit connection the old one is killed first: a copy
 * that was sent on it must not run after its second sending was judged.
 */
import type { Redis } from 'ioredis'
import type { Entry, Fact, FactValue } from './behaviour.ts'
import { assert } from './fault.ts'
import { entryIdOf, sortableEntryId } from './id.ts'
import { fencedKey, journalKey, mailboxKey, metaKey, repliesKey, stagedKey, WORKERS_KEY } from './keyspace.ts'
import { faultOfOps } from './op-check.ts'
import { type Packed, pack } from './pack.ts'
import { RedisLink, Refused, type Sent } from './redis-link.ts'
import { ACQUIRE, COMMIT, COMMIT_FREES, ENQUEUE, HEARTBEAT, READ, RELEASE, REPLY } from './scripts.ts'
import type { Acquired, Beat, Commit, Enqueue, Meta, Store, Verdict, WorkerRecord } from './store.ts'

const SCRIPTS = { COMMIT, COMMIT_FREES, READ, ACQUIRE, RELEASE, HEARTBEAT, ENQUEUE, REPLY }
const META_FIELDS = ['owner', 'tok', 'seq', 'last', 'lid', 'cur', 'out', 'tries'] as const
const OPEN_MS = 10_000
const BEAT_MAX_MS = 10_000
const READ_MAX_MS = 10_000
const BELL_SUFFIX = ':bell'

type Script = keyof typeof SCRIPTS

export interface RedisStoreOptions {
  /** `redis://`, `rediss://`, `unix://`, or the path of a unix socket. */
  readonly address: string
  readonly durability: 'fsync' | 'memory' | 'replica'
  readonly onUp?: () => void
  readonly onDown?: () => void
  /** The store's settings break the durability level. */
  readonly onRefused?: (error: Error) => void
}

/** Connects to the store. Rejects when it does not answer in 10 s or its settings break the durability level. */
export async function connectRedisStore(options: RedisStoreOptions): Promise<RedisStore> {
  const store = new RedisStore(options)
  await store.open()
  return store
}

export class RedisStore implements Store {
  /** For views and content: an ordinary client that waits a little for a connection. */
  private readonly commitLink: RedisLink
  private readonly readLink: RedisLink
  private readonly viewLink: RedisLink
  private readonly options: RedisStoreOptions
  private readonly shas = new Map<Script, string>()
  private clientId = 0
  private run = ''

  constructor(options: RedisStoreOptions) {
    this.options = options
    const { address } = options
    const tell = {
      ...(options.onUp === undefined ? {} : { onUp: options.onUp }),
      ...(options.onDown === undefined ? {} : { onDown: options.onDown }),
      ...(options.onRefused === undefined ? {} : { onRefused: options.onRefused }),
    }
    this.commitLink = new RedisLink({ address, name: 'sendwright-commit', prepare: (redis) => this.prepareCommit(redis), ...tell })
    this.readLink = new RedisLink({ address, name: 'sendwright-read', prepare: (redis) => this.load(redis, ['READ', 'REPLY']) })
    this.viewLink = new RedisLink({ address, name: 'sendwright-view', prepare: (redis) => this.load(redis, ['READ']) })
  }

  async open(): Promise<void> {
    await Promise.all([this.commitLink.open(OPEN_MS), this.readLink.open(OPEN_MS), this.viewLink.open(OPEN_MS)])
  }

  /** Whether the commit connection is there. */
  get connected(): boolean {
    return this.commitLink.isUp
  }

  /** Id of the commit connection, and of the Redis process, for this worker's record. */
  get identity(): { clientId: number; runId: string } {
    return { clientId: this.clientId, runId: this.run }
  }

  /** The client for views and content. Its calls reject while the store is away. */
  get views(): Redis {
    return this.viewLink.redis
  }

  close(): void {
    for (const link of [this.commitLink, this.readLink, this.viewLink]) link.close()
  }

  async commit(commit: Commit): Promise<Verdict> {
    const fault = faultOfOps(commit.ops)
    if (fault !== null) return { kind: 'badop', reason: fault }
    const { keys, args } = argumentsOf(commit)
    const sent = await this.run_<readonly string[]>(this.commitLink, commit.frees ? 'COMMIT_FREES' : 'COMMIT', keys, args)
    return verdictOf(sent)
  }

  async read(_shard: number, facts: readonly Fact[]): Promise<readonly FactValue[] | null> {
    const places = new Map<string, number>()
    const packed = facts.map((fact) => packFact(fact, placeOf(places, fact.key)))
    const sent = await this.run_<readonly unknown[]>(this.readLink, 'READ', [...places.keys()], [pack(packed)], READ_MAX_MS)
    if (sent.kind !== 'ok') return null
    return facts.map((fact, index) => valueOf(fact, sent.answer[index]))
  }

  async acquire({ shard, sawToken, newToken, worker }: Parameters<Store['acquire']>[0]): Promise<Acquired> {
    const keys = [metaKey(shard), fencedKey(shard, sawToken)]
    const sent = await this.run_<[number, (string | null)[]]>(this.commitLink, 'ACQUIRE', keys, [sawToken, newToken, worker])
    if (sent.kind !== 'ok') return { kind: 'failed' }
    const meta = metaOf(sent.answer[1])
    assert(meta !== null, 'A shard without a token was acquired')
    return { kind: sent.answer[0] === 1 ? 'ok' : 'changed', meta }
  }

  async release({ shard, token }: Parameters<Store['release']>[0]): Promise<boolean> {
    const sent = await this.run_<number>(this.commitLink, 'RELEASE', [metaKey(shard)], [token])
    return sent.kind === 'ok' && sent.answer === 1
  }

  async fenced({ shard, token }: Parameters<Store['fenced']>[0]): Promise<{ seq: number; last: string } | null> {
    const sent = await this.readLink.call<string | null>((redis) => redis.get(fencedKey(shard, token)))
    if (sent.kind !== 'ok' || sent.answer === null) return null
    const [seq, last] = sent.answer.split(' ')
    return { seq: Number(seq), last: last ?? '' }
  }

  async metas(shards: readonly number[]): Promise<readonly (Meta | null)[] | null> {
    const answers = await Promise.all(
      shards.map((shard) =>
        this.readLink.call<(string | null)[]>((redis) => redis.hmget(metaKey(shard), ...META_FIELDS)),
      ),
    )
    if (answers.some(({ kind }) => kind !== 'ok')) return null
    return answers.map((sent) => (sent.kind === 'ok' ? metaOf(sent.answer) : null))
  }

  async heartbeat({ worker, record }: { worker: string; record: WorkerRecord }): Promise<Beat> {
    const args = [worker, JSON.stringify({ ...record, ...this.identity })]
    const sent = await this.run_<[string, string[]]>(this.commitLink, 'HEARTBEAT', [WORKERS_KEY], args, BEAT_MAX_MS)
    if (sent.kind !== 'ok') return { kind: 'failed' }
    return { kind: 'ok', nowMs: Number(sent.answer[0]), workers: pairsOf(sent.answer[1]) }
  }

  async retire(worker: string): Promise<void> {
    await this.commitLink.call((redis) => redis.hdel(WORKERS_KEY, worker))
  }

  async enqueue(request: Enqueue): Promise<'ok' | 'busy' | 'lost' | 'unsent'> {
    const { shard, cmdId, name, replyTo, deadlineMs, body, entriesMax } = request
    const mailbox = mailboxKey(shard)
    const args = [String(entriesMax), cmdId, name, replyTo, String(deadlineMs), body, mailbox + BELL_SUFFIX]
    const sent = await this.run_<string>(this.commitLink, 'ENQUEUE', [mailbox, stagedKey(shard, cmdId)], args)
    if (sent.kind === 'ok') return sent.answer === 'BUSY' ? 'busy' : 'ok'
    return sent.kind === 'error' ? 'unsent' : sent.kind
  }

  async reply({ shard, cmdId, slice }: Parameters<Store['reply']>[0]): Promise<{ reply: string | null; nowMs: number } | null> {
    const sent = await this.run_<[string | null, string]>(this.readLink, 'REPLY', [repliesKey(shard, slice)], [cmdId], READ_MAX_MS)
    return sent.kind === 'ok' ? { reply: sent.answer[0], nowMs: Number(sent.answer[1]) } : null
  }

  /** Runs a script; one that the store has forgotten (nothing ran) is loaded and sent again. */
  private async run_<Answer>(
    link: RedisLink,
    script: Script,
    keys: readonly string[],
    args: readonly (string | Buffer | Uint8Array)[],
    timeoutMs = 0,
  ): Promise<Sent<Answer>> {
    const timer = timeoutMs === 0 ? null : setTimeout(() => link.cut(), timeoutMs)
    const sha = this.shas.get(script) ?? ''
    const send = (): Promise<Sent<Answer>> =>
      link.call<Answer>((redis) => redis.evalsha(sha, keys.length, ...keys, ...(args as (string | Buffer)[])))
    let sent = await send()
    if (sent.kind === 'error' && sent.code === 'NOSCRIPT') {
      await link.call((redis) => redis.script('LOAD', SCRIPTS[script]))
      sent = await send()
    }
    if (timer !== null) clearTimeout(timer)
    return sent
  }

  private async prepareCommit(redis: Redis): Promise<void> {
    const old = this.clientId
    if (old !== 0) await redis.client('KILL', 'ID', old).catch(() => 0)
    const info = await redis.info('server')
    this.run = /run_id:(\w+)/.exec(info)?.[1] ?? ''
    this.clientId = Number(await redis.client('ID'))
    await checkSettings(redis, this.options.durability)
    await this.load(redis, Object.keys(SCRIPTS) as Script[])
  }

  private async load(redis: Redis, scripts: readonly Script[]): Promise<void> {
    for (const script of scripts) this.shas.set(script, String(await redis.script('LOAD', SCRIPTS[script])))
  }
}

/** Refuses a store whose settings break the durability level. */
async function checkSettings(redis: Redis, durability: RedisStoreOptions['durability']): Promise<void> {
  const setting = async (name: string): Promise<string> => ((await redis.config('GET', name)) as string[])[1] ?? ''
  if ((await setting('maxmemory-policy')) !== 'noeviction') throw new Refused('Redis drops keys when full: maxmemory-policy must be noeviction')
  if ((await setting('appendonly')) !== 'yes') throw new Refused('Redis keeps no log: appendonly must be yes')
  const fsync = await setting('appendfsync')
  if (durability === 'fsync' && fsync !== 'always')
    throw new Refused(`Redis answers before the disk has it: appendfsync must be always for DURABILITY=fsync, it is ${fsync}`)
  if (fsync === 'no') throw new Refused('Redis never waits for the disk: appendfsync must be everysec or always')
}

function argumentsOf(commit: Commit): { keys: readonly string[]; args: readonly (string | Buffer)[] } {
  const places = new Map<string, number>([
    [metaKey(commit.shard), 1],
    [journalKey(commit.shard), 2],
  ])
  const bytes: Buffer[] = []
  const ops: Packed[] = commit.ops.map((op) => {
    const packed: Packed[] = [placeOf(places, op.key), op.write]
    for (const arg of op.args) packed.push(typeof arg === 'string' ? arg : [bytes.push(Buffer.from(arg.buffer, arg.byteOffset, arg.byteLength))])
    return packed
  })
  const { token, seq, commitId, nowMs, deadlineMs, lid, firstEntryId, cursor, outcomesCursor, note } = commit
  const top = lid === '' ? '' : sortableEntryId(entryIdOf(lid))
  const args = [token, `${seq}`, commitId, `${nowMs}`, `${deadlineMs}`, lid, top, firstEntryId, cursor, outcomesCursor, note]
  return { keys: [...places.keys()], args: [...args, pack(ops), ...bytes] }
}

function placeOf(places: Map<string, number>, key: string): number {
  let place = places.get(key)
  if (place === undefined) {
    place = places.size + 1
    places.set(key, place)
  }
  return place
}

function verdictOf(sent: Sent<readonly string[]>): Verdict {
  if (sent.kind === 'error') return refusalOf(sent)
  if (sent.kind !== 'ok') return { kind: sent.kind }
  const [word, detail = ''] = sent.answer
  switch (word) {
    case 'OK':
      return { kind: 'ok' }
    case 'DUP':
      return { kind: 'dup' }
    case 'FENCED':
      return { kind: 'fenced' }
    case 'CONFLICT':
      return { kind: 'conflict', seq: Number(detail) }
    case 'LATE':
      return { kind: 'late', nowMs: Number(detail) }
    case 'CLOCK':
      return { kind: 'clock', nowMs: Number(detail) }
    case 'MISSING':
      return { kind: 'missing', key: detail }
    case 'BADOP':
      return { kind: 'badop', reason: detail }
    default:
      return { kind: 'torn', reason: `${word} ${detail}` }
  }
}

/** Errors that the store gives before a script runs; any other one may have stopped it half way. */
const REFUSALS = new Set(['OOM', 'READONLY', 'MISCONF', 'LOADING', 'NOREPLICAS', 'CROSSSLOT', 'BUSY', 'NOSCRIPT', 'MASTERDOWN', 'CLUSTERDOWN'])

function refusalOf({ code, text }: { code: string; text: string }): Verdict {
  if (REFUSALS.has(code)) return { kind: 'refused', reason: code }
  return { kind: 'torn', reason: text.slice(0, 200) }
}

function packFact(fact: Fact, place: number): Packed {
  switch (fact.read) {
    case 'fields':
      return ['f', place, ...fact.fields]
    case 'hash':
      return ['h', place]
    case 'range':
      return ['r', place, fact.from, fact.to, `${fact.count}`]
    case 'last':
      return ['l', place]
    case 'sorted':
      return ['s', place, `${fact.min}`, `${fact.max}`, `${fact.count}`]
    case 'score':
      return ['c', place, fact.member]
    case 'value':
      return ['v', place]
  }
}

function valueOf(fact: Fact, answer: unknown): FactValue {
  switch (fact.read) {
    case 'fields':
      return answer as (string | null)[]
    case 'hash':
      return pairsOf(answer as string[])
    case 'range':
    case 'last':
      return (answer as [string, string[]][]).map(([id, fields]): Entry => ({ id, fields }))
    case 'sorted': {
      const flat = answer as string[]
      return Array.from({ length: flat.length >> 1 }, (_, i): [string, number] => [flat[i * 2]!, Number(flat[i * 2 + 1])])
    }
    case 'score':
      return answer === null || answer === undefined ? null : Number(answer)
    case 'value':
      return (answer as string | null | undefined) ?? null
  }
}

function metaOf(fields: readonly (string | null)[]): Meta | null {
  const [owner, token, seq, last, lid, cursor, outcomesCursor, tries] = fields
  if (token === null || token === undefined) return null
  return {
    owner: owner ?? '',
    token,
    seq: Number(seq ?? 0),
    last: last ?? '',
    lid: lid ?? '',
    cursor: cursor ?? '',
    outcomesCursor: outcomesCursor ?? '',
    tries: Number(tries ?? 0),
  }
}

function pairsOf(flat: readonly string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  for (let i = 0; i < flat.length; i += 2) pairs.set(flat[i]!, flat[i + 1]!)
  return pairs
}
