/**
 * run-store - runs the Redis of DATA_DIR in a separate process, for processes that use it through a URL (`Procfile`)
 *
 * It starts Redis like the service: one Redis in a directory, adopted if it runs already, checked and repaired every
 * two seconds, restarted if it dies. It also listens on a port of the loopback.
 */

import type { Redis } from 'ioredis'
import { startEmbeddedRedis } from '../../cluster/embedded/embedded.ts'
import { RedisLink } from '../../cluster/redis/link.ts'
import type { Config } from '../process/config.ts'
import { makeLog } from '../process/log.ts'
import { readInstallation, wasMade } from './installation.ts'
import { isUnused } from './open-store.ts'
import { closeDirectory } from './private-dir.ts'
import { type Remembered, restoreFiles } from './restore-data-dir.ts'
import { readSecret } from './secret.ts'
import { watchStore } from './store-watch.ts'

const LINK_MS_MAX = 10_000

/** Starts it; `stop` ends Redis once no process of the service uses it. Rejects if it cannot start. */
export async function runStore(
  config: Config,
  port: number,
): Promise<{ stop(): Promise<void>; readonly exited: Promise<number> }> {
  const { dataDir, durability, redisMaxmemory } = config
  const log = makeLog({ level: config.logLevel, isTerminal: process.stdout.isTTY === true })
  for (const sentence of closeDirectory(dataDir)) log.warn({}, sentence)
  const known: Remembered = { id: readInstallation(dataDir), secret: readSecret(dataDir) }
  const embedded = await startEmbeddedRedis({
    dataDir,
    durability,
    log,
    port,
    memoryBytes: redisMaxmemory ?? undefined,
    onDown: () => undefined,
    onUp: () => undefined,
    mustHold: () => wasMade(dataDir),
    onRemade: (client) => restoreFiles(dataDir, known, client),
  })
  const link = new RedisLink({ address: embedded.socketPath, name: 'watch', prepare: async () => undefined })
  const redis = (): Redis => link.client
  try {
    await link.ready(LINK_MS_MAX)
    const watch = await watchStore({
      redis,
      durability,
      log,
      own: embedded,
      installationId: null,
      onLost: () => undefined,
      onWell() {
        known.id ??= readInstallation(dataDir)
        // A rotation changes it.
        known.secret = readSecret(dataDir) ?? known.secret
      },
    })
    return {
      exited: new Promise(() => undefined),
      async stop() {
        watch.stop()
        await embedded.stop({ whenLast: () => isUnused(redis()) })
        link.close()
      },
    }
  } catch (error) {
    link.close()
    await embedded.stop({ whenLast: async () => !embedded.adopted })
    throw error
  }
}
