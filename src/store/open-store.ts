/**
 * open-store - the store of a process, opened: our own Redis where none is named, its secret, its installation, its
 * watch
 *
 * Guarantees: what fails gives back what it had opened, and ends a Redis that was only now started, unless others use
 * it already. A store that comes back as another one, or with settings that break the durability level, ends the
 * service.
 */

import { existsSync } from 'node:fs'
import type { Redis } from 'ioredis'
import { type EmbeddedRedis, startEmbeddedRedis } from '../../cluster/embedded/embedded.ts'
import { WORKERS_KEY } from '../../cluster/keyspace.ts'
import { connectRedisStore, type RedisStore } from '../../cluster/redis/store.ts'
import type { WorkerRecord } from '../../cluster/store.ts'
import type { Config } from '../process/config.ts'
import { isProcessGone } from '../process/identity.ts'
import type { Log } from '../process/log.ts'
import { makeSecrets, type Secrets } from '../process/secrets.ts'
import { checkInstallation, openInstallation, readCheck, wasMade } from './installation.ts'
import { type Nodes, oneNode } from './nodes.ts'
import { closeDirectory } from './private-dir.ts'
import { type Remembered, remakeFiles } from './remake.ts'
import { findSecret } from './secret.ts'
import { type StoreWatch, watchStore } from './store-watch.ts'

/** How Redis fares with writing its append-only file anew. */
export interface RewriteState {
  /** Of the Redis that tells it. */
  readonly runId: string
  /** One is under way, or is to begin. */
  readonly isRunning: boolean
  /** The last one that has ended, ended well. */
  readonly isOk: boolean
}

/** A store that is open. */
export interface OpenStore {
  /** The runtime's store. What is asked of Redis past it is asked of `nodes`. */
  readonly store: Omit<RedisStore, 'views'>
  readonly secrets: Secrets
  readonly watch: StoreWatch
  /** The Redis of each shard, for what is asked past the runtime. */
  readonly nodes: Nodes
  /** As `ChoreDeps` wants it: null where the Redis is another's. */
  readonly rewriteFile: (() => Promise<string | null>) | null
  /** How its last rewrite fares; null: Redis did not answer. */
  readonly rewriteState: () => Promise<RewriteState | null>
  /** Gives the store back; our own Redis is stopped when nobody else uses it. */
  close(): Promise<void>
}

export interface OpenStoreOptions {
  readonly log: Log
  /** Ends the service: it cannot go on. */
  readonly end: (code: number) => void
  /** The store's connection is there again. */
  readonly onUp: () => void
  /** The store's connection has ended. */
  readonly onDown: () => void
  /** What the store takes is not kept from now on, or is again. */
  readonly onFault: (isFaulty: boolean) => void
  /** Whether another service domain than before is meant. */
  readonly acceptDomain?: boolean
  /** Share of the store's memory from which on sends are refused, in place of our own. */
  readonly fullShare?: number
}

/** Opens it. Throws what keeps it from being opened, with everything given back. */
export async function openStore(config: Config, options: OpenStoreOptions): Promise<OpenStore> {
  for (const sentence of closeDirectory(config.dataDir)) options.log.warn({}, sentence)
  const known: Remembered = { id: null, secret: null }
  if (config.redisUrls.length === 0 && !existsSync(config.dataDir))
    options.log.info({ dataDir: config.dataDir }, 'No installation is there yet: making a new one')
  const embedded = config.redisUrls.length > 0 ? null : await startOwn(config, options.log, known)
  let store: RedisStore | null = null
  try {
    store = await connect(embedded?.socketPath ?? (config.redisUrls[0] as string), config, { options, known })
    const { secrets, id } = await openAll(store, config, { known, acceptDomain: options.acceptDomain ?? false })
    const watch = await watchOpen(store, { config, options, embedded, id })
    const opened = store
    return {
      store,
      secrets,
      watch,
      nodes: oneNode(() => opened.views),
      rewriteFile: embedded === null ? null : () => requestRewrite(opened.views),
      rewriteState: () => readRewriteState(opened.views),
      close: () => closeStore({ store: opened, embedded, watch }),
    }
  } catch (error) {
    await giveBack(store, embedded)
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
    // The store's own connections say the same, and are the ones that matter.
    onDown: () => undefined,
    onUp: () => undefined,
    mustHold: () => wasMade(dataDir),
    onRemade: (client) => remakeFiles(dataDir, known, client),
  })
}

