/**
 * observer - is placed directly at the store and at the performers, and records at once what must never happen.
 *
 * It sees what is applied, independent of what the processes believe: tokens, sequence numbers, epochs, claims, states
 * of items. If the store is set back to an earlier moment, the observer is set back too, and records what was lost as
 * lost.
 */

import type { Fact } from '../../cluster/behaviour.ts'
import { idOfEntry, sortableEntryId } from '../../cluster/id.ts'
import { parseClaim } from '../../cluster/items/claim.ts'
import { dueKey, laneKey } from '../../cluster/keyspace.ts'
import { parseCursor } from '../../cluster/mailbox/cursor.ts'
import { unpackStaged } from '../../cluster/mailbox/staged.ts'
import type { Acquired, Commit, Meta, Store, Verdict } from '../../cluster/store.ts'
import { changeStore, MOVE_PREFIX } from '../../cluster/store.ts'
import { serialStarts } from './serial-starts.ts'
import { isSerial } from './toy.ts'
import { isTerminal } from './toy-cancel.ts'

/** The part that can be set back together with the store. */
interface Seen {
  seqs: Map<number, number>
  epochs: Map<number, number>
  states: Map<string, string>
  ids: Set<string>
  consumed: Set<string>
}

export interface Performance {
  readonly item: string
  readonly attempt: number
  readonly worker: string
  readonly lane: string
}

/** Of a claim, the store's time at which it ends and the virtual time at which it was applied. */
export interface ClaimTimes {
  readonly untilMs: number
  readonly claimedAtMs: number
}

/** The last result of an item that the world accepted. */
export interface Taken {
  readonly worker: string
  readonly attempt: number
  readonly atMs: number
}

/** Lanes whose claims last longer than any attempt; in others an attempt may outlive its claim. */
export const LASTING = 'mail/'

export class Observer {
  readonly violations: string[] = []
  /** Ids of messages that were in a log once and vanished when the store was set back. */
  readonly lost = new Set<string>()
  commits = 0
  /** Virtual times at which the store was set back. */
  readonly setBackAtMs: number[] = []
  private seen: Seen = { seqs: new Map(), epochs: new Map(), states: new Map(), ids: new Set(), consumed: new Set() }
  private readonly shardCommits = new Map<number, number>()
  private readonly claimed = new Map<string, ClaimTimes>()
  /** Item -> its latest attempt that was claimed. */
  private readonly attempts = new Map<string, number>()
  private running: Performance[] = []
  private readonly taken = new Map<string, Taken>()
  /** Outcomes in the store that no commit has taken up: command id -> shard and item. */
  private handedIn = new Map<string, { shard: number; item: string }>()
  /** By shard, the entries that were present when its owner took it: items by command id. */
  private found = new Map<number, Map<string, string>>()
  /**
   * Shards for which the store has lost a change of owner. A process that owns one again may have read what the other
   * owner wrote, and may consider an item gone that is back. The guarantees end if a store loses what it acknowledged.
   */
  readonly ungranted = new Set<number>()
  /** By item and attempt, the time of the store at which it first had an outcome that was handed in. */
  private readonly toldAtMs = new Map<string, number>()
  private readonly nowMs: () => number
  private readonly storeMs: () => number
  private readonly takenAt = new Map<number, number>()
  /** By shard, the epoch of the last fence that an order relied on: only later ones write. */
  private readonly fencedFrom = new Map<number, number>()
  /** By shard, what undoes the observations since replicas had everything, or null if the store has no replicas. */
  private undos: Map<number, (() => void)[]> | null = null

  /** `nowMs` returns virtual time, `storeMs` the store's. */
  constructor(nowMs: () => number, storeMs: () => number) {
    this.nowMs = nowMs
    this.storeMs = storeMs
  }

  violated(sentence: string): void {
    if (this.violations.length < 20) this.violations.push(sentence)
  }

  commitsOf(shard: number): number {
    return this.shardCommits.get(shard) ?? 0
  }

  /** Virtual time at which the shard got its present owner. */
  takenAtMs(shard: number): number {
    return this.takenAt.get(shard) ?? 0
  }

