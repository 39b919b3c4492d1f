/**
 * in-flight-commit - a commit on its way: sent until there is a verdict on it, or asked of the next owner
 *
 * Guarantees that without an answer the same bytes are sent again; no caller gets an answer for a commit with an
 * unknown outcome.
 */
import type { Commit, Verdict } from '../store.ts'
import { answerWork } from '../work.ts'
import type { Plan } from './batch.ts'
import type { ShardWorld } from './world.ts'

/** Wait before a failed step is tried again, ms. */
export const RETRY_MS = 50
/** Time limit for reading the state that the next owner found. */
const FENCED_MS_MAX = 3_000

export class InFlightCommit {
  readonly plan: Plan
  readonly commit: Commit
  /** Monotonic. */
  readonly sentAtMs: number
  /** A sending got no answer: it may have happened. */
  isDoubted = false
  private readonly world: ShardWorld
  private isSilenced = false
  private isOver = false
  /** Receives the outcome once the next owner is asked, after the shard is left. */
  private told: ((hasHappened: boolean | null) => void) | null = null

  constructor(world: ShardWorld, plan: Plan, commit: Commit) {
    this.world = world
    this.plan = plan
    this.commit = commit
    this.sentAtMs = world.clock.monotonicMs()
  }

  /** No caller waits for a verdict any longer, and a late answer is ignored. */
  end(): void {
    this.isOver = true
  }

  /** Its asks are let go, without an answer, once. */
  silence(): void {
    if (this.isSilenced) return
    this.isSilenced = true
    for (const work of this.plan.works) answerWork(work, { kind: 'silent' })
  }

  /** Sends it; without an answer the same again, until there is a verdict. */
  async send(settle: (verdict: Verdict) => void): Promise<void> {
    const { fence, store, log, clock } = this.world
    const { shard, seq } = this.commit
    // If the outcome is unknown, the same commit is sent again past the store's memory bound: if it happened the
    // answer is DUP, otherwise it must get a verdict.
    const commit = this.isDoubted ? { ...this.commit, frees: true } : this.commit
    fence.commitSent(shard)
    const verdict = await store.commit(commit)
    if (this.isOver) return
    // The next owner may not know the commit yet. A confirmation is final all the same, and other verdicts do not
    // count.
    if (this.told !== null) return verdict.kind === 'ok' || verdict.kind === 'dup' ? this.told(true) : undefined
    const isLost = verdict.kind === 'lost'
    const isAnswered = !isLost && verdict.kind !== 'unsent'
    if (isAnswered) {
      fence.commitAnswered(shard)
      this.world.answered()
    }
    const isNew = isLost && !this.isDoubted
    this.isDoubted ||= isLost
    if (!this.isDoubted || (isAnswered && verdict.kind !== 'refused' && verdict.kind !== 'away'))
      return void settle(verdict)
    if (isNew) log.doubt({ shard, seq })
    clock.after(RETRY_MS, () => {
      if (!this.isOver) void this.send(settle)
    })
  }

  /**
   * Requests the state found by the next owner; `told` receives whether the commit had happened, or null if the next
   * owner left no record, or there is none.
   */
  async askNextOwner(
    told: (hasHappened: boolean | null) => void,
    sinceMs = this.world.clock.monotonicMs(),
  ): Promise<void> {
    const { store, clock } = this.world
    const { shard, token, seq, commitId } = this.commit
    this.told = told
    const found = await store.fenced({ shard, token })
    if (this.isOver) return
    if (found !== null) return void told(found.seq > seq || found.last === commitId)
    if (clock.monotonicMs() - sinceMs >= FENCED_MS_MAX) return void told(null)
    clock.after(RETRY_MS, () => {
      if (!this.isOver) void this.askNextOwner(told, sinceMs)
    })
  }
}
