/**
 * with-store - a connection to the installation's store for one act beside the service, or without it
 *
 * Guarantees: an embedded Redis that a service uses is adopted and left running; a stopped one is started and stopped
 * again; a directory without a store, and a store without an installation, are not changed.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbeddedRedis } from '../../cluster/embedded/embedded.ts'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import type { Config } from '../process/config.ts'
import { makeLog } from '../process/log.ts'
import type { Nodes } from './nodes.ts'
import { connectStore } from './runtime-store.ts'

const noted = (): void => undefined
const DEAF = { onUp: noted, onDown: noted, onCame: noted, onRefused: noted }

/** Opens the store, runs `act`, closes the store. Throws Error if there is none, or it does not answer. */
export async function withStore<Result>(config: Config, act: (nodes: Nodes) => Promise<Result>): Promise<Result> {
  const { dataDir, durability, redisUrls } = config
  if (redisUrls.length > 0) return connected(redisUrls, config, act)
  if (!existsSync(join(dataDir, 'appendonlydir'))) throw new Error(`No store in ${dataDir}: set DATA_DIR or REDIS_URL`)
  const log = makeLog({ level: 'silent', isTerminal: false })
  const embedded = await startEmbeddedRedis({ dataDir, durability, log, onDown: noted, onUp: noted })
  try {
    return await connected([embedded.socketPath], config, act)
  } finally {
    await embedded.stop({ whenLast: async () => !embedded.adopted })
  }
}

async function connected<Result>(
  addresses: readonly string[],
  config: Config,
  act: (nodes: Nodes) => Promise<Result>,
): Promise<Result> {
  const { store, nodes } = await connectStore(addresses, config, DEAF)
  try {
    if ((await nodes.common().exists(CONF_KEY)) === 0) throw new Error('The store has no installation')
    return await act(nodes)
  } finally {
    store.close()
  }
}
