/** watch-each - the watch of each of several Redis, as one */
import type { Redis } from 'ioredis'
import type { OneWatch, StoreWatch } from '../store-watch.ts'

/** Which of them there are. */
const NODES_LOOK_MS = 1_000

export interface WatchesOptions {
  /** A client of each that holds something now, by its name. */
  clients(): ReadonlyMap<string, () => Redis>
  watch(name: string, client: () => Redis): Promise<OneWatch>
}

/**
 * Watches each of several Redis until it is stopped: new mail is refused while any of them is full, everything while
 * any does not keep what it takes. One that does not answer is as it was. Resolves when each was looked at once.
 */
export async function watchEach({ clients, watch }: WatchesOptions): Promise<StoreWatch> {
  const watches = new Map<string, Promise<OneWatch>>()
  const found = new Map<string, OneWatch>()
  let isStopped = false
  const look = async (): Promise<void> => {
    const now = clients()
    for (const name of watches.keys()) {
      if (now.has(name)) continue
      watches.delete(name)
      found.get(name)?.stop()
      found.delete(name)
    }
    const coming = [...now].filter(([name]) => !watches.has(name))
    await Promise.all(
      coming.map(async ([name, client]) => {
        const opening = watch(name, client)
        watches.set(name, opening)
        const one = await opening
        if (isStopped || watches.get(name) !== opening) one.stop()
        else found.set(name, one)
      }),
    )
  }
  await look()
  const timer = setInterval(() => void look(), NODES_LOOK_MS).unref()
  const all = (): OneWatch[] => [...found.values()]
  return {
    get share() {
      return Math.max(0, ...all().map(({ share }) => share))
    },
    get lack() {
      return all().find(({ lack }) => lack !== null)?.lack ?? null
    },
    get fault() {
      return all().find(({ fault }) => fault !== null)?.fault ?? null
    },
    get nodes() {
      return [...found].map(([name, { isUp, share, replicas }]) => ({ name, isUp, share, replicas }))
    },
    stop() {
      isStopped = true
      clearInterval(timer)
      for (const one of all()) one.stop()
    },
  }
}
