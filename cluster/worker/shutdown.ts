/**
 * shutdown - how a worker ends: work in progress ends first, its shards go to others, and how its attempts ended is
 * handed in before it goes.
 *
 * Without that, mail would be sent twice, because its claims are free as soon as it is gone. So a worker that is
 * disconnected from a part of the store and gives up waits for that part, as long as its claims last.
 */
import type { Clock } from '../clock.ts'
import type { LaneRunner } from '../items/lane-runner.ts'
import type { Holdings } from './holdings.ts'
import { CLAIMS_STAND_MS } from './members.ts'
import type { OutcomeSender } from './outcome-sender.ts'

const EFFECTS_MS = 8_000
const LOOK_MS = 20
/** Then outcomes of interrupted attempts are handed in. */
const END_MS = EFFECTS_MS + 500

export interface ShutdownDeps {
  readonly clock: Clock
  readonly runner: LaneRunner
  readonly holdings: Holdings
  readonly sender: OutcomeSender
}

export class Shutdown {
  private readonly deps: ShutdownDeps

  constructor(deps: ShutdownDeps) {
    this.deps = deps
  }

  /**
   * Ends everything in eight seconds and a half, counted from `startedAtMs` (monotonic). If others take shards
   * (`areOthers`), its own are released at once, otherwise when attempts have ended.
   */
  async leave({ startedAtMs, areOthers }: { startedAtMs: number; areOthers: boolean }): Promise<void> {
    const { clock, runner, holdings, sender } = this.deps
    const tookMs = (): number => clock.monotonicMs() - startedAtMs
    if (areOthers) await holdings.close()
    for (; runner.size > 0 && tookMs() < EFFECTS_MS; await this.wait()) runner.abortLate(tookMs())
    runner.abortAll()
    await holdings.close()
    while (runner.size + sender.size > 0 && tookMs() < END_MS) await this.wait()
  }

  /**
   * Gives the shards away, cuts attempts that do not wait for a final answer, and waits, a minute at most, until all
   * outcomes are handed in.
   */
  async giveUp(): Promise<void> {
    const { clock, runner, holdings, sender } = this.deps
    const startedAtMs = clock.monotonicMs()
    runner.giveUp()
    void holdings.close()
    while (holdings.shards.size + runner.size + sender.size > 0 && clock.monotonicMs() - startedAtMs < CLAIMS_STAND_MS)
      await this.wait()
  }

  private wait(): Promise<void> {
    return new Promise((resolve) => this.deps.clock.after(LOOK_MS, resolve))
  }
}
