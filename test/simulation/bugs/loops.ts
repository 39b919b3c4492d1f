/** loops - loops of a shard, and fences, that err, each in one way. */
import { FactView, type Laid } from '../../../cluster/facts/facts.ts'
import { Overlay } from '../../../cluster/facts/overlay.ts'
import { Fence, type FenceState, type Pass } from '../../../cluster/fence.ts'
import type { Claim } from '../../../cluster/items/lane-runner.ts'
import { decideBatch, type Plan } from '../../../cluster/shard/batch.ts'
import type { Batch } from '../../../cluster/shard/batch-reader.ts'
import type { InFlightCommit } from '../../../cluster/shard/in-flight-commit.ts'
import { KnownCommits } from '../../../cluster/shard/known-commits.ts'
import { CommitLoop } from '../../../cluster/shard/loop.ts'
import type { LoopHost } from '../../../cluster/shard/loop-host.ts'
import type { ShardWorld } from '../../../cluster/shard/world.ts'
import type { Verdict } from '../../../cluster/store.ts'

/** Performs when a claim is sent, not when it is confirmed. */
export class EagerLoop extends CommitLoop {
  protected override sending(plan: Plan): void {
    for (const claim of plan.claims)
      this.world.runner.start(claim, {
        shard: this.id,
        report: (done, outcome) => this.world.reported(this.id, done, outcome),
      })
  }

  protected override startClaims(claims: readonly Claim[]): void {
    for (const claim of claims) this.world.runner.release(claim.lane)
  }
}

/** Believes its reads. */
export class BareLoop extends CommitLoop {
  protected override laidFor(_batch: Batch): readonly Laid[] {
    return []
  }
}

/** Forgets a commit's writes when it is confirmed, though a read may be older. */
export class ForgetfulLoop extends CommitLoop {
  protected override keepLaid(_laid: Laid): void {
    this.laid = []
  }
}

/** Decides while a commit is in flight, and answers at once what writes nothing. */
export class HastyLoop extends CommitLoop {
  protected override mayDecide(): boolean {
    if (this.inFlight === null) return true
    const batch = this.next
    if (batch !== null && !batch.reading) this.answerEmpty(batch)
    return false
  }

  private answerEmpty(batch: Batch): void {
    const flight = this.inFlight!
    const laid = [...this.laidFor(batch), { seq: this.meta.seq + 1, overlay: flight.plan.overlay }]
    const view = (staged: Overlay) => new FactView(batch.rounds, laid, staged, this.knownFields())
    const context = { ...this.batchContext(batch), view }
    const decided = decideBatch(batch.works, context)
    for (const work of batch.works) work.needs = 0
    if (decided.kind === 'need') return
    if (decided.plan.ops.length > 0) {
      this.discard(decided.plan)
      return
    }
    this.next = null
    this.finished(decided.plan)
  }
}

/** Lays a commit's writes over hashes, and over nothing else. */
export class HashLoop extends CommitLoop {
  protected override laidFor(batch: Batch): readonly Laid[] {
    return super.laidFor(batch).map(({ seq, overlay }) => ({ seq, overlay: new HashOverlay(overlay) }))
  }
}

class HashOverlay extends Overlay {
  private readonly whole: Overlay

  constructor(whole: Overlay) {
    super()
    this.whole = whole
  }

  override field(key: string, field: string): string | null | undefined {
    return this.whole.field(key, field)
  }

  override hash(key: string, below: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    return this.whole.hash(key, below)
  }
}

/** Continues in a serial lane whatever another worker has claimed there. */
export class ImpatientLoop extends CommitLoop {
  constructor(id: number, world: ShardWorld, host: LoopHost) {
    super(id, world, host)
    this.items.standing.set = () => this.items.standing
  }
}

/** Remembers of a lane what was read, and not what was written since. */
export class StaleLoop extends CommitLoop {
  constructor(id: number, world: ShardWorld, host: LoopHost) {
    super(id, world, host)
    const { fields } = this.reader
    const note = fields.note.bind(fields)
    fields.note = (noted) => note({ ...noted, ops: noted.ops.filter(({ key }) => !key.includes(':due:')) })
  }
}

/** Believes what it read while the outcome of a commit that did not happen was unknown. */
export class BelievingLoop extends CommitLoop {
  protected override settle(flight: InFlightCommit, verdict: Verdict): void {
    flight.isDoubted = false
    super.settle(flight, verdict)
  }
}

/** Continues after the store has lost commits as if nothing had happened. */
export class SilentLoop extends CommitLoop {
  override readonly knownCommits = new ContentCommits()
}

class ContentCommits extends KnownCommits {
  override lossAt(): null {
    return null
  }
}

/** While heartbeats are answered, the process keeps everything it owns, even after an incident. */
export class ForgivingFence extends Fence {
  override look({ shard }: Pass): FenceState {
    return super.look(this.passOf(shard))
  }
}

/** Does not know that heartbeats have lapsed until the next one is answered. */
export class UnawareFence extends Fence {
  private isAsked = false

  override beatAnswered(sentAtMs: number): boolean {
    this.isAsked = true
    const lapsed = super.beatAnswered(sentAtMs)
    this.isAsked = false
    return lapsed
  }

  override hasLapsed(): boolean {
    return this.isAsked && super.hasLapsed()
  }
}

/** Relies on the last answered heartbeat for as long as other processes consider this one alive. */
export class HopefulFence extends Fence {
  override beatSent(): number {
    const atMs = super.beatSent()
    this.cells[2] = 0n
    return atMs
  }

  override commitSent(): void {
    // Nothing waits.
  }

  override look(pass: Pass): FenceState {
    const state = super.look(pass)
    return state === 'held' && this.cells[0] !== 0n ? 'open' : state
  }
}

/** Keeps the states that a batch produced, whatever the result of its commit. */
export class StubbornLoop extends CommitLoop {
  protected override discard(plan: Plan): void {
    super.discard(plan)
    this.reader.memory.take(plan.draft, this.world.clock.nowMs())
  }
}

/** Knows the fields that a refused commit would have written. */
export class WishfulLoop extends CommitLoop {
  protected override discard(plan: Plan): void {
    super.discard(plan)
    this.reader.fields.note(plan)
  }
}
