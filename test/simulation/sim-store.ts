/**
 * sim-store - the in-memory store for simulations: the answers of Redis, at once, with a clock that is set by hand.
 *
 * The simulation adds delays, lost answers and other faults around it. Only what a store itself can do is here: a full
 * memory (`full`), lost writes (`rollBack`), a changed clock (`nowMs`).
 */
import type { Entry, Fact, FactValue, Op, Signal } from '../../cluster/behaviour.ts'
import { entryIdOf, isId, sortableEntryId } from '../../cluster/id.ts'
import { fencedKey, journalKey, metaKey, shardTag, WORKERS_KEY } from '../../cluster/keyspace.ts'
import type {
  Acquired,
  Beat,
  Bell,
  Commit,
  Cursors,
  Enqueue,
  Enqueued,
  EntriesRequest,
  InboxEntry,
  Listening,
  Meta,
  Receivers,
  Replies,
  RepliesRequest,
  Store,
  Verdict,
  WorkerRecord,
} from '../../cluster/store.ts'
import { MOVE_PREFIX } from '../../cluster/store.ts'
import { checkOps } from './sim-check.ts'
import { applyOp, type Dumped, readable, SimData, sortScores, textOf } from './sim-data.ts'
import { SimMailbox } from './sim-mailbox.ts'

const CLOCK_OFF_MS = 5_000
const TRIES_KEPT_MS = 60_000
const FENCED_MS = 3_600_000
const JOURNAL_ENTRIES = 256
/** Writes that can be undone by default. */
const STEPS_KEPT = 64

export type Snapshot = ReturnType<SimData['copy']>

export class SimStore implements Store {
  /** The store's clock, ms since the epoch. */
  nowMs: number
  /** At maxmemory, commands that accept something are refused. */
  full = false
  /** The subscribers, by worker. */
  private readonly listeners = new Map<string, Receivers>()
  /** Connections that are open. */
  readonly connected: Set<number>
  /** Receives every bell in place of the subscribed workers, for any shard and any owner. */
  rings: ((bells: readonly Bell[]) => void) | null = null
  /** Writes that `rollBack` can undo. */
  stepsMax = STEPS_KEPT
  /** Every signal so far. */
  readonly signals: Signal[] = []
  private readonly data = new SimData()
  private readonly mail = new SimMailbox(this.data, {
    nowMs: () => this.nowMs,
    step: (keys) => this.step(keys),
    ring: (owner, bells) => {
      if (this.rings !== null) this.rings(bells)
      else this.listeners.get(owner)?.bells(bells)
    },
  })
  private steps: Snapshot[] = []

  constructor(nowMs = 1_732_000_000_000, connected: Set<number> = new Set()) {
    this.nowMs = nowMs
    this.connected = connected
  }

  async commit(commit: Commit): Promise<Verdict> {
    const { shard, seq, lid } = commit
    if (lid !== '' && !isId(lid)) return { kind: 'badop', reason: 'lid' }
    if (this.full && !commit.frees) return { kind: 'refused', reason: 'OOM' }
    const keys = [metaKey(shard), journalKey(shard)]
    const refusal = this.refusalOf(commit)
    if (refusal !== null) return refusal
    const ops = numberEntries(commit.ops, seq)
    const checked = checkOps(ops, { data: this.data, nowMs: this.nowMs, shard })
    if (checked.kind === 'missing') return checked
    if (checked.kind === 'badop') return { kind: 'badop', reason: 'op' }
    this.step([...keys, ...ops.map(({ key }) => key)])
    const entry = [`${seq + 1}-0`, 'c', commit.commitId, 'n', commit.note]
    applyOp(this.data, { key: keys[1]!, write: 'XADD', args: entry }, this.nowMs)
    const journal = this.data.make(keys[1]!, 'stream', this.nowMs)
    journal.entries = journal.entries.slice(-JOURNAL_ENTRIES)
    for (const op of ops) applyOp(this.data, op, this.nowMs)
    this.writeMeta(commit)
    for (const [worker, text] of commit.told ?? []) this.listeners.get(worker)?.replies(text)
    return { kind: 'ok' }
  }