  /** The store, watched. */
  watch(store: Store): Store {
    return changeStore(store, {
      handIn: async (request) => {
        const { cmdId, shard } = request
        // Nothing is taken in while it moves.
        if ((await store.metas([shard]))?.[0]?.owner.startsWith(MOVE_PREFIX) === true) return store.handIn(request)
        const body = unpackStaged(request.body)?.body as { item: string; attempt: number }
        this.handedIn.set(cmdId, { shard, item: body.item })
        const told = `${body.item} ${body.attempt}`
        const isFirst = !this.toldAtMs.has(told)
        if (isFirst) this.toldAtMs.set(told, this.storeMs())
        // Submitted again because the answer was lost. It is another copy, which is executed once by itself.
        const wasConsumed = this.seen.consumed.delete(cmdId)
        this.mayUndo(shard, () => {
          this.handedIn.delete(cmdId)
          if (isFirst) this.toldAtMs.delete(told)
          if (wasConsumed) this.seen.consumed.add(cmdId)
        })
        return store.handIn(request)
      },
      acquire: async (request) => {
        const acquired = await store.acquire(request)
        this.sawAcquire(request.shard, acquired)
        return acquired
      },
      commit: async (commit) => {
        const before = (await store.metas([commit.shard]))?.[0] ?? null
        const starts = await serialStarts(store, commit)
        const verdict = await store.commit(commit)
        this.sawCommit(commit, { verdict, token: before?.token ?? '' })
        if (verdict.kind !== 'ok') return verdict
        if (before !== null) this.checkCursors(commit, before)
        for (const sentence of this.setBackAtMs.length > 0 ? [] : starts) this.violated(sentence)
        await this.checkBounds(store, commit)
        return verdict
      },
    })
  }

  /** What `setBack` restores. */
  mark(): Seen {
    const { seqs, epochs, states, ids, consumed } = this.seen
    return {
      seqs: new Map(seqs),
      epochs: new Map(epochs),
      states: new Map(states),
      ids: new Set(ids),
      consumed: new Set(consumed),
    }
  }

  setBack(to: Seen): void {
    for (const id of this.seen.ids) if (!to.ids.has(id)) this.lost.add(id)
    for (const [shard, epoch] of this.seen.epochs) if (epoch > (to.epochs.get(shard) ?? 0)) this.ungranted.add(shard)
    this.seen = to
    this.handedIn.clear()
    this.found.clear()
    this.setBackAtMs.push(this.nowMs())
  }

  /** The store has replicas. What they do not have may be rolled back, and no client may have been told of it. */
  withReplicas(): void {
    this.undos = new Map()
  }

  /** Replicas have everything that was written to these shards. */
  replicated(shards: Iterable<number>): void {
    for (const shard of shards) this.undos?.delete(shard)
  }

  /**
   * A shard is fenced, so its previous owner writes nothing more. A failover does not undo what an order relies on
   * (`isKept`).
   */
  sawFence(shard: number, token: string, isKept: boolean): void {
    const epoch = epochOf(token)
    if (isKept) this.fencedFrom.set(shard, Math.max(epoch, this.fencedFrom.get(shard) ?? 0))
    else setAnd(this.seen.epochs, [shard, epoch], (undo) => this.mayUndo(shard, undo))
  }

  /** A replica took over that had only what was confirmed last of these shards. */
  rollBack(shards: Iterable<number>): void {
    for (const shard of shards) {
      for (const undo of this.undos?.get(shard)?.toReversed() ?? []) undo()
      this.undos?.delete(shard)
    }
  }

  /** What undoes the current observations until replicas have them. */
  mayUndo(shard: number, undo: () => void): void {
    const before = this.undos?.get(shard)
    if (before !== undefined) before.push(undo)
    else this.undos?.set(shard, [undo])
  }

  /** A performer begins. `mayOverlap` is whether an earlier performance of the item has lost its claim. */
  begins(performance: Performance, mayOverlap: (earlier: Performance, times: ClaimTimes) => boolean): void {
    const { item, attempt, worker, lane } = performance
    if (!this.claimed.has(nameOf(performance))) this.violated(`Performed without a claim: ${item} attempt ${attempt}`)
    for (const earlier of this.running) {
      const isSame = earlier.item === item
      if (!isSame && !(isSerial(lane) && earlier.lane === lane)) continue
      // The performance that was claimed first may have lost its claim without knowing it, even if it begins last.
      const [first, times] = [earlier, performance]
        .map((one) => [one, this.claimed.get(nameOf(one)) ?? { untilMs: 0, claimedAtMs: 0 }] as const)
        .reduce((one, other) => (other[1].claimedAtMs < one[1].claimedAtMs ? other : one))
      if (earlier.worker !== worker && mayOverlap(first, times)) continue
      if (isSame) this.violated(`Performed twice at once: ${item} attempts ${earlier.attempt} and ${attempt}`)
      else this.violated(`Two at once in the serial lane ${lane}: ${earlier.item} and ${item}`)
    }
    this.running.push(performance)
  }

  /**
   * The world accepts the result of an item. `isExcused`: the next claimant could not know how the earlier performance
   * ended.
   */
  takes({ item, attempt, worker, lane }: Performance, isExcused: (earlier: Taken) => boolean): void {
    const earlier = this.taken.get(item)
    if (earlier !== undefined && lane.startsWith(LASTING) && !isExcused(earlier))
      this.violated(`Taken twice: ${item} attempts ${earlier.attempt} and ${attempt}`)
    this.taken.set(item, { worker, attempt, atMs: this.nowMs() })
  }

