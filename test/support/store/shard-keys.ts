/** shard-keys - all data of a shard as text, for a comparison before and after a move that ignores the encoding */
import { createHash } from 'node:crypto'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import type { ClusterNode } from './redis-cluster.ts'

/** Keys that need not stay: they expire, or the shard is elsewhere. */
const VOLATILE = /:(?:told|staged|replies|mailbox|fenced|requests|copy)(?::|$)/

/** Name -> digest of each key of a shard at the node that holds it, except `meta`, which names the owner. */
export async function shardKeys(node: ClusterNode, shard: number): Promise<Map<string, string>> {
  const slot = SHARD_SLOTS[shard] ?? 0
  const names = (await node.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 1_000_000)) as string[]
  const found = new Map<string, string>()
  for (const name of names.sort()) {
    if (VOLATILE.test(name) || name.endsWith(':meta')) continue
    const text = JSON.stringify(await contentOf(node, name))
    found.set(name, createHash('sha1').update(text).digest('hex'))
  }
  return found
}

async function contentOf({ client }: ClusterNode, name: string): Promise<unknown> {
  const type = await client.type(name)
  // Not exact to the millisecond: the remaining time is sent.
  const ends = (await client.pttl(name)) > 0
  const binary = (value: Buffer | null): string | undefined => value?.toString('base64')
  switch (type) {
    case 'string':
      return [ends, binary(await client.getBuffer(name))]
    case 'hash': {
      const all = await client.hgetallBuffer(name)
      return [
        ends,
        Object.keys(all)
          .sort()
          .map((field) => [field, binary(all[field] ?? null)]),
      ]
    }
    case 'zset':
      return [ends, await client.zrange(name, 0, -1, 'WITHSCORES')]
    case 'set':
      return [ends, (await client.smembers(name)).sort()]
    case 'stream':
      return [
        ends,
        await client.call('XINFO', 'STREAM', name, 'FULL', 'COUNT', 0).then(lastId),
        await client.xrange(name, '-', '+'),
      ]
    default:
      return [type]
  }
}

function lastId(info: unknown): unknown {
  const fields = info as unknown[]
  return fields[fields.indexOf('last-generated-id') + 1]
}
