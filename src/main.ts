/**
 * main - the service, put together: store, worker, listeners, mail threads, chores
 *
 * Start: secret, store (our own Redis if no URL is set), installation, worker, listeners, first account. Heavy parts
 * that are not needed for a first answer follow later: mail threads with the first attempt, periodic jobs last. Stop,
 * within ten seconds: no new requests, open ones are answered (5 s), attempts in flight end (within 8 s, at webhooks 5
 * s), shards are released, our own Redis is ended last and only if no other process uses it.
 */

import { newCmdId } from '../cluster/cmd-id.ts'
import type { WorkerOptions } from '../cluster/worker/options.ts'
import { startWatchdog } from '../cluster/worker/watchdog.ts'
import type { Worker } from '../cluster/worker/worker.ts'
import type { CreateAccountBody } from './actors/account/create-account.ts'
import type { SmtpChanges } from './outbound/threads.ts'
import type { Config } from './process/config.ts'
import { makeLogs } from './process/log.ts'
import { makeLivingRoles } from './service/assembly/examination.ts'
import { openWorker } from './service/assembly/open-worker.ts'
import { makeRouteDeps } from './service/assembly/route-deps.ts'
import { startChores } from './service/chores.ts'
import { makeSweep } from './service/content-sweep.ts'
import { makeErasureLooks } from './service/erasure-rewrite.ts'
import { ignoredFirstKeys, readFirstKeys } from './service/first-keys.ts'
import { type FirstAccount, firstStart, formatWelcome } from './service/first-start.ts'
import { startListeners } from './service/handlers.ts'
import { openParts, type Parts } from './service/parts.ts'
import { processStats } from './service/process-stats.ts'
import { findServedUrls } from './service/served-urls.ts'
import { startupSummary } from './service/startup-summary.ts'
import { walkUsers } from './service/user-walk.ts'
import { dashboardBase, linkUrl } from './state/dashboard/link-token.ts'
import { makeKeyFinder, makeReader } from './views/key.ts'

/** Time for attempts in flight at a stop, counted from its beginning. */
const STOP_ATTEMPTS_MS = 8000

/** A service that runs. */
export interface RunningService {
  /** Stops it; resolves when everything is released. */
  stop(): Promise<void>
  /** Resolves with an exit code when the service has to end by itself. */
  readonly exited: Promise<number>
}

export interface ServiceOptions {
  /** Performers of a lane in place of our own bounds; 0 holds its items. */
  readonly room?: (lane: string) => number
  /** Output for the keys of the first start; standard output by default. */
  readonly print?: (text: string) => void
  /** Replaces settings and bounds of how mail is transmitted. */
  readonly smtp?: SmtpChanges
  /** Share of the store's memory from which on sends are refused, in place of our own. */
  readonly fullShare?: number
  /** Whether mail is neither sent nor received, for tests of applications. */
  readonly isTestOnly?: boolean
  /** Time for commands that were sealed before a rotation, in place of our own. */
  readonly settlingMs?: number
  /** Whether another service domain than before is meant. */
  readonly acceptDomain?: boolean
  /** Ends the process when its loop hangs: for a process that is nothing but the service. */
  readonly isWatched?: boolean
  /** Makes the shards; crash tests stop them at a named step. */
  readonly makeShard?: WorkerOptions['makeShard']
}

/**
 * Starts the service. If that fails, rejects and closes the opened parts, for example on another store, a taken port,
 * or without Redis.
 */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<RunningService> {
  const logs = makeLogs({ level: config.logLevel, isTerminal: process.stdout.isTTY === true })
  const ending = makeEnding()
  const { smtp, fullShare, acceptDomain = false } = options
  const changes = { acceptDomain, ...(smtp && { smtp }), ...(fullShare !== undefined && { fullShare }) }
  const parts = await openParts(config, logs, { end: ending.end, ...changes })
  const running: Partial<Running> = {}
  await open(parts, options, running).catch(async (error) => {
    ending.stopping()
    await stopAll(parts, running)
    throw error
  })
  let stopped: Promise<void> | null = null
  return {
    exited: ending.ended,
    stop() {
      ending.stopping()
      stopped ??= stopAll(parts, running)
      return stopped
    },
  }
}

/** The running parts; after a start that failed half way only some of them. */
interface Running {
  worker: Worker
  listeners: { close(): Promise<void> }
  stopChores: () => Promise<void>
  stopWatchdog: () => Promise<void>
}

