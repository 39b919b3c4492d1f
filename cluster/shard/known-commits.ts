/**
 * known-commits - which commits of a shard are known here to be in the store, and when the last of our own were
 * confirmed: it outlives the shard's object.
 *
 * Guarantees: a loss in the store is reported once, however often and by whichever caller it is checked.
 */
import type { Meta } from '../store.ts'

/** A failover loses some seconds; of older commits only their age is reported. */
const REMEMBERED = 64

/** Commits that were confirmed and that the store no longer has. */
export interface Loss {
  readonly commits: number
  /** When the first lost commit was confirmed; for a larger loss, the first known one. Null if unknown. */
  readonly sinceMs: number | null
}

export class KnownCommits {
  private readonly times: number[] = []
  private last = 0
  private beganAt = 0
  private token = ''
  private isTold = false

  /** The shard was taken with `token` at `seq`: earlier commits of others are known as well, but not their time. */
  begin({ seq, token }: Pick<Meta, 'seq' | 'token'>): void {
    this.last = seq
    this.beganAt = seq
    this.token = token
  }

  /** The commit that brought the shard to `seq` was confirmed at `nowMs`. */
  note(seq: number, nowMs: number): void {
    this.times[seq % REMEMBERED] = nowMs
    this.last = seq
  }

  /**
   * The sequence number up to which a store with this `meta` has the commits that are known here. A store that has lost
   * the grant of the shard has lost everything confirmed since, even if others have committed in its place. Each epoch
   * is granted once and they only rise, so another token with no higher epoch is from before this grant.
   */
  keptBy(meta: Pick<Meta, 'seq' | 'token'> | null): number {
    const { seq, token } = meta ?? { seq: 0, token: '' }
    const isForgotten = token !== this.token && epochOf(token) <= epochOf(this.token)
    return isForgotten ? Math.min(seq, this.beganAt) : seq
  }

  /** The commits that a store at `storeSeq` has lost; null for none, and for a loss already reported. */
  lossAt(storeSeq: number): Loss | null {
    const commits = this.last - storeSeq
    if (this.isTold || commits <= 0) return null
    this.isTold = true
    const first = Math.max(storeSeq + 1, this.last - REMEMBERED + 1)
    const places = Array.from({ length: this.last - first + 1 }, (_, place) => first + place)
    const atMs = places.map((seq) => this.times[seq % REMEMBERED]).find((time) => time !== undefined)
    return { commits, sinceMs: atMs ?? null }
  }
}

function epochOf(token: string): number {
  return Number(token.split(':')[0])
}
