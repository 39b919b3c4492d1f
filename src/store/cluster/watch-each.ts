/** watch-each - watches several Redis servers and combines the results */
import type { Redis } from 'ioredis'
import type { OneWatch, StoreWatch } from '../store-watch.ts'

/** Interval at which the list of nodes is updated. */
const NODES_LOOK_MS = 1_000

export interface WatchesOptions {
  /** Clients of the servers that now hold shards, by name. */
  clients(): ReadonlyMap<string, () => Redis>
  /** Watches one server. `onFault` is the option of `watchStore`. */
  watch(name: string, client: () => Redis, onFault: (isFaulty: boolean) => void): Promise<OneWatch>
  /** Called with each change, with whether any server is faulty. */
  onFault(isFaulty: boolean): void
}

/**
 * Watches several Redis servers until it is stopped. New mail is refused while any of them is full, and all requests
 * while any is not durable. A server that does not answer keeps its last state. Faults of a server without shards are
 * ignored. Resolves after the first check of each.
 */
export async function watchEach({ clients, watch, onFault }: WatchesOptions): Promise<StoreWatch> {
  const watches = new Map<string, symbol>()
  const found = new Map<string, OneWatch>()
  const faulty = new Set<string>()
  let isStopped = false
  const tell = (name: string, isFaulty: boolean): void => {
    if (isFaulty) faulty.add(name)
    else faulty.delete(name)
    onFault(faulty.size > 0)
  }
  const look = async (): Promise<void> => {
    const now = clients()
    for (const name of watches.keys()) {
      if (now.has(name)) continue
      watches.delete(name)
      found.get(name)?.stop()
      found.delete(name)
      if (faulty.has(name)) tell(name, false)
    }
    const coming = [...now].filter(([name]) => !watches.has(name))
    await Promise.all(
      coming.map(async ([name, client]) => {
        const key = Symbol(name)
        watches.set(name, key)
        // Results that arrive after it is dropped are ignored.
        const one = await watch(name, client, (isFaulty) => {
          if (watches.get(name) === key) tell(name, isFaulty)
        })
        if (isStopped || watches.get(name) !== key) one.stop()
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
      return [...found].map(([name, { isUp, share, replicas, replicasWanted, clockOffMs }]) => {
        return { name, isUp, share, replicas, replicasWanted, clockOffMs }
      })
    },
    stop() {
      isStopped = true
      clearInterval(timer)
      for (const one of all()) one.stop()
    },
  }
}