  enqueue(request: Enqueue): Promise<readonly Enqueued[]> {
    return this.mail.enqueue(request, this.full)
  }

  handIn(request: { shard: number; cmdId: string; body: Uint8Array }): Promise<boolean> {
    return this.mail.handIn(request)
  }

  entries(request: EntriesRequest): Promise<readonly InboxEntry[] | null> {
    return this.mail.entries(request)
  }

  waiting(cursors: readonly Cursors[]): Promise<readonly number[] | null> {
    return this.mail.waiting(cursors)
  }

  replies(parcels: readonly RepliesRequest[]): Promise<readonly Replies[]> {
    return this.mail.replies(parcels)
  }

  /** Loses what was enqueued for a shard, as a store does that ends and comes back. */
  forgetMail(shard: number): void {
    this.mail.forget(shard)
  }

  signal(signals: readonly Signal[]): void {
    this.signals.push(...signals)
  }

  async read(_shard: number, facts: readonly Fact[]): Promise<readonly FactValue[] | null> {
    const values: FactValue[] = []
    for (const fact of facts) {
      const value = this.valueOf(fact)
      if (value === undefined) return null
      values.push(value)
    }
    return values
  }

  async acquire(request: { shard: number; sawToken: string; newToken: string; worker: string }): Promise<Acquired> {
    const { shard, sawToken, newToken, worker } = request
    const fields = this.hashOf(metaKey(shard))
    const isMoved = fields.get('owner')?.startsWith(MOVE_PREFIX) === true
    if (isMoved || (fields.get('tok') ?? '') !== textOf(sawToken)) return { kind: 'changed', meta: metaOf(fields) }
    this.step([metaKey(shard), fencedKey(shard, sawToken)])
    const seq = fields.get('seq') ?? '0'
    if (sawToken !== '')
      this.data.setText(fencedKey(shard, sawToken), `${seq} ${fields.get('last') ?? ''}`, this.nowMs + FENCED_MS)
    const tries = String(Number(fields.get('tries') ?? 0) + 1)
    this.hset(metaKey(shard), [
      'owner',
      worker,
      'tok',
      newToken,
      'seq',
      seq,
      'tries',
      tries,
      'since',
      String(this.nowMs),
    ])
    return { kind: 'ok', meta: metaOf(this.hashOf(metaKey(shard))) }
  }

  async release({ shard, token }: { shard: number; token: string }): Promise<boolean> {
    if (this.hashOf(metaKey(shard)).get('tok') !== token) return false
    this.step([metaKey(shard)])
    this.hset(metaKey(shard), ['owner', ''])
    this.tellReleased(shard)
    return true
  }

  tellReleased(shard: number): void {
    for (const ears of this.listeners.values()) ears.released(shard)
  }

  async fenced({ shard, token }: { shard: number; token: string }): Promise<{ seq: number; last: string } | null> {
    const value = this.data.get(fencedKey(shard, token), this.nowMs)
    if (value?.kind !== 'text') return null
    const [seq, ...last] = value.text.split(' ')
    return { seq: Number(seq), last: last.join(' ') }
  }

  async metas(shards: readonly number[]): Promise<readonly (Meta | null)[] | null> {
    return shards.map((shard) => {
      const fields = this.hashOf(metaKey(shard))
      return fields.has('tok') ? metaOf(fields) : null
    })
  }

  async heartbeat({ worker, record }: { worker: string; record: WorkerRecord }): Promise<Beat> {
    this.step([WORKERS_KEY])
    const isNew = !this.hashOf(WORKERS_KEY).has(worker)
    this.hset(WORKERS_KEY, [worker, JSON.stringify(record)])
    if (isNew || record.isLeaving) for (const ears of this.listeners.values()) ears.joined()
    return { kind: 'ok', nowMs: this.nowMs, workers: new Map(this.hashOf(WORKERS_KEY)) }
  }

  async retire(worker: string, seen?: string): Promise<void> {
    this.step([WORKERS_KEY])
    if (seen !== undefined && this.hashOf(WORKERS_KEY).get(worker) !== seen) return
    applyOp(this.data, { key: WORKERS_KEY, write: 'HDEL', args: [worker] }, this.nowMs)
  }

