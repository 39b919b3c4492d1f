/**
 * open-store - opens the store of a process: the embedded Redis if no URL is set, its secret, its installation, its
 * watcher
 *
 * Guarantees: a failure closes everything it had opened, and ends a Redis that it had started, unless others use it
 * already. A store that comes back as another one, or with settings that break the durability level, ends the service.
 */

import { existsSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { ClusterLog } from '../../cluster/cluster-log.ts'
import { type EmbeddedRedis, startEmbeddedRedis } from '../../cluster/embedded/embedded.ts'
import { WORKERS_KEY } from '../../cluster/keyspace.ts'
import type { Primaries } from '../../cluster/primaries.ts'
import type { WorkerRecord } from '../../cluster/store.ts'
import { type Config, isOwnStore } from '../process/config.ts'
import { isProcessGone } from '../process/identity.ts'
import type { Log } from '../process/log.ts'
import { makeSecrets, type Secrets } from '../process/secrets.ts'
import { checkOfSecret } from '../state/ring/ring.ts'
import { watchEach } from './cluster/watch-each.ts'
import { checkInstallation, openInstallation, readChecks, wasMade } from './installation.ts'
import type { Nodes } from './nodes.ts'
import { closeDirectory } from './private-dir.ts'
import { type Remembered, restoreFiles } from './restore-data-dir.ts'
import { makeRewrites, type Rewrites } from './rewrite.ts'
import { openRingDoor, type RingDoor } from './ring.ts'
import { type ConnectedStore, connectStore, type RuntimeStore } from './runtime-store.ts'
import { findSecret } from './secret.ts'
import { type StoreWatch, watchStore } from './store-watch.ts'

const RING_LOST = 'The keys of this store were sealed with another secret: stopping'

/** A store that is open. */
export interface OpenStore {
  /** The runtime's store. Other reads of Redis go through `nodes`. */
  readonly store: RuntimeStore
  readonly secrets: Secrets
  readonly door: RingDoor
  readonly watch: StoreWatch
  /** The Redis of each shard, for reads outside the runtime. */
  readonly nodes: Nodes
  /** The worker's view of several Redis; null for a single one. */
  readonly primaries: Primaries | null
  /** Looks at all of several Redis; null for a single one. */
  readonly cluster: ConnectedStore['cluster']
  /** The append-only file of our own Redis; null for an external Redis. */
  readonly rewrites: Rewrites | null
  /** Closes the store; the embedded Redis is stopped if no other process uses it. */
  close(): Promise<void>
}

export interface OpenStoreOptions {
  readonly log: Log
  /** Ends the service: it cannot continue. */
  readonly end: (code: number) => void
  /** The store's connection is open again, or that of one of several, or one has other shards than before. */
  readonly onUp: () => void
  /** The store's connection has ended. */
  readonly onDown: () => void
  /** The store is not durable from now on, or is again. */
  readonly onFault: (isFaulty: boolean) => void
  /** Whether another service domain than before is meant. */
  readonly acceptDomain?: boolean
  /** Share of the store's memory from which on sends are refused, in place of our own. */
  readonly fullShare?: number
}

/** Opens it. Throws the reason if it cannot be opened, with everything closed. */
export async function openStore(config: Config, options: OpenStoreOptions): Promise<OpenStore> {
  for (const sentence of closeDirectory(config.dataDir)) options.log.warn({}, sentence)
  const known: Remembered = { id: null, secret: null }
  if (config.redisUrls.length === 0 && !existsSync(config.dataDir))
    options.log.info({ dataDir: config.dataDir }, 'No installation found: creating a new one')
  const embedded = config.redisUrls.length > 0 ? null : await startOwn(config, options.log, known)
  let found: ConnectedStore | null = null
  try {
    const addresses = embedded === null ? config.redisUrls : [embedded.socketPath]
    const opened = await connect(addresses, config, { options, known })
    found = opened
    const { store, nodes, primaries } = opened
    const { secret, id } = await openAll(nodes, config, { known, acceptDomain: options.acceptDomain ?? false })
    const door = await openDoor(nodes, config, { secret, options, known })
    const watch = await watchOpen(opened, { config, options, embedded, id })
    return {
      store,
      secrets: makeSecrets(door.ring),
      door,
      watch,
      nodes,
      primaries,
      cluster: opened.cluster,
      rewrites: isOwnStore(config) ? makeRewrites(() => nodes.common()) : null,
      close: () => closeStore({ opened, embedded, watch, door }),
    }
  } catch (error) {
    await giveBack(found, embedded)
    throw error
  }
}

function startOwn(
  { dataDir, durability, redisMaxmemory }: Config,
  log: Log,
  known: Remembered,
): Promise<EmbeddedRedis> {
  return startEmbeddedRedis({
    dataDir,
    durability,
    log,
    memoryBytes: redisMaxmemory ?? undefined,
    // The store's own connections report the same, and are the ones that matter.
    onDown: () => undefined,
    onUp: () => undefined,
    mustHold: () => wasMade(dataDir),
    onRemade: (client) => restoreFiles(dataDir, known, client),
  })
}

function connect(
  addresses: readonly string[],
  config: Config,
  { options, known }: { options: OpenStoreOptions; known: Remembered },
): Promise<ConnectedStore> {
  const opening = connectStore(addresses, config, {
    onUp() {
      options.onUp()
      const { id } = known
      if (id !== null) void opening.then(({ nodes }) => stopIfLost(nodes, id, options))
    },
    onDown: options.onDown,
    onCame: options.onUp,
    onRefused: (error) => stopFor(options, error.message, 'The store is not durable: stopping'),
  })
  return opening
}

async function openAll(
  nodes: Nodes,
  config: Config,
  { known, acceptDomain }: { known: Remembered; acceptDomain: boolean },
): Promise<{ secret: string; id: string }> {
  const { dataDir, secretKey, serviceDomain } = config
  const secret = findSecret({
    ...config,
    ...(await readChecks(nodes.common())),
    checkOf: checkOfSecret,
    mayMake: isOwnStore(config),
  })
  const place = { dataDir, secretCheck: checkOfSecret(secret), nowMs: Date.now(), serviceDomain, acceptDomain }
  const id = await openInstallation(nodes.common(), place)
  known.id = id
  // A secret from the setting need not be stored.
  known.secret = secretKey === null ? secret : null
  return { secret, id }
}

/** The ring, and its secret for a directory that is made again. */
function openDoor(
  nodes: Nodes,
  config: Config,
  { secret, options, known }: { secret: string; options: OpenStoreOptions; known: Remembered },
): Promise<RingDoor> {
  return openRingDoor({
    redis: () => nodes.common(),
    source: config,
    secret,
    onSecret(changed) {
      if (known.secret !== null) known.secret = changed
    },
    onLost: (reason) => stopFor(options, reason, RING_LOST),
  })
}

function watchOpen(
  { nodes, clients, primaries }: ConnectedStore,
  {
    config,
    options,
    embedded,
    id,
  }: { config: Config; options: OpenStoreOptions; embedded: EmbeddedRedis | null; id: string },
): Promise<StoreWatch> {
  const { log, onFault, fullShare } = options
  const more = fullShare === undefined ? {} : { fullShare }
  const onLost = (): void => void stopIfLost(nodes, id, options)
  const common = { durability: config.durability, onLost, ...more }
  if (primaries === null)
    return watchStore({ ...common, redis: () => nodes.common(), log, own: embedded, installationId: id, onFault })
  return watchEach({
    clients,
    onFault: (isFaulty) => onFault(isFaulty),
    watch: (name, redis, onFault) =>
      watchStore({ ...common, redis, log: logOf(log, name), own: null, installationId: null, onFault }),
  })
}

/** Log lines about one of several Redis name it. */
function logOf(log: Log, redis: string): ClusterLog {
  return {
    info: (facts, text) => log.info({ redis, ...facts }, text),
    warn: (facts, text) => log.warn({ redis, ...facts }, text),
    error: (facts, text) => log.error({ redis, ...facts }, text),
  }
}

async function stopIfLost(nodes: Nodes, id: string, options: OpenStoreOptions): Promise<void> {
  const reason = await checkInstallation(() => nodes.common(), id)
  if (reason !== null) stopFor(options, reason, 'This is a different store than before: stopping')
}

function stopFor({ log, end }: OpenStoreOptions, reason: string, sentence: string): void {
  log.fatal({ reason }, sentence)
  end(1)
}

async function closeStore({
  opened,
  embedded,
  watch,
  door,
}: {
  opened: ConnectedStore
  embedded: EmbeddedRedis | null
  watch: StoreWatch
  door: RingDoor
}): Promise<void> {
  watch.stop()
  door.stop()
  try {
    await embedded?.stop({ whenLast: () => isUnused(opened.nodes.common()), rewrites: true })
  } finally {
    opened.store.close()
  }
}

/** After a failed start, an adopted Redis may belong to other processes too. */
async function giveBack(found: ConnectedStore | null, embedded: EmbeddedRedis | null): Promise<void> {
  const isFree = async (): Promise<boolean> => found === null || (await isUnused(found.nodes.common()))
  await embedded?.stop({ whenLast: async () => !embedded.adopted && (await isFree()) })
  found?.store.close()
}

/** Whether no living process of the service uses a store; false if unknown. */
export async function isUnused(redis: Redis): Promise<boolean> {
  const records = await redis.hgetall(WORKERS_KEY).catch(() => null)
  if (records === null) return false
  return Object.values(records).every((text) => isProcessGone(JSON.parse(text) as WorkerRecord))
}