  /**
   * Whether the claim of an accepted attempt ended before the store had its outcome, which its process may still be
   * handing in (`isTelling`). The next claimant's idea of the store's time is ahead by at most `apartMs`.
   */
  wasToldTooLate(item: string, { attempt, worker }: Taken, about: { apartMs: number; isTelling: boolean }): boolean {
    const claim = this.claimed.get(nameOf({ item, attempt, worker }))
    const toldAtMs = this.toldAtMs.get(`${item} ${attempt}`) ?? (about.isTelling ? Number.POSITIVE_INFINITY : 0)
    return claim !== undefined && claim.untilMs - about.apartMs <= Math.min(toldAtMs, this.storeMs())
  }

  ends(performance: Performance): void {
    this.running = this.running.filter((other) => other !== performance)
  }

  /**
   * The next owner of the shard continues after its cursors. A cursor that moves back makes it read entries twice, or
   * hides entries that it passed.
   */
  private checkCursors({ shard, cursor, outcomesCursor }: Commit, before: Meta): void {
    const all = [
      ['mailbox', cursor, before.cursor],
      ['outcomes', outcomesCursor, before.outcomesCursor],
    ] as const
    for (const [of, now, then] of all)
      if (now !== '' && !isFurther(now, then))
        this.violated(`Shard ${shard}: the cursor of ${of} went from ${then} to ${now}`)
  }

  /** The next owner finds items by the lower bound of their lane, which is never above the first of them. */
  private async checkBounds(store: Store, { shard, ops }: Commit): Promise<void> {
    const prefix = laneKey(shard, '')
    const lanes = new Set(ops.filter(({ key }) => key.startsWith(prefix)).map(({ key }) => key.slice(prefix.length)))
    for (const { key, args } of ops) if (key === dueKey(shard)) lanes.add(String(args[args.length - 1]))
    for (const lane of lanes) {
      const first: Fact = { read: 'sorted', key: laneKey(shard, lane), min: 0, max: Number.MAX_SAFE_INTEGER, count: 1 }
      const values = await store.read(shard, [first, { read: 'score', key: dueKey(shard), member: lane }])
      const [item] = (values?.[0] ?? []) as readonly (readonly [string, number])[]
      const bound = values?.[1] as number | null
      if (item !== undefined && (bound === null || bound > item[1]) && !this.ungranted.has(shard))
        this.violated(`Shard ${shard}: lane ${lane} begins at ${item[1]}, the next owner would look at ${bound}`)
    }
  }

  private sawAcquire(shard: number, acquired: Acquired): void {
    if (acquired.kind !== 'ok') return
    this.takenAt.set(shard, this.nowMs())
    const epoch = epochOf(acquired.meta.token)
    if (epoch <= (this.fencedFrom.get(shard) ?? 0)) this.violated(`Shard ${shard}: taken as if it had not been fenced`)
    if (epoch <= (this.seen.epochs.get(shard) ?? 0)) this.violated(`Epoch of shard ${shard} did not rise: ${epoch}`)
    setAnd(this.seen.epochs, [shard, epoch], (undo) => this.mayUndo(shard, undo))
    const mine = [...this.handedIn].filter(([, handed]) => handed.shard === shard)
    this.found.set(shard, new Map(mine.map(([cmdId, { item }]) => [cmdId, item])))
  }

  private sawCommit(commit: Commit, { verdict, token }: { verdict: Verdict; token: string }): void {
    const { shard, seq } = commit
    const isOdd = commit.ops.some(({ key }) => key.endsWith(':odd'))
    if (verdict.kind === 'torn' || (verdict.kind === 'badop' && !isOdd))
      this.violated(`Shard ${shard}: the store answered ${verdict.kind}: ${verdict.reason}`)
    if (verdict.kind !== 'ok') return
    if (isOdd) this.violated(`Shard ${shard}: what is against the rules was written`)
    this.commits += 1
    this.shardCommits.set(shard, this.commitsOf(shard) + 1)
    if (commit.token !== token) this.violated(`Shard ${shard}: written by an owner that had lost it`)
    if (epochOf(commit.token) <= (this.fencedFrom.get(shard) ?? 0))
      this.violated(`Shard ${shard}: written by an owner from before the fence`)
    const expected = this.seen.seqs.get(shard) ?? 0
    if (seq !== expected) this.violated(`Shard ${shard}: commit after ${expected} claims to follow ${seq}`)
    const undoable = (undo: () => void): void => this.mayUndo(shard, undo)
    setAnd(this.seen.seqs, [shard, seq + 1], undoable)
    for (const { key, write } of commit.ops)
      if (write === 'UNLINK' && key.includes(':staged:')) this.sawTakenUp(shard, key.slice(key.lastIndexOf(':') + 1))
    for (const { key, write, args } of commit.ops) {
      const kind = key.slice(key.indexOf(':') + 1)
      if (write === 'XADD' && kind.startsWith('log:')) this.seen.ids.add(idOfEntry(String(args[0]), shard))
      if (write === 'HSET' && kind.startsWith('replies:')) this.sawReplies(shard, args.map(String))
      if (write === 'HSET' && kind === 'claims') this.sawClaim(shard, String(args[0]), String(args[1]))
    }
    for (const { key, write, args } of commit.ops) {
      const kind = key.slice(key.indexOf(':') + 1)
      if (write === 'HSET' && kind.startsWith('status:'))
        this.sawState(`${kind.slice(7)}.${args[0]}`, String(args[1]), undoable)
    }
  }