  async look(
    clients: readonly number[],
  ): Promise<{ workers: ReadonlyMap<string, string>; connected: Set<number> } | null> {
    const connected = new Set(clients.filter((client) => this.connected.has(client)))
    return { workers: new Map(this.hashOf(WORKERS_KEY)), connected }
  }

  listen(worker: string, ears: Receivers): Listening {
    this.listeners.set(worker, ears)
    return { close: () => void this.listeners.delete(worker) }
  }

  /** Every key that exists now, by name. */
  dump(): Map<string, Dumped> {
    return this.data.dump(this.nowMs)
  }

  /** Writes past all checks. */
  write(op: Op): void {
    applyOp(this.data, op, this.nowMs)
  }

  /** All that is stored, as a copy. */
  snapshot(): Snapshot {
    return this.data.copy()
  }

  /** Replaces the whole store with a snapshot. */
  restore(snapshot: Snapshot): void {
    this.data.putBack(snapshot, true)
    this.steps = []
  }

  /** Another store with the same contents, clock and switches. */
  clone(): SimStore {
    const twin = new SimStore(this.nowMs, this.connected)
    twin.full = this.full
    twin.restore(this.snapshot())
    return twin
  }

  /**
   * Loses the last `count` writes of any kind (`stepsMax` at most), as a store does that acknowledged before it was on
   * disk.
   */
  rollBack(count: number): number {
    let undone = 0
    for (; undone < count && this.steps.length > 0; undone += 1) this.data.putBack(this.steps.pop()!, false)
    return undone
  }

  /** The writes so far can no longer be undone. */
  settle(): void {
    this.steps = []
  }

  /** All subscriptions end. */
  deafen(): void {
    this.listeners.clear()
  }

  /** Names of the keys of a shard. */
  namesOf(shard: number): string[] {
    return this.data.names().filter((name) => name.startsWith(`${shardTag(shard)}:`))
  }

  /** Copies of keys; undefined stands for one that does not exist. */
  copyOf(names: Iterable<string>): Snapshot {
    return this.data.copy(names)
  }

  /** Removes keys as if they had never existed, without a way to undo it. Returns their values. */
  takeAway(names: readonly string[]): Snapshot {
    const keys = this.data.copy(names)
    for (const name of names) this.data.remove(name)
    return keys
  }

  /** Replaces the keys with these names by copies, without any checks. */
  put(keys: Snapshot): void {
    this.step([...keys.keys()])
    this.data.putBack(keys, false)
  }

  private refusalOf(commit: Commit): Verdict | null {
    const { shard, seq, deadlineMs } = commit
    const meta = this.hashOf(metaKey(shard))
    if (meta.get('tok') !== commit.token) return { kind: 'fenced' }
    if (Number(meta.get('seq')) !== seq)
      return meta.get('last') === commit.commitId ? { kind: 'dup' } : { kind: 'conflict', seq: Number(meta.get('seq')) }
    if (deadlineMs !== 0 && this.nowMs > deadlineMs) return { kind: 'late', nowMs: this.nowMs }
    if (Math.abs(commit.nowMs - this.nowMs) > CLOCK_OFF_MS) return { kind: 'clock', nowMs: this.nowMs }
    const journal = this.data.get(journalKey(shard), this.nowMs)
    const top = journal?.kind === 'stream' ? (journal.entries.at(-1)?.id ?? '0-0') : '0-0'
    if (top !== `${seq}-0`) return { kind: 'torn', reason: `Journal ends at ${top}, meta at ${seq}` }
    const above = meta.get('top') ?? ''
    if (commit.firstEntryId !== '' && above !== '' && commit.firstEntryId <= above)
      return { kind: 'badop', reason: 'lid' }
    return null
  }

