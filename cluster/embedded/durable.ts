/**
 * durable - the settings of a store that its durability level rests on: which are broken, and how they are set right
 * again.
 *
 * While `appendonly` was off, writes were in memory alone, and a shutdown would lose them. Once it is set to yes again,
 * Redis writes all its data into a new file, and nothing is on disk before that is finished.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { appendFsync, type Durability } from './binary.ts'

/** Names as CONFIG GET takes them. */
export const DURABLE_SETTINGS = ['appendonly', 'appendfsync', 'no-appendfsync-on-rewrite', 'maxmemory-policy'] as const

const STEP_MS = 50

/** A setting that breaks the durability level, with its value and the required one. */
export interface Breach {
  readonly name: (typeof DURABLE_SETTINGS)[number]
  readonly is: string
  readonly must: string
}

/** The settings among `flat` (name, value, ...) that break `durability`. A missing setting counts as broken. */
export function findBreaches(flat: readonly string[], durability: Durability): Breach[] {
  const values = new Map<string, string>()
  for (let at = 0; at < flat.length; at += 2) values.set(flat[at] ?? '', flat[at + 1] ?? '')
  const fsync = appendFsync(durability)
  const allowed: Record<Breach['name'], readonly string[]> = {
    appendonly: ['yes'],
    appendfsync: fsync === 'always' ? ['always'] : ['everysec', 'always'],
    // While it rewrites its file, redis would answer before anything is on disk.
    'no-appendfsync-on-rewrite': fsync === 'always' ? ['no'] : ['no', 'yes'],
    'maxmemory-policy': ['noeviction'],
  }
  return DURABLE_SETTINGS.flatMap((name) => {
    const is = values.get(name) ?? 'not told'
    return allowed[name].includes(is) ? [] : [{ name, is, must: allowed[name][0] as string }]
  })
}

/** Whether a rewrite of the append-only file is still to come, runs, or has failed. Takes the text of INFO. */
export function isRewriting(info: string): boolean {
  return /^aof_rewrite_(in_progress|scheduled):1/m.test(info)
}

/** Reads the settings and repairs broken ones. Returns the breaches, before anything is on disk. */
export async function setRight(client: Redis, durability: Durability): Promise<Breach[]> {
  const flat = (await client.call('CONFIG', 'GET', ...DURABLE_SETTINGS)) as string[]
  const breaches = findBreaches(flat, durability)
  // The file comes last: from then on it is written under the other settings.
  for (const { name, must } of breaches.toReversed()) await client.config('SET', name, must)
  return breaches
}

/** Bytes since the last rewrite from which on another one shortens the next start: about a second of reading. */
const GROWN_BYTES_MIN = 64 * 1024 * 1024
/** A larger store is not rewritten within the seconds of a stop. */
const MEMORY_BYTES_MAX = 1024 * 1024 * 1024

/** Whether a rewrite at a stop shortens the next start by more than it takes. Takes the text of INFO. */
export function paysToRewrite(info: string): boolean {
  const lines = info.split('\r\n')
  const numberOf = (name: string): number =>
    Number(lines.find((line) => line.startsWith(name))?.slice(name.length) ?? 0)
  const grownBytes = numberOf('aof_current_size:') - numberOf('aof_base_size:')
  return grownBytes >= GROWN_BYTES_MIN && numberOf('used_memory:') <= MEMORY_BYTES_MAX
}

/**
 * Rewrites the file if that pays, within `msMax`. A rewrite that is not done by then ends with the store, whose files
 * are complete without it. Never throws.
 * @returns whether the file was rewritten
 */
export async function rewriteIfWorth(client: Redis, msMax: number): Promise<boolean> {
  try {
    if (!paysToRewrite(await client.info())) return false
    await client.bgrewriteaof()
    const endMs = performance.now() + msMax
    while (performance.now() < endMs) {
      await pause(STEP_MS)
      const info = await client.info('persistence')
      if (!isRewriting(info)) return /^aof_last_bgrewrite_status:ok/m.test(info)
    }
  } catch {
    // Without memory for a fork, or beside another rewrite, the file stays as it is.
  }
  return false
}

/**
 * Waits until the store's file has everything that is in memory, and requests a rewrite if the last one failed.
 * @returns false when it has not within `msMax`
 */
export async function writtenWhole(client: Redis, msMax: number): Promise<boolean> {
  const endMs = performance.now() + msMax
  while (performance.now() < endMs) {
    const info = await client.info('persistence')
    if (!isRewriting(info)) {
      if (/^aof_last_bgrewrite_status:ok/m.test(info)) return true
      await client.bgrewriteaof().catch(() => undefined)
    }
    await pause(STEP_MS)
  }
  return false
}
