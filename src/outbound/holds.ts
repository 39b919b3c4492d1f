/**
 * holds - the destinations that the operator holds, as this process knows them
 *
 * Keys: `holds` hash on shard 0, destination -> when it was held; `wakes` hash, destination -> when it is due to be
 * tried. A command writes them and signals it; every process reads them at its start, on the signal, and every few
 * seconds, because signals are lost while its connection is down.
 *
 * Spec queue.hold
 */

import { HOLDS_TOPIC } from '../actors/message/operate-queue.ts'
import { HOLDS_SHARD, holdsKey, wakesKey } from '../state/keys.ts'
import type { ReadKeys } from '../views/read-keys.ts'

const REFRESH_MS = 5000

export interface Holds {
  has(destination: string): boolean
  /** Reads the list; keeps the one it has while the store is away. */
  refresh(): Promise<void>
  stop(): void
}

export interface HoldsDeps {
  readonly readKeys: ReadKeys
  /** Subscribes to a topic; resolves with a function that ends it. */
  readonly hear: (topic: string, heard: (text: string) => void) => Promise<() => void>
  /** Called for a destination that has to be tried. */
  readonly wake: (destination: string) => void
}

/** Reads the list, now and continuously. */
export async function watchHolds({ readKeys, hear, wake }: HoldsDeps): Promise<Holds> {
  let destinations: ReadonlySet<string> = new Set()
  let woken: Readonly<Record<string, string>> | null = null
  const refresh = async (): Promise<void> => {
    const [holds, orders] = await Promise.all([
      readKeys('hkeys', [{ shard: HOLDS_SHARD, key: holdsKey() }]),
      readKeys('hgetall', [{ shard: HOLDS_SHARD, key: wakesKey() }]),
    ])
    if (holds === null || orders === null) return
    destinations = new Set(holds[0])
    const wakes = orders[0] ?? {}
    // Orders from before this process began are not new.
    for (const [destination, atMs] of Object.entries(wakes))
      if (woken !== null && woken[destination] !== atMs) wake(destination)
    woken = wakes
  }
  const leave = await hear(HOLDS_TOPIC, () => void refresh())
  await refresh()
  const timer = setInterval(() => void refresh(), REFRESH_MS).unref()
  return {
    has: (destination) => destinations.has(destination),
    refresh,
    stop() {
      clearInterval(timer)
      leave()
    },
  }
}
