/**
 * holds - the destinations that the operator holds, as this process knows them
 *
 * Keys: `holds` hash on shard 0, destination -> when it was held; `wakes` hash, destination -> when it was to be tried. A
 * command writes them; every process reads them at its start and every few seconds, and at once where it gave the order.
 *
 * Spec queue.hold
 */

import type { Redis } from 'ioredis'
import { holdsKey, wakesKey } from './actors/keyspace.ts'

const REFRESH_MS = 5000

export interface Holds {
  has(destination: string): boolean
  /** Reads the list; keeps the one it has while the store is away. */
  refresh(): Promise<void>
  stop(): void
}

/** Reads the list and goes on reading it. In: the client of the moment, who is told of a destination that is to be tried. */
export async function watchHolds(redis: () => Redis, wake: (destination: string) => void): Promise<Holds> {
  let destinations: ReadonlySet<string> = new Set()
  let woken: Readonly<Record<string, string>> | null = null
  const refresh = async (): Promise<void> => {
    const pipeline = redis().pipeline().hkeys(holdsKey()).hgetall(wakesKey())
    const answers = await pipeline.exec().catch(() => null)
    if (answers === null || answers.some(([error]) => error !== null)) return
    destinations = new Set(answers[0]?.[1] as string[])
    const wakes = answers[1]?.[1] as Record<string, string>
    // What was ordered before this process began is no news to it.
    for (const [destination, atMs] of Object.entries(wakes))
      if (woken !== null && woken[destination] !== atMs) wake(destination)
    woken = wakes
  }
  await refresh()
  const timer = setInterval(() => void refresh(), REFRESH_MS).unref()
  return { has: (destination) => destinations.has(destination), refresh, stop: () => clearInterval(timer) }
}
