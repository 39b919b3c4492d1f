/**
 * holds - the destinations that the operator holds, as this process knows them
 *
 * Key: `holds` hash on shard 0, destination -> when it was held. A command writes it; every process that delivers reads it
 * at its start and every few seconds, and at once where it gave the order itself.
 *
 * Spec queue.hold
 */

import type { Redis } from 'ioredis'
import { holdsKey } from './actors/keyspace.ts'

const REFRESH_MS = 5000

export interface Holds {
  has(destination: string): boolean
  /** Reads the list; keeps the one it has while the store is away. */
  refresh(): Promise<void>
  stop(): void
}

/** Reads the list and goes on reading it. In: the client of the moment. */
export async function watchHolds(redis: () => Redis): Promise<Holds> {
  let destinations: ReadonlySet<string> = new Set()
  const refresh = async (): Promise<void> => {
    const names = await redis()
      .hkeys(holdsKey())
      .catch(() => null)
    if (names !== null) destinations = new Set(names)
  }
  await refresh()
  const timer = setInterval(() => void refresh(), REFRESH_MS).unref()
  return { has: (destination) => destinations.has(destination), refresh, stop: () => clearInterval(timer) }
}
