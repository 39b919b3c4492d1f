/** settings - whether the settings of a store meet its durability level. */
import { Redis } from 'ioredis'
import type { Durability } from '../embedded/binary.ts'
import { type Breach, DURABLE_SETTINGS, findBreaches } from '../embedded/durable.ts'
import { hiddenFault, PROOFS_AT_START } from './hidden-settings.ts'

/** A store that breaks its durability level, or hides it. It is not used. */
export class StoreRefused extends Error {
  constructor(sentence: string) {
    super(sentence)
    this.name = 'StoreRefused'
  }
}

/** The supposed single server is a node of a Redis Cluster: it would take the first writes, and move others away. */
export class ClusterFound extends StoreRefused {
  constructor() {
    super('Redis runs as a node of a Redis Cluster: name its host and port in REDIS_URL, not its socket')
  }
}

/**
 * Reads the settings of the store behind `client`.
 * @throws ClusterFound if a single server is expected and it is a node of a cluster; StoreRefused if the settings break
 * `durability`; errors of the connection
 */
export async function checkSettings(client: Redis, durability: Durability, isOfCluster = false): Promise<void> {
  if (!isOfCluster && /^cluster_enabled:1/m.test(await client.info('cluster').catch(refuseInfo)))
    throw new ClusterFound()
  const flat = (await client
    .call('CONFIG', 'GET', ...DURABLE_SETTINGS)
    .catch((error) => (isOfCluster ? refuseSilence(error) : hidden(error)))) as string[] | null
  const sentence =
    flat === null
      ? await hiddenFault(client, durability, { info: await client.info('server', 'memory'), proofs: PROOFS_AT_START })
      : breachSentence(findBreaches(flat, durability), durability)
  if (sentence !== null) throw new StoreRefused(sentence)
}

/** A connection that only looks gives up after this. */
const LOOK_MS_MAX = 5_000

/**
 * Throws StoreRefused if the store does not let its user read INFO, which everything else needs. Any other failure is
 * left to the connections that follow, which try again.
 */
export async function requireInfo(address: string): Promise<void> {
  const client = new Redis(address, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: LOOK_MS_MAX,
    commandTimeout: LOOK_MS_MAX,
    maxRetriesPerRequest: 0,
    // Its own check would print a line for each connection.
    enableReadyCheck: false,
    disableClientInfo: true,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.info('server').catch(refuseInfo)
  } catch (error) {
    if (error instanceof StoreRefused) throw error
  } finally {
    client.disconnect()
  }
}

/**
 * The message to the operator about broken settings: first how to rescue data that is only in memory, then the required
 * values; null if no setting is broken.
 */
export function breachSentence(breaches: readonly Breach[], durability: Durability): string | null {
  if (breaches.length === 0) return null
  const wanted = breaches.map(({ name, must }) => `${name} must be ${must}`).join(', ')
  const orders = breaches
    .toReversed()
    .map(({ name, must }) => `CONFIG SET ${name} ${must}`)
    .join(', ')
  const isInMemory = breaches.some(({ name }) => name === 'appendonly')
  const rescue = isInMemory
    ? `. What it took without its file is in memory alone: do not stop Redis, set ${orders}, and wait until INFO ` +
      'persistence says aof_rewrite_in_progress:0 and aof_last_bgrewrite_status:ok'
    : `. Set ${orders}`
  return `Redis breaks DURABILITY=${durability}: ${wanted}${rescue}; then the same in its redis.conf`
}

/** A node of a cluster that hides its settings is not used; a broken connection proves nothing. */
function refuseSilence(error: Error): never {
  if (error.name !== 'ReplyError') throw error
  throw new StoreRefused(`Cannot read the settings of Redis: ${error.message}`)
}

/** A managed store may hide its settings. */
export function hidden(error: Error): null {
  if (error.name !== 'ReplyError') throw error
  return null
}

function refuseInfo(error: Error): never {
  if (error.name !== 'ReplyError' || /^(?:LOADING|NOAUTH|WRONGPASS)/.test(error.message)) throw error
  throw new StoreRefused(`Cannot read INFO of Redis: ${error.message}; allow the user of REDIS_URL the needed commands`)
}