  private writeMeta({ shard, seq, commitId, nowMs, lid, cursor, outcomesCursor }: Commit): void {
    const meta = this.hashOf(metaKey(shard))
    const fields = ['seq', String(seq + 1), 'last', commitId, 'now', String(nowMs)]
    if (lid !== '') fields.push('lid', lid, 'top', sortableEntryId(entryIdOf(lid)))
    if (cursor !== '') fields.push('cur', cursor)
    if (outcomesCursor !== '') fields.push('out', outcomesCursor)
    const held = this.nowMs - Number(meta.get('since') ?? 0)
    if ((meta.get('tries') ?? '0') !== '0' && held >= TRIES_KEPT_MS) fields.push('tries', '0')
    this.hset(metaKey(shard), fields)
  }

  /** Undefined if the key is of another kind than the read needs. */
  private valueOf(fact: Fact): FactValue | undefined {
    const value = this.data.get(fact.key, this.nowMs)
    const kinds = {
      fields: 'hash',
      hash: 'hash',
      range: 'stream',
      last: 'stream',
      sorted: 'sorted',
      score: 'sorted',
      value: 'text',
    } as const
    const asksNothing =
      (fact.read === 'fields' && fact.fields.length === 0) ||
      ((fact.read === 'range' || fact.read === 'sorted') && fact.count <= 0)
    if (asksNothing) return []
    if (value !== undefined && value.kind !== kinds[fact.read]) return undefined
    const fields = value?.kind === 'hash' ? value.fields : new Map<string, string>()
    const entries = value?.kind === 'stream' ? value.entries : []
    const scores = value?.kind === 'sorted' ? value.scores : new Map<string, number>()
    switch (fact.read) {
      case 'fields':
        if (fields.size <= (fact.wholeMax ?? -1)) return new Map(fields)
        return fact.fields.map((field) => fields.get(textOf(field)) ?? null)
      case 'hash':
        return new Map(fields)
      case 'range':
        return entries.filter(({ id }) => isWithin(id, fact)).slice(0, fact.count)
      case 'last':
        return entries.slice(-1)
      case 'sorted': {
        const inside = sortScores(scores).filter(([, score]) => score >= fact.min && score <= fact.max)
        return (fact.newest ? inside.reverse() : inside).slice(0, fact.count)
      }
      case 'score':
        return scores.get(textOf(fact.member)) ?? null
      case 'value':
        return value?.kind === 'text' ? readable(value.text) : null
    }
  }

  private hashOf(key: string): ReadonlyMap<string, string> {
    const value = this.data.get(key, this.nowMs)
    return value?.kind === 'hash' ? value.fields : new Map()
  }

  private hset(key: string, args: readonly string[]): void {
    applyOp(this.data, { key, write: 'HSET', args }, this.nowMs)
  }

  /** Remembers what a write is about to change. */
  private step(keys: readonly string[]): void {
    this.steps.push(this.data.copy(new Set(keys)))
    if (this.steps.length > this.stepsMax) this.steps.shift()
  }
}

/** `*seq` as the ids that the commit gives. */
function numberEntries(ops: readonly Op[], seq: number): Op[] {
  const counts = new Map<string, number>()
  return ops.map((op) => {
    if (op.write !== 'XADD' || op.args[0] !== '*seq') return op
    const count = counts.get(op.key) ?? 0
    counts.set(op.key, count + 1)
    return { ...op, args: [`${seq + 1}-${count}`, ...op.args.slice(1)] }
  })
}

function isWithin(id: Entry['id'], { from, to }: { from: string; to: string }): boolean {
  const at = sortableEntryId(id)
  const least = from === '-' ? '' : sortableEntryId(from.includes('-') ? from : `${from}-0`)
  const most = to === '+' ? '~' : sortableEntryId(to.includes('-') ? to : `${to}-${2n ** 64n - 1n}`)
  return at >= least && at <= most
}

function metaOf(fields: ReadonlyMap<string, string>): Meta {
  const of = (name: string): string => fields.get(name) ?? ''
  return {
    owner: of('owner'),
    token: of('tok'),
    seq: Number(of('seq')),
    last: of('last'),
    lid: of('lid'),
    cursor: of('cur'),
    outcomesCursor: of('out'),
    tries: Number(of('tries')),
    freedAtMs: Number(of('freed')),
  }
}
