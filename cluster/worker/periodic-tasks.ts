/** periodic-tasks - the repeated tasks of a worker, each by itself, until it ends */
import type { Clock } from '../clock.ts'

export class PeriodicTasks {
  private readonly clock: Clock
  private readonly cancels = new Set<() => void>()
  private hasEnded = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Calls repeatedly, `ms` milliseconds after the previous call has ended. */
  every(ms: number, call: () => Promise<void>): void {
    const cancel = this.clock.after(ms, () => {
      this.cancels.delete(cancel)
      if (!this.hasEnded) void call().then(() => this.every(ms, call))
    })
    this.cancels.add(cancel)
  }

  /** No call begins after this. */
  end(): void {
    this.hasEnded = true
    for (const cancel of this.cancels) cancel()
  }
}
