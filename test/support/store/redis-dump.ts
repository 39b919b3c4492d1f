/** redis-dump - the keys of a real Redis as the simulated store shows its own */
import type { Redis } from 'ioredis'
import { compareText, type Dumped, textOf } from '../../simulation/sim-data.ts'

/** Every key whose name fits `pattern`, by name. */
export async function dumpRedis(redis: Redis, pattern: string): Promise<Map<string, Dumped>> {
  const names = (await redis.keys(pattern)).sort()
  return new Map(await Promise.all(names.map(async (name) => [name, await dumpKey(redis, name)] as const)))
}

async function dumpKey(redis: Redis, name: string): Promise<Dumped> {
  const [type, expiry] = await Promise.all([redis.type(name), redis.call('PEXPIRETIME', name)])
  const expiresAtMs = Math.max(0, Number(expiry))
  switch (type) {
    case 'hash': {
      const flat = texts(await redis.callBuffer('HGETALL', name))
      return { kind: 'hash', value: pairs(flat).sort((a, b) => compareText(a[0], b[0])), last: '', expiresAtMs }
    }
    case 'stream': {
      const entries = (await redis.callBuffer('XRANGE', name, '-', '+')) as [Buffer, Buffer[]][]
      const info = (await redis.call('XINFO', 'STREAM', name)) as unknown[]
      const last = String(info[info.indexOf('last-generated-id') + 1])
      return { kind: 'stream', value: entries.map(([id, fields]) => [String(id), texts(fields)]), last, expiresAtMs }
    }
    case 'zset': {
      const flat = texts(await redis.callBuffer('ZRANGE', name, '0', '-1', 'WITHSCORES'))
      return {
        kind: 'sorted',
        value: pairs(flat).map(([member, score]) => [member, Number(score)]),
        last: '',
        expiresAtMs,
      }
    }
    default:
      return { kind: 'text', value: textOf((await redis.getBuffer(name)) ?? ''), last: '', expiresAtMs }
  }
}

function texts(list: unknown): string[] {
  return (list as Buffer[]).map((bytes) => textOf(bytes))
}

function pairs(flat: readonly string[]): [string, string][] {
  const list: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2) list.push([flat[i]!, flat[i + 1]!])
  return list
}
