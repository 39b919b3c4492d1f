/**
 * histogram - how long something took, counted in buckets that add up over processes and over time
 *
 * Counting compares some twenty bounds and adds one. It allocates nothing.
 */

/** Upper bounds, in seconds, as `le` of the page; longer durations count only in the total. */
export const BOUNDS_S: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800,
]
const BOUNDS_MS: readonly number[] = BOUNDS_S.map((seconds) => seconds * 1000)

/** Durations of one kind. */
export class TimeHistogram {
  /** By bucket, not cumulative; the last one is for durations above every bound. */
  private readonly counts: number[] = Array.from({ length: BOUNDS_MS.length + 1 }, () => 0)
  private sumMs = 0

  /** Counts a duration in milliseconds. Negative values count as zero. */
  record(ms: number): void {
    const spentMs = Math.max(ms, 0)
    let at = 0
    while (at < BOUNDS_MS.length && spentMs > (BOUNDS_MS[at] as number)) at += 1
    this.counts[at] = (this.counts[at] as number) + 1
    this.sumMs += spentMs
  }

  /** Its lines of the page. Takes the metric's name and the labels in braces, '' for none. */
  lines(name: string, labels = ''): string[] {
    const before = labels === '' ? '' : `${labels},`
    const after = labels === '' ? '' : `{${labels}}`
    let sum = 0
    const buckets = this.counts.map((count, at) => {
      sum += count
      return `${name}_bucket{${before}le="${BOUNDS_S[at] ?? '+Inf'}"} ${sum}`
    })
    return [...buckets, `${name}_sum${after} ${this.sumMs / 1000}`, `${name}_count${after} ${sum}`]
  }
}
