/** redis-settings - whether a store keeps what it acknowledges as well as its durability level says. */
import type { Redis } from 'ioredis'
import { appendFsync, type Durability } from '../embedded/binary.ts'

/** A store that breaks its durability level, or does not tell. It is not used. */
export class StoreRefused extends Error {
  constructor(sentence: string) {
    super(sentence)
    this.name = 'StoreRefused'
  }
}

/**
 * Reads the settings of the store behind `client`.
 * @throws StoreRefused when they break `durability`; whatever the connection throws
 */
export async function checkSettings(client: Redis, durability: Durability): Promise<void> {
  const flat = (await client.config('GET', 'append*').catch(refuseSilence)) as string[]
  const rewrite = (await client.config('GET', 'no-appendfsync-on-rewrite').catch(refuseSilence)) as string[]
  const policy = (await client.config('GET', 'maxmemory-policy').catch(refuseSilence)) as string[]
  const settings = new Map<string, string>()
  for (const list of [flat, rewrite, policy])
    for (let i = 0; i < list.length; i += 2) settings.set(list[i]!, list[i + 1]!)
  const fsync = settings.get('appendfsync')
  const strict = fsync === 'always' || (appendFsync(durability) === 'everysec' && fsync === 'everysec')
  const wrong: string[] = []
  if (settings.get('appendonly') !== 'yes') wrong.push('appendonly must be yes')
  if (!strict) wrong.push(`appendfsync must be ${appendFsync(durability)}`)
  // While it rewrites its file, Redis would answer before anything is on disk.
  if (appendFsync(durability) === 'always' && settings.get('no-appendfsync-on-rewrite') !== 'no')
    wrong.push('no-appendfsync-on-rewrite must be no')
  if (settings.get('maxmemory-policy') !== 'noeviction') wrong.push('maxmemory-policy must be noeviction')
  if (wrong.length > 0) throw new StoreRefused(`Redis breaks DURABILITY=${durability}: ${wrong.join(', ')}`)
}

/** A store that hides its settings cannot be trusted to keep anything; a broken connection says nothing about it. */
function refuseSilence(error: Error): never {
  if (error.name !== 'ReplyError') throw error
  throw new StoreRefused(`Redis does not show its settings: ${error.message}`)
}
