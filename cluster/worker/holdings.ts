/**
 * holdings - the shards that a worker holds: which it takes, which it gives away, and to whom the others belong.
 *
 * A free shard (no owner, or a dead one) is taken at once by the worker to which it belongs among the living, and by
 * any other a moment later, so that none stays free. A shard that belongs to another living worker moves there once
 * nothing has changed for a while, a few at a time.
 */
import type { Clock } from '../clock.ts'
import type { KnownCommits, Loss } from '../shard/known-commits.ts'
import type { Shard } from '../shard/shard.ts'
import { type Meta, MOVE_PREFIX, type Store } from '../store.ts'
import type { Members } from './members.ts'
import { wantedOwner } from './rendezvous.ts'

const OPEN_AT_ONCE = 64
/** A free shard is left to the worker to which it belongs for this long. */
const GRACE_MS = 1_000
const CALM_MS = 5_000
const MOVES_MAX = 8
/** Work that cannot be committed by then cannot be committed at all. */
const GIVE_AWAY_MS = 1_000

/** A shard that may be taken, and its token in the store. */
interface Free {
  readonly shard: number
  readonly saw: string
}

export interface HoldingsDeps {
  readonly me: string
  readonly store: Store
  readonly clock: Clock
  readonly members: Members
  /** Number of shards of the installation. */
  readonly count: number
  readonly takesShards: boolean
  readonly makeShard: (id: number) => Shard
  /** Whether this worker is cut off from a part of the store. */
  readonly ails: () => boolean
  /** The store has lost commits of a shard held here. */
  readonly lost: (shard: number, loss: Loss) => void
  /** Writes the record of this worker, and reads those of all workers again. */
  readonly beat: () => Promise<boolean>
  /** Whether others may have removed the record of this worker, because its heartbeats have lapsed. */
  readonly hasLapsed: () => boolean
}

export class Holdings {
  readonly shards = new Map<number, Shard>()
  private readonly deps: HoldingsDeps
  private readonly opening = new Set<number>()
  private readonly owners = new Map<number, string>()
  private readonly freeSinceMs = new Map<number, number>()
  /** The last confirmed commit of a shard that ended here. The next owner must find it. */
  private readonly ended = new Map<number, KnownCommits>()
  /** Shards whose store did not answer; no worker can take them, and no shard is at fault. */
  private readonly unknown = new Set<number>()
  private isClosed = false

  constructor(deps: HoldingsDeps) {
    this.deps = deps
  }

  /** The owner of a shard at the last look; '' for none. */
  ownerOf(shard: number): string {
    return this.owners.get(shard) ?? ''
  }

  /** To whom each shard belongs among the living. */
  wantedOwners(): string[] {
    const { clock, count, members, takesShards } = this.deps
    const atMs = clock.monotonicMs()
    const takers = takesShards ? this.takers(atMs) : members.takers(atMs)
    return Array.from({ length: count }, (_, shard) => wantedOwner(shard, takers))
  }

  /** Every shard of the installation runs here. */
  get allRun(): boolean {
    return this.shards.size === this.deps.count && [...this.shards.values()].every(({ running }) => running)
  }

  /** Some shard is free, as far as is known here. */
  get someAreFree(): boolean {
    const atMs = this.deps.clock.monotonicMs()
    for (let shard = 0; shard < this.deps.count; shard += 1) if (!this.isServed(shard, atMs)) return true
    return false
  }

  /** Whether a shard runs here, or has a living owner elsewhere, or cannot be taken now. */
  isServed(shard: number, atMs: number): boolean {
    if (this.shards.get(shard)?.running === true || this.unknown.has(shard)) return true
    const owner = this.ownerOf(shard)
    return owner !== '' && owner !== this.deps.me && !this.isForfeit(owner, atMs)
  }

  /** Checks shards (all by default): takes free ones, and drops those that another worker holds. */
  async check(which?: readonly number[]): Promise<void> {
    if (this.isClosed) return
    const { store, members } = this.deps
    const asked = which ?? Array.from({ length: this.deps.count }, (_, shard) => shard)
    const before = new Map([...this.shards].map(([id, shard]) => [id, { shard, seq: shard.seq }]))
    const ended = new Map(this.ended)
    const metas = await store.metas(asked)
    if (metas === null || this.isClosed) return
    // A worker writes its record before it takes a shard: records read after the metas name every living owner.
    const isNew = metas.some((meta) => isWorker(meta?.owner ?? '') && !members.knows(meta?.owner ?? ''))
    if (isNew && !(await this.deps.beat())) return
    if (this.isClosed) return
    const free: Free[] = []
    for (const [place, shard] of asked.entries()) {
      const meta = metas[place]
      if (meta === undefined) {
        this.unknown.add(shard)
        continue
      }
      this.unknown.delete(shard)
      const mine = before.get(shard)
      if (mine !== undefined) this.compare(shard, mine, meta)
      this.compareEnded(shard, ended.get(shard), meta)
      if (this.mayTake(shard, meta)) free.push({ shard, saw: meta?.token ?? '' })
    }
    const open = await this.mayOpen(free)
    for (let i = 0; i < open.length; i += OPEN_AT_ONCE)
      await Promise.all(open.slice(i, i + OPEN_AT_ONCE).map((one) => this.open(one)))
  }

