/**
 * main - the service, put together: store, worker, listeners, mail threads, chores
 *
 * Start: secret, store (our own Redis where none is named), installation, worker, listeners, first account. What is
 * heavy and not needed for a first answer comes after: mail threads with the first attempt, chores last.
 * Stop: no new requests, those in hand are answered, attempts under way end (8 s), shards are given back, our own Redis
 * goes last and only when nobody else uses it.
 */

import { newCmdId } from '../cluster/cmd-id.ts'
import { type EmbeddedRedis, startEmbeddedRedis } from '../cluster/embedded-redis.ts'
import { SHARDS } from '../cluster/id.ts'
import { WORKERS_KEY } from '../cluster/keyspace.ts'
import { connectRedisStore, type RedisStore } from '../cluster/redis-store.ts'
import type { WorkerRecord } from '../cluster/store.ts'
import { startWorker, type Worker, type WorkerOptions } from '../cluster/worker.ts'
import { BEHAVIOURS } from './actors/behaviours.ts'
import type { CreateAccountBody } from './actors/create-account.ts'
import { startChores } from './chores.ts'
import type { Config } from './config.ts'
import { type ContentStore, readBody } from './content.ts'
import { checkDomain } from './effects/check-domain.ts'
import { createFence, type Fence, markDisconnected, monotonicMs } from './effects/fence.ts'
import { createResolver } from './effects/resolve.ts'
import { type FirstAccount, firstStart, formatWelcome } from './first-start.ts'
import { checkInstallation, openInstallation, openSecret } from './installation.ts'
import { makeLanes } from './lanes.ts'
import { type RouteDeps, startListeners } from './listeners.ts'
import { type Log, makeLog } from './log.ts'
import { type MailRoom, makeMailRoom } from './mail-room.ts'
import { type Metrics, makeMetrics } from './metrics.ts'
import { isProcessGone, processIdentity } from './process-identity.ts'
import { makeSecrets, type Secrets } from './secrets.ts'
import { fenceStore, makeContentStore } from './store-guard.ts'
import { makeKeyFinder } from './views/key.ts'

/** What attempts under way are given at a stop, counted from its beginning. */
const STOP_ATTEMPTS_MS = 8000
/** Port of name servers, for the second opinion of a domain's check. */
const DNS_PORT = 53

/** A service that runs. */
export interface RunningService {
  /** Stops it; resolves when everything is given back. */
  stop(): Promise<void>
  /** Resolves with an exit code when the service has to end by itself. */
  readonly exited: Promise<number>
}

export interface ServiceOptions {
  /** Performers of a lane in place of our own bounds; 0 holds its items. */
  readonly room?: (lane: string) => number
  /** Where the first start tells its keys; standard output by default. */
  readonly print?: (text: string) => void
  /** Makes the shards; crash tests stop them at a named step. */
  readonly makeShard?: WorkerOptions['makeShard']
}

/** Starts the service. Rejects when it cannot: another store, a taken port, no Redis. */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<RunningService> {
  const log = makeLog({ level: config.logLevel, isTerminal: process.stdout.isTTY === true })
  const ending = makeEnding()
  const parts = await openParts(config, log, ending.end)
  const worker = await openWorker(parts, options)
  const listeners = await startListeners(config, {
    handlers: makeRouteDeps(parts, worker),
    keys: makeKeyFinder((shard, facts) => parts.store.read(shard, facts)),
    log,
  })
  log.info({ url: config.baseUrl }, 'Listening')
  const first = await firstStart({
    redis: parts.store.views,
    dataDir: config.dataDir,
    baseUrl: config.baseUrl,
    operatorUrl: `http://${config.operatorHost}:${config.operatorPort}`,
    createAccount: (shard, account) => createFirstAccount(parts, worker, { shard, account }),
  })
  const print = options.print ?? ((text: string) => void process.stdout.write(text))
  if (first !== null) print(formatWelcome(first.path, first.firstRun))
  const { metrics } = parts
  const figures = () => figuresOf(parts, worker)
  const stopChores = await startChores({ metrics, figures, log, ownRedis: parts.embedded && parts.store.views })
  let stopped: Promise<void> | null = null
  return {
    exited: ending.ended,
    stop() {
      ending.stopping()
      stopped ??= stopAll(parts, { worker, listeners, stopChores })
      return stopped
    },
  }
}

/** The service's own end: the first reason counts, and none does once it is being stopped. */
function makeEnding(): { ended: Promise<number>; end: (code: number) => void; stopping: () => void } {
  let resolve: (code: number) => void = () => undefined
  let isStopping = false
  const ended = new Promise<number>((settle) => {
    resolve = settle
  })
  return {
    ended,
    end: (code) => {
      if (!isStopping) resolve(code)
    },
    stopping: () => {
      isStopping = true
    },
  }
}

/** Asks for the first account: a live and a test server, each with a key. */
async function createFirstAccount(
  { config }: Parts,
  worker: Worker,
  { shard, account }: { shard: number; account: FirstAccount },
): Promise<void> {
  const body: CreateAccountBody = {
    name: 'First account',
    status: config.approval === 'automatic' ? 'active' : 'pending',
    accountKey: account.accountKey,
    operatorKey: account.operatorKey,
    servers: [
      { name: 'Live', mode: 'live', key: account.liveKey },
      { name: 'Test', mode: 'test', key: account.testKey },
    ],
  }
  const cmdId = newCmdId(worker.nowMs(), Math.random)
  const result = await worker.ask(shard, { name: 'create-account', cmdId, body })
  if (result.kind !== 'answer') throw new Error(`The first account was not made: the cluster answered ${result.kind}`)
}

interface Running {
  readonly worker: Worker
  readonly listeners: { close(): Promise<void> }
  readonly stopChores: () => Promise<void>
}

async function stopAll(parts: Parts, { worker, listeners, stopChores }: Running): Promise<void> {
  const startedAtMs = performance.now()
  await stopChores()
  await listeners.close()
  const leftMs = Math.max(0, STOP_ATTEMPTS_MS - (performance.now() - startedAtMs))
  // What the threads give up is reported as deferred while the worker still commits.
  await Promise.all([worker.stop(), parts.mailRoom.close(leftMs)])
  await parts.embedded?.stop({ whenLast: () => isLast(parts.store) })
  parts.store.close()
}

/** Whether no other living process uses the store. */
async function isLast(store: RedisStore): Promise<boolean> {
  const records = Object.values(await store.views.hgetall(WORKERS_KEY))
  return records.every((text) => isProcessGone(JSON.parse(text) as WorkerRecord))
}
