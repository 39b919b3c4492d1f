/**
 * crash-shard - a shard that ends its own process with SIGKILL at a named step, the first time that it comes there.
 */

import type { Claim } from '../../../cluster/items/lane-runner.ts'
import type { Plan } from '../../../cluster/shard/batch.ts'
import type { InFlightCommit } from '../../../cluster/shard/in-flight-commit.ts'
import { CommitLoop } from '../../../cluster/shard/loop.ts'
import { type MakeLoop, Shard } from '../../../cluster/shard/shard.ts'
import type { ShardWorld } from '../../../cluster/shard/world.ts'
import type { Verdict } from '../../../cluster/store.ts'
import type { Work } from '../../../cluster/work.ts'

export const CRASH_POINTS = [
  'read',
  'decided',
  'committed, reply lost',
  'claim committed',
  'outcome not committed',
  'acquired',
  'released',
] as const
/** `after <name>`: an order of that name was committed, and its sender gets no answer. */
export type CrashPoint = (typeof CRASH_POINTS)[number] | `after ${string}`

export class CrashShard extends Shard {
  private readonly point: CrashPoint | null

  constructor(id: number, world: ShardWorld, point: CrashPoint | null) {
    super(id, world, crashLoopOf(point))
    this.point = point
  }

  override async open(saw: string): Promise<boolean> {
    const opened = await super.open(saw)
    // Not the first shard: some are taken, most are not.
    if (this.id === 100) dieAt('acquired', this.point)
    return opened
  }

  override async close(): Promise<void> {
    await super.close()
    if (this.id === 100) dieAt('released', this.point)
  }
}

function crashLoopOf(point: CrashPoint | null): MakeLoop {
  const isNamed = ({ command }: Work): boolean => point === `after ${command.name}`
  return class CrashLoop extends CommitLoop {
    protected override mayDecide(): boolean {
      if (this.next?.works.some(isSend) === true) dieAt('read', point)
      return super.mayDecide()
    }

    protected override sending(plan: Plan): void {
      if (plan.works.some(isSend)) dieAt('decided', point)
      if (plan.works.some(({ source }) => source === 'outcome')) dieAt('outcome not committed', point)
      super.sending(plan)
    }

    protected override settle(flight: InFlightCommit, verdict: Verdict): void {
      if (verdict.kind === 'ok' && flight.plan.works.some(isSend)) dieAt('committed, reply lost', point)
      if (verdict.kind === 'ok' && flight.plan.works.some(isNamed)) dieAt(point as CrashPoint, point)
      super.settle(flight, verdict)
    }

    protected override startClaims(claims: readonly Claim[]): void {
      if (claims.length > 0) dieAt('claim committed', point)
      super.startClaims(claims)
    }
  }
}

function dieAt(here: CrashPoint, point: CrashPoint | null): void {
  if (here === point) process.kill(process.pid, 'SIGKILL')
}

function isSend(work: Work): boolean {
  return work.source === 'local' && (work.command.name === 'accept' || work.command.name === 'receive')
}