  /** Gives away a few of the shards that belong to others, when all has been calm. */
  async move(): Promise<void> {
    const { clock, members, me, takesShards } = this.deps
    const atMs = clock.monotonicMs()
    if (this.isClosed || !takesShards || members.calmMs(atMs) < CALM_MS || this.someAreFree) return
    const takers = this.takers(atMs)
    const going = [...this.shards.values()].filter(({ id, accepts }) => accepts && wantedOwner(id, takers) !== me)
    await Promise.all(going.slice(0, MOVES_MAX).map((shard) => this.release(shard)))
  }

  /** A shard object has ended by itself: another one takes its place when the shard is still free. */
  async gone(shard: Shard): Promise<void> {
    if (this.shards.get(shard.id) !== shard) return
    this.shards.delete(shard.id)
    this.ended.set(shard.id, shard.knownCommits)
    await this.check([shard.id])
  }

  /** Gives all shards to others, if some can serve them; work in progress has little time. */
  async giveAway(): Promise<void> {
    if (this.isClosed || this.deps.members.takers(this.deps.clock.monotonicMs()).length === 0) return
    await Promise.all([...this.shards.values()].map((shard) => this.release(shard, GIVE_AWAY_MS)))
  }

  /** Gives everything back and takes nothing more. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.shards.values()].map((shard) => this.release(shard)))
  }

  private async release(shard: Shard, maxMs?: number): Promise<void> {
    await shard.close(maxMs)
    if (this.shards.get(shard.id) !== shard) return
    this.shards.delete(shard.id)
    this.ended.set(shard.id, shard.knownCommits)
    this.owners.set(shard.id, '')
    this.freeSinceMs.set(shard.id, this.deps.clock.monotonicMs())
  }

  /**
   * A different token, or fewer commits than were confirmed here: another process has it, or the store has lost some. A
   * halted shard is dropped only for a different token, which a repair gives it.
   */
  private compare(shard: number, known: { shard: Shard; seq: number }, meta: Meta | null): void {
    const mine = this.shards.get(shard)
    if (mine !== known.shard || !(mine.accepts || mine.halted)) return
    const kept = mine.knownCommits.keptBy(meta)
    const hasLost = !mine.halted && known.seq > kept
    if (hasLost) mine.noteLoss(kept)
    if (mine.token !== (meta?.token ?? '') || hasLost) mine.drop()
  }

  /** The last known state of a shard when it ended here. A store behind it has lost commits. */
  private compareEnded(shard: number, known: KnownCommits | undefined, meta: Meta | null): void {
    if (known === undefined) return
    const loss = known.lossAt(known.keptBy(meta))
    if (loss !== null) this.deps.lost(shard, loss)
    // The new holder knows as much, and reports later losses.
    else if (meta !== null && meta.owner !== '' && meta.owner !== this.deps.me) this.ended.delete(shard)
  }

  private mayTake(shard: number, meta: Meta | null): boolean {
    const { clock, members, me, takesShards } = this.deps
    const atMs = clock.monotonicMs()
    const owner = meta?.owner ?? ''
    this.owners.set(shard, owner)
    const isFree = owner === '' || owner === me || this.isForfeit(owner, atMs)
    if (!isFree) this.freeSinceMs.delete(shard)
    if (!isFree || !takesShards || this.shards.has(shard) || this.opening.has(shard)) return false
    if (this.deps.ails() && members.takers(atMs).length > 0) return false
    if (owner === me || wantedOwner(shard, this.takers(atMs)) === me) return true
    const sinceMs = this.freeSinceMs.get(shard) ?? atMs
    this.freeSinceMs.set(shard, sinceMs)
    return atMs - sinceMs >= GRACE_MS
  }

  /**
   * Whether the shards of another worker are free: it is dead, or unhealthy while this one is healthy. A move never is.
   */
  private isForfeit(owner: string, atMs: number): boolean {
    const { members, ails } = this.deps
    if (!isWorker(owner)) return false
    return members.isDead(owner, atMs) || (!ails() && members.ails(owner))
  }

  private takers(atMs: number): string[] {
    const others = this.deps.members.takers(atMs)
    return this.deps.ails() && others.length > 0 ? others : [...others, this.deps.me]
  }

  /** An owner without a record is dead to all others: while there may be none, only own shards are taken again. */
  private async mayOpen(free: readonly Free[]): Promise<readonly Free[]> {
    const { beat, hasLapsed, me } = this.deps
    const isHidden = free.length > 0 && hasLapsed() && !(await beat())
    return isHidden ? free.filter(({ shard }) => this.ownerOf(shard) === me) : free
  }

  private async open({ shard: id, saw }: Free): Promise<void> {
    this.opening.add(id)
    const shard = this.deps.makeShard(id)
    const opened = await shard.open(saw)
    this.opening.delete(id)
    if (!opened || !shard.running) return
    const ended = this.ended.get(id)
    if (ended !== undefined) shard.noteLoss(ended.keptBy({ seq: shard.seq, token: saw }), ended)
    this.ended.delete(id)
    if (this.isClosed) return shard.close()
    this.freeSinceMs.delete(id)
    this.owners.set(id, this.deps.me)
    this.shards.set(id, shard)
    // Commands that came before its bells were for it.
    shard.ring()
  }
}

/** Whether an owner that `meta` names is a worker: otherwise it is empty, or a move between two primaries. */
function isWorker(owner: string): boolean {
  return owner !== '' && !owner.startsWith(MOVE_PREFIX)
}
