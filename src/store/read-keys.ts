/** read-keys - one command over keys of many shards, asked of the Redis of each shard in pipelines of a bounded size */
import type { ChainableCommander, Redis } from 'ioredis'
import type { KeyAnswers, KeyRead, ReadKeys } from '../views/read-keys.ts'
import type { Nodes } from './nodes.ts'

/** Commands of one round trip. */
const PIPELINE_MAX = 2000

/** Makes the reader. It never rejects: null means that a store did not answer. */
export function makeReadKeys(nodes: Nodes): ReadKeys {
  return async <Command extends keyof KeyAnswers>(command: Command, reads: readonly KeyRead[]) => {
    const answers: unknown[] = []
    for (let start = 0; start < reads.length; start += PIPELINE_MAX) {
      const trip = await readTrip(nodes, command, reads.slice(start, start + PIPELINE_MAX))
      if (trip === null) return null
      answers.push(...trip)
    }
    // The command determines the type of the answers, and ioredis returns this form.
    return answers as KeyAnswers[Command][]
  }
}

interface Trip {
  readonly pipeline: ChainableCommander
  /** Of its commands among the reads. */
  readonly places: number[]
}

/** One pipeline for each Redis that is concerned. */
async function readTrip(nodes: Nodes, command: string, reads: readonly KeyRead[]): Promise<unknown[] | null> {
  const trips = new Map<Redis, Trip>()
  for (const [place, { shard, key, args = [] }] of reads.entries()) {
    const node = nodes.nodeOf(shard)
    const trip = trips.get(node) ?? { pipeline: node.pipeline(), places: [] }
    trips.set(node, trip)
    trip.pipeline.call(command, key, ...args)
    trip.places.push(place)
  }
  const found: unknown[] = new Array(reads.length)
  const ran = await Promise.all([...trips.values()].map((trip) => runTrip(trip, found)))
  return ran.every(Boolean) ? found : null
}

/** Puts the answers of one Redis into their places; false if there are none, or one is an error. */
async function runTrip({ pipeline, places }: Trip, found: unknown[]): Promise<boolean> {
  const answers = await pipeline.exec().catch(() => null)
  if (answers === null || answers.some(([error]) => error !== null)) return false
  for (const [at, [, value]] of answers.entries()) found[places[at] as number] = value
  return true
}