  /** A command or an outcome of another process is executed. */
  private sawTakenUp(shard: number, cmdId: string): void {
    const handed = this.handedIn.get(cmdId)
    if (handed === undefined) return
    this.handedIn.delete(cmdId)
    const found = this.found.get(shard)
    const wasFound = found?.delete(cmdId) === true
    this.mayUndo(shard, () => {
      this.handedIn.set(cmdId, handed)
      if (wasFound) found?.set(cmdId, handed.item)
    })
    this.sawConsumed(shard, cmdId)
  }

  private sawClaim(shard: number, item: string, packed: string): void {
    const row = parseClaim(packed)
    if (row === null || row.worker === '') return
    if ([...(this.found.get(shard)?.values() ?? [])].includes(item))
      this.violated(`Claimed while its outcome lay unread: ${item} attempt ${row.attempt}`)
    const name = nameOf({ item, attempt: row.attempt, worker: row.worker })
    this.claimed.set(name, { untilMs: row.untilMs, claimedAtMs: this.nowMs() })
    this.attempts.set(item, Math.max(row.attempt, this.attempts.get(item) ?? 0))
    if (isTerminal(this.seen.states.get(item) ?? ''))
      this.violated(`Claimed after its end: ${item} attempt ${row.attempt}`)
  }

  /** Fields `<parcel>/<place>` and how many commands from there on are executed. */
  private sawReplies(shard: number, fields: readonly string[]): void {
    for (let i = 0; i < fields.length; i += 2) {
      const [parcel = '', from = ''] = fields[i]!.split('/')
      const count = Number.parseInt(fields[i + 1]!, 10)
      for (let place = 0; place < count; place += 1) this.sawConsumed(shard, `${parcel}/${Number(from) + place}`)
    }
  }

  private sawConsumed(shard: number, cmdId: string): void {
    if (this.seen.consumed.has(cmdId)) this.violated(`Executed twice: the command or outcome ${cmdId}`)
    this.seen.consumed.add(cmdId)
    this.mayUndo(shard, () => this.seen.consumed.delete(cmdId))
  }

  private sawState(item: string, packed: string, undoable: (undo: () => void) => void): void {
    const { state, attempts } = JSON.parse(packed) as { state: string; attempts: number }
    // An attempt that a store has lost is made again under its number.
    const isLost = this.setBackAtMs.length > 0
    if (attempts > (this.attempts.get(item) ?? 0) && !isLost)
      this.violated(`Counted twice: ${item} has ${attempts} outcomes`)
    const before = this.seen.states.get(item) ?? ''
    if (isTerminal(before)) this.violated(`Ended twice: ${item} was ${before}, then ${state}`)
    setAnd(this.seen.states, [item, state], undoable)
  }
}

/** Sets a value of a map, and returns the function that restores the previous one. */
function setAnd<Key, Value>(
  map: Map<Key, Value>,
  [key, value]: [Key, Value],
  undoable: (undo: () => void) => void,
): void {
  const before = map.get(key)
  map.set(key, value)
  undoable(() => {
    if (before === undefined) map.delete(key)
    else map.set(key, before)
  })
}

function epochOf(token: string): number {
  return Number(token.split(':')[0])
}

function nameOf({ item, attempt, worker }: { item: string; attempt: number; worker: string }): string {
  return `${item} ${attempt} ${worker}`
}

function isFurther(cursor: string, than: string): boolean {
  const [now, then] = [parseCursor(cursor), parseCursor(than)]
  if (now.entryId === then.entryId) return then.done > 0 && (now.done === 0 || now.done > then.done)
  return sortableEntryId(now.entryId) > sortableEntryId(then.entryId)
}
