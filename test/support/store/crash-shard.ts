/**
 * crash-shard - a shard that ends its own process with SIGKILL at a named step, the first time that it comes there.
 */

import type { Claim } from '../../../cluster/items/pump.ts'
import type { Plan } from '../../../cluster/shard/batch.ts'
import type { InFlight } from '../../../cluster/shard/loop.ts'
import { Shard } from '../../../cluster/shard/shard.ts'
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
export type CrashPoint = (typeof CRASH_POINTS)[number]

export class CrashShard extends Shard {
  point: CrashPoint | null = null

  override async open(saw: string): Promise<boolean> {
    const opened = await super.open(saw)
    // Not the first shard: some are taken, most are not.
    if (this.id === 100) this.dieAt('acquired', true)
    return opened
  }

  override async close(): Promise<void> {
    await super.close()
    this.dieAt('released', this.id === 100)
  }

  protected override mayDecide(): boolean {
    this.dieAt('read', this.next?.works.some(isSend) === true)
    return super.mayDecide()
  }

  protected override sending(plan: Plan): void {
    this.dieAt('decided', plan.works.some(isSend))
    this.dieAt(
      'outcome not committed',
      plan.works.some(({ source }) => source === 'outcome'),
    )
    super.sending(plan)
  }

  protected override settle(flight: InFlight, verdict: Verdict): void {
    this.dieAt('committed, reply lost', verdict.kind === 'ok' && flight.plan.works.some(isSend))
    super.settle(flight, verdict)
  }

  protected override startClaims(claims: readonly Claim[]): void {
    this.dieAt('claim committed', claims.length > 0)
    super.startClaims(claims)
  }

  private dieAt(point: CrashPoint, isHere: boolean): void {
    if (isHere && this.point === point) process.kill(process.pid, 'SIGKILL')
  }
}

function isSend(work: Work): boolean {
  return work.source === 'local' && work.command.name === 'accept'
}