function connect(
  address: string,
  { durability }: Config,
  { options, known }: { options: OpenStoreOptions; known: Remembered },
): Promise<RedisStore> {
  const opening = connectRedisStore({
    address,
    durability,
    onUp() {
      options.onUp()
      const { id } = known
      if (id !== null) void opening.then((store) => stopIfLost(store, id, options))
    },
    onDown: options.onDown,
    onRefused: (error) => stopFor(options, error.message, 'The store breaks the durability level: stopping'),
  })
  return opening
}

async function openAll(
  store: RedisStore,
  { dataDir, secretKey, redisUrls, serviceDomain }: Config,
  { known, acceptDomain }: { known: Remembered; acceptDomain: boolean },
): Promise<{ secrets: Secrets; id: string }> {
  const secret = findSecret({
    dataDir,
    secretKey,
    confirmed: await readCheck(store.views),
    checkOf: (one) => makeSecrets(one).check,
    mayMake: redisUrls.length === 0,
  })
  const secrets = makeSecrets(secret)
  const place = { dataDir, secretCheck: secrets.check, nowMs: Date.now(), serviceDomain, acceptDomain }
  const id = await openInstallation(store.views, place)
  known.id = id
  // What was set need not be written down.
  known.secret = secretKey === null ? secret : null
  return { secrets, id }
}

function watchOpen(
  store: RedisStore,
  {
    config,
    options,
    embedded,
    id,
  }: { config: Config; options: OpenStoreOptions; embedded: EmbeddedRedis | null; id: string },
): Promise<StoreWatch> {
  return watchStore({
    redis: () => store.views,
    durability: config.durability,
    log: options.log,
    own: embedded,
    installationId: id,
    onLost: () => void stopIfLost(store, id, options),
    onFault: options.onFault,
    ...(options.fullShare !== undefined && { fullShare: options.fullShare }),
  })
}

async function stopIfLost(store: RedisStore, id: string, options: OpenStoreOptions): Promise<void> {
  const reason = await checkInstallation(() => store.views, id)
  if (reason !== null) stopFor(options, reason, 'The store is another one than before: stopping')
}

function stopFor({ log, end }: OpenStoreOptions, reason: string, sentence: string): void {
  log.fatal({ reason }, sentence)
  end(1)
}

async function closeStore({
  store,
  embedded,
  watch,
}: {
  store: RedisStore | null
  embedded: EmbeddedRedis | null
  watch: StoreWatch
}): Promise<void> {
  watch.stop()
  await embedded?.stop({ whenLast: async () => store !== null && (await isUnused(store.views)) })
  store?.close()
}

/** Asks for a new append-only file; answers why Redis refused, as it does while it writes one. */
function requestRewrite(redis: Redis): Promise<string | null> {
  return redis.bgrewriteaof().then(
    () => null,
    (error: Error) => error.message,
  )
}

/** How the last rewrite fares; null when Redis did not answer. */
async function readRewriteState(redis: Redis): Promise<RewriteState | null> {
  const info = await redis.info().catch(() => null)
  const runId = /^run_id:(\w+)/m.exec(info ?? '')?.[1]
  if (info === null || runId === undefined) return null
  return {
    runId,
    isRunning: /^aof_rewrite_(?:in_progress|scheduled):1/m.test(info),
    isOk: /^aof_last_bgrewrite_status:ok/m.test(info),
  }
}

/** After a start that failed: one that was adopted belongs to others too. */
async function giveBack(store: RedisStore | null, embedded: EmbeddedRedis | null): Promise<void> {
  await embedded?.stop({ whenLast: async () => !embedded.adopted && (store === null || (await isUnused(store.views))) })
  store?.close()
}

/** Whether no living process of the service uses a store; false where it does not say. */
export async function isUnused(redis: Redis): Promise<boolean> {
  const records = await redis.hgetall(WORKERS_KEY).catch(() => null)
  if (records === null) return false
  return Object.values(records).every((text) => isProcessGone(JSON.parse(text) as WorkerRecord))
}
