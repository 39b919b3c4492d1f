/**
 * recent-asks - the results of the asks of the last seconds, because a process that refuses nearly all of them is not
 * ready.
 */

const WITHIN_MS = 4_000
const STEP_MS = 500
/** Fewer are not significant. */
const ASKS_MIN = 5
const REFUSED_SHARE = 0.8

interface Step {
  readonly n: number
  asks: number
  refused: number
}

export class RecentAsks {
  private steps: Step[] = []

  /** An ask has ended. */
  note(isRefused: boolean, atMs: number): void {
    const n = Math.floor(atMs / STEP_MS)
    let step = this.steps.at(-1)
    if (step?.n !== n) {
      step = { n, asks: 0, refused: 0 }
      this.steps = [...this.within(atMs), step]
    }
    step.asks += 1
    if (isRefused) step.refused += 1
  }

  /** Whether nearly all of the last asks were refused. */
  areRefused(atMs: number): boolean {
    const steps = this.within(atMs)
    const asks = steps.reduce((sum, step) => sum + step.asks, 0)
    const refused = steps.reduce((sum, step) => sum + step.refused, 0)
    return asks >= ASKS_MIN && refused >= REFUSED_SHARE * asks
  }

  private within(atMs: number): Step[] {
    return this.steps.filter(({ n }) => n * STEP_MS > atMs - WITHIN_MS)
  }
}
