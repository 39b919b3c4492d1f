/**
 * hidden-settings - whether a store that does not allow CONFIG meets its durability level, as it shows by its behavior
 *
 * `WAITAOF 1 0 1` (Redis 7.2) reports whether this connection's last write is on disk. With `appendfsync always` it is
 * when the reply to the write arrives, so each of some writes in a row must be. With `everysec` it almost never is.
 * Valkey proves nothing: 8.1.1 with `everysec` reports 300 writes in a row as synced, and strace(1) shows two
 * fdatasync.
 */
import type { Redis } from 'ioredis'
import type { Durability } from '../embedded/binary.ts'
import { appendFsync } from '../embedded/binary.ts'
import { PROOF_KEY } from '../keyspace.ts'

/** Writes before the first use, and at each later look. */
export const PROOFS_AT_START = 20
const PROOF_MS = '60000'
const WAIT_MS = '1'

/**
 * Finds why such a store cannot be used with `durability`; null if it can. In: INFO of server and memory, and the
 * number of writes that must be on disk. Throws errors of the connection.
 */
export async function hiddenFault(
  client: Redis,
  durability: Durability,
  { info, proofs }: { info: string; proofs: number },
): Promise<string | null> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'not shown'
  if (policy !== 'noeviction')
    return `Redis does not allow CONFIG, and its maxmemory-policy is ${policy}: set it to noeviction where Redis is managed`
  if (appendFsync(durability) !== 'always') return null
  const isValkey = /^valkey_version:/m.test(info)
  const lack = isValkey ? 'Valkey reports writes as synced before they are' : await findLack(client, proofs)
  return lack === null
    ? null
    : `Redis does not allow CONFIG, and WAITAOF does not prove DURABILITY=${durability}: ${lack}. DURABILITY=memory is ` +
        'possible: a 200 then means that Redis has the message in memory, and a crash of Redis can lose it'
}

/** Why writes are not known to be on disk when their replies arrive; null if they are. */
async function findLack(client: Redis, proofs: number): Promise<string | null> {
  try {
    for (let n = 0; n < proofs; n += 1) {
      await client.call('SET', PROOF_KEY, String(n), 'PX', PROOF_MS)
      const [local] = (await client.call('WAITAOF', '1', '0', WAIT_MS)) as [number, number]
      if (local !== 1) return 'a write was not on disk when its reply arrived (appendfsync must be always)'
    }
    return null
  } catch (error) {
    const { name, message } = error as Error
    if (name !== 'ReplyError') throw error
    if (/appendonly is disabled/i.test(message)) return 'its append-only file is off'
    if (/unknown command/i.test(message)) return 'it has no WAITAOF, which Redis 7.2 and newer have'
    return `it refuses SET ${PROOF_KEY} or WAITAOF (${message})`
  }
}
