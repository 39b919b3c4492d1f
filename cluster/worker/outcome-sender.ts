/**
 * outcome-sender - outcomes of attempts whose shard is no longer here, on their way to its next owner.
 *
 * Each is sent until the store acknowledges it, so it may be stored twice; a repeated outcome changes nothing. Their
 * number is bounded by the attempts of a process, because an attempt has one outcome.
 */
import type { Command, OutcomeBody } from '../behaviour.ts'
import type { Clock } from '../clock.ts'
import { newCmdId } from '../cmd-id.ts'
import type { Claim } from '../items/lane-runner.ts'
import { packStaged } from '../mailbox/staged.ts'
import { RESEND_MS_MAX } from '../shard/ask-timeout.ts'
import type { Store } from '../store.ts'

type LaneClaim = Pick<Claim, 'lane' | 'item' | 'attempt'>

const RETRY_MS = 50

export class OutcomeSender {
  private readonly store: Store
  private readonly clock: Clock
  private readonly random: () => number
  private underWay = 0

  constructor({ store, clock, random }: { store: Store; clock: Clock; random: () => number }) {
    this.store = store
    this.clock = clock
    this.random = random
  }

  /** Outcomes that the store has not confirmed yet. */
  get size(): number {
    return this.underWay
  }

  /** Hands in how an attempt ended. Resolves when the store has it. */
  send(shard: number, { lane, item, attempt }: LaneClaim, outcome: unknown): Promise<void> {
    const body: OutcomeBody = { lane, item, attempt, current: false, outcome }
    const cmdId = newCmdId(this.clock.nowMs(), this.random)
    return this.resend(shard, { name: 'outcome', cmdId, body })
  }

  /** Hands in an outcome that a shard had not committed. */
  async resend(shard: number, command: Command): Promise<void> {
    this.underWay += 1
    const { cmdId } = command
    const body = packStaged(command)
    for (let waitMs = RETRY_MS; !(await this.store.handIn({ shard, cmdId, body })); waitMs = nextWait(waitMs))
      await new Promise<void>((resolve) => this.clock.after(waitMs, resolve))
    this.underWay -= 1
  }
}

function nextWait(waitMs: number): number {
  return Math.min(waitMs * 2, RESEND_MS_MAX)
}
