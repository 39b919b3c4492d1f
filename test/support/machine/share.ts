/**
 * share - lets so much work run at once as the processors can do: what waits for clocks leaves room for others.
 */

/** Work that waits for its turn. */
export interface Waiting {
  /** Processors that it keeps busy. */
  readonly share: number
  run(): Promise<void>
}

/**
 * Runs all of it. What stands first starts first, unless there is no room for it: then what stands after it does, if it
 * fits.
 * @param room processors that may be kept busy
 * @param mostAtOnce how many run at once however little they do
 */
export async function runShared(
  all: readonly Waiting[],
  { room, mostAtOnce }: { room: number; mostAtOnce: number },
): Promise<void> {
  const waiting = [...all]
  const running = new Set<Promise<void>>()
  let free = room
  while (waiting.length > 0 || running.size > 0) {
    const next = running.size < mostAtOnce ? waiting.findIndex(({ share }) => share <= free || running.size === 0) : -1
    if (next < 0) {
      await Promise.race(running)
      continue
    }
    const [{ share, run }] = waiting.splice(next, 1) as [Waiting]
    free -= share
    const one = run().finally(() => {
      free += share
      running.delete(one)
    })
    running.add(one)
  }
}
