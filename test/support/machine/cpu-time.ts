/**
 * cpu-time - how long a piece of work keeps the processor busy: other than wall time, a busy machine does not change
 * it.
 */

/** Milliseconds of processor time that `work` took. */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