async function open(parts: Parts, options: ServiceOptions, running: Partial<Running>): Promise<void> {
  const { config, log, records, store, metrics, rewrites } = parts
  const worker = await openWorker(parts, options)
  running.worker = worker
  const handlers = makeRouteDeps(parts, worker)
  running.listeners = await startListeners(config, {
    engine: parts.engine,
    handlers,
    keys: makeKeyFinder(makeReader(store)),
    log,
    records,
    nodes: parts.nodes,
  })
  if (config.roles.includes('actors')) await startFirst(parts, worker, options)
  log.info(startupSummary(config, parts.engine.name), 'Started')
  const figures = () => processStats(parts, worker)
  if (options.isWatched === true) running.stopWatchdog = startWatchdog()
  const { webhookFigures, erasureFigures } = handlers
  const sweep = makeSweep(parts, worker)
  const livingRoles = config.roles.includes('actors') ? makeLivingRoles(parts, worker) : null
  const shards = () => worker.owned
  const walk = config.roles.includes('actors') ? () => walkUsers({ ...handlers, shards }) : null
  const erasures = makeErasureLooks(parts, () => worker.nowMs())
  running.stopChores = await startChores({
    metrics,
    figures,
    webhookFigures,
    erasureFigures,
    log,
    sweep,
    walkUsers: walk,
    rewriteFile: rewrites?.ask ?? null,
    livingRoles,
    erasures,
    blocklists: livingRoles === null ? null : { ...parts, ...parts.lookups, lists: config.blocklists },
  })
}

/** The first account, by the first process with actors. */
async function startFirst(parts: Parts, worker: Worker, options: ServiceOptions): Promise<void> {
  const { config, nodes, secrets } = parts
  const first = await firstStart({
    nodes,
    dataDir: config.dataDir,
    givenKeys: () => readFirstKeys(config),
    findUrls: () => findServedUrls(config, { nodes, living: () => worker.livingWorkers }),
    linkUrl: (baseUrl, linkId) => linkUrl(dashboardBase(baseUrl), linkId, secrets.linkKey),
    createAccount: (shard, account) => createFirstAccount(parts, worker, { shard, account }),
  })
  if (first === null) {
    const ignored = await ignoredFirstKeys(nodes, config)
    if (ignored.length > 0)
      parts.log.warn({ ignored }, 'The first account has its keys: settings of others are ignored')
  }
  const print = options.print ?? ((text: string) => void process.stdout.write(text))
  parts.first.isDone = true
  const isShown = process.stdout.isTTY === true
  if (first !== null) print(formatWelcome(first.path, first.firstRun, isShown))
}

/** The service's own end, of which the first reason counts, and none once it is being stopped. */
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

/**
 * Requests the first account with a live and a test server, each with a key. Returns whether it was created.
 */
async function createFirstAccount(
  { config }: Parts,
  worker: Worker,
  { shard, account }: { shard: number; account: FirstAccount },
): Promise<boolean> {
  const body: CreateAccountBody = {
    name: 'First account',
    status: config.approval === 'automatic' ? 'active' : 'pending',
    accountKey: account.accountKey,
    operatorKey: account.operatorKey,
    setupLinkId: account.linkId,
    servers: [
      { name: 'Live', mode: 'live', key: account.liveKey },
      { name: 'Test', mode: 'test', key: account.testKey },
    ],
  }
  const cmdId = newCmdId(worker.nowMs(), Math.random)
  const { kind } = await worker.ask(shard, { name: 'create-account', cmdId, body })
  if (kind === 'answer' || kind === 'unavailable') return kind === 'answer'
  throw new Error(`The first account was not created: the cluster answered ${kind}`)
}

async function stopAll(parts: Parts, { worker, listeners, stopChores, stopWatchdog }: Partial<Running>): Promise<void> {
  const startedAtMs = performance.now()
  const { log, config } = parts
  log.info({ roles: config.roles }, 'Stopping')
  await stopChores?.()
  await listeners?.close()
  const spentMs = performance.now() - startedAtMs
  parts.outbound.close()
  // Attempts abandoned by the threads return to their lane while the worker still commits.
  await Promise.all([
    worker?.stop(spentMs),
    parts.parsing.close(),
    parts.mailRoom.close(Math.max(0, STOP_ATTEMPTS_MS - spentMs)),
  ])
  await parts.webhooks.close()
  await parts.broadcastReader.close()
  await parts.closeStore()
  await stopWatchdog?.()
  log.info({ roles: config.roles, ms: Math.round(performance.now() - startedAtMs) }, 'Stopped')
}
