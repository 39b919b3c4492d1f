/**
 * family - the memory of a store by kind of key: `{s017}:head:<server>:<segment>` is of the family `head`
 */

import type { Redis } from 'ioredis'
import { keysOf, sumOf } from '../store.ts'

export interface Family {
  readonly keys: number
  readonly bytes: number
}

/** Keys and bytes (MEMORY USAGE of every element) of each family. */
export async function measureFamilies(client: Redis): Promise<Map<string, Family>> {
  const names = new Map<string, string[]>()
  for (const key of await keysOf(client, '*')) {
    const name = key.split(':')[1] ?? key
    const known = names.get(name)
    if (known === undefined) names.set(name, [key])
    else known.push(key)
  }
  const families = new Map<string, Family>()
  for (const [name, keys] of names) {
    const bytes = await sumOf(client, keys, (pipeline, key) => pipeline.memory('USAGE', key, 'SAMPLES', 0))
    families.set(name, { keys: keys.length, bytes })
  }
  return families
}

/** One field of INFO as a number. */
export async function readInfo(client: Redis, section: string, field: string): Promise<number> {
  const value = new RegExp(`^${field}:(\\S+)`, 'm').exec(await client.info(section))?.[1]
  if (value === undefined) throw new Error(`INFO ${section} says nothing of ${field}`)
  return Number(value)
}
