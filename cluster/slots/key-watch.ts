/**
 * key-watch - which keys of a shard are written to while they are copied, from keyspace notifications of their node
 *
 * Guarantee: a key that is not named has not been written since it was last cleared. If the connection has ended, or
 * too many keys are named, the answer is unknown.
 */
import type { Redis } from 'ioredis'
import { shardTag } from '../keyspace.ts'

/** Notifications by key (`K`), of every kind of write (`A`). */
const EVENTS = 'KA'
const SETTING = 'notify-keyspace-events'
const CHANNEL = '__keyspace@0__:'
const NAMES_MAX = 1_000_000

export interface KeyWatch {
  /** These keys are about to be copied: writes to them count from now on. */
  forget(names: readonly Buffer[]): void
  /** All keys written to so far, at the node. Null if unknown. */
  changed(): Promise<Buffer[] | null>
  /** The node sends no notifications any longer. */
  close(): Promise<void>
}

/**
 * Begins. Takes a separate connection to the node, which ends with the watch, and another one. Returns null if the node
 * sends no notifications, or not to this user.
 */
export async function watchKeys(
  own: Redis,
  { client, shard }: { client: Redis; shard: number },
): Promise<KeyWatch | null> {
  const names = new Set<string>()
  let isKnown = true
  own.on('close', () => {
    isKnown = false
  })
  own.on('pmessageBuffer', (_pattern: Buffer, channel: Buffer) => {
    if (names.size >= NAMES_MAX) isKnown = false
    else names.add(channel.subarray(CHANNEL.length).toString('latin1'))
  })
  const before = await readSetting(client)
  const told = before === null ? null : [...new Set([...before, ...EVENTS])].join('')
  const isTold = await (async () => {
    if (told === null) return false
    await client.config('SET', SETTING, told)
    await own.psubscribe(`${CHANNEL}${shardTag(shard)}:*`)
    return true
  })().catch(() => false)
  const close = async (): Promise<void> => {
    own.disconnect()
    if (before !== null) await client.config('SET', SETTING, before).catch(() => undefined)
  }
  if (!isTold) {
    await close()
    return null
  }
  return {
    forget(copied) {
      for (const name of copied) names.delete(name.toString('latin1'))
    },
    async changed() {
      // Its answer comes after all earlier notifications.
      const isThere = await own.ping().then(
        () => true,
        () => false,
      )
      return isThere && isKnown ? [...names].map((name) => Buffer.from(name, 'latin1')) : null
    },
    close,
  }
}

/** Null: this user may not ask. */
async function readSetting(client: Redis): Promise<string | null> {
  const found = (await client.config('GET', SETTING).catch(() => null)) as string[] | null
  return found === null || found.length < 2 ? null : (found[1] ?? '')
}
