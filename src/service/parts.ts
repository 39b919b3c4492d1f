/**
 * parts - the parts of a running service, opened one on the other: secret, store, installation, worker
 *
 * Guarantees: a failed start closes everything it had opened; while the store is not durable, no commands go to
 * actors.
 */

import { randomUUID } from 'node:crypto'
import { newCmdId } from '../../cluster/cmd-id.ts'
import type { Fence } from '../../cluster/fence.ts'
import { SHARDS } from '../../cluster/id.ts'
import type { WorkerOptions } from '../../cluster/worker/options.ts'
import { startWorker, type Worker } from '../../cluster/worker/worker.ts'
import type { Role } from '../../schemas/config.ts'
import { BEHAVIOURS } from '../actors/behaviours.ts'
import type { Contents } from '../content/contents.ts'
import { makeDiskFigure } from '../content/disk-figure.ts'
import { openContents } from '../content/open.ts'
import { createResolver, type Resolver } from '../dns/resolve.ts'
import { makeClientThread } from '../dns/threaded-client.ts'
import type { Engine } from '../http/engine/engine.ts'
import { loadEngine } from '../http/engine/load.ts'
import { Scans } from '../http/scans.ts'
import { type Outbound, openOutbound } from '../outbound/open.ts'
import { openServiceKey } from '../outbound/signing-keys.ts'
import { readSiteLimits, watchSiteLimits } from '../outbound/site-limits.ts'
import type { SigningKey } from '../outbound/thread/sign.ts'
import { type MailRoom, makeMailRoom, type SmtpChanges } from '../outbound/threads.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs, openFence } from '../process/fence.ts'
import { isProcessGone, processIdentity } from '../process/identity.ts'
import type { Log, Logs } from '../process/log.ts'
import { type Metrics, makeMetrics } from '../process/metrics.ts'
import type { Records } from '../process/records.ts'
import type { Secrets } from '../process/secrets.ts'
import { openParsing, type Parsing } from '../reception/open-parsing.ts'
import { type BroadcastReader, makeBroadcastReader } from '../routes/broadcast/broadcast-reader.ts'
import { ExportPlaces } from '../routes/export/places.ts'
import { SearchWaits } from '../routes/wait/waits.ts'
import { makeStoreCondition } from '../store/condition.ts'
import { makeContentStore } from '../store/content.ts'
import { makeEgressCounts } from '../store/egress-counts.ts'
import { countAccounts, makeHomeMark } from '../store/installation.ts'
import { makeListedContents } from '../store/listed.ts'
import type { Nodes } from '../store/nodes.ts'
import { type OpenStore, openStore } from '../store/open-store.ts'
import type { OutgoingStore } from '../store/outgoing.ts'
import { makeReadKeys } from '../store/read-keys.ts'
import { openRaw, type ReceivedStore, readParsed } from '../store/received.ts'
import type { StoreWatch } from '../store/store-watch.ts'
import { makePolicyStore } from '../store/sts-policies.ts'
import { makeReader } from '../views/key.ts'
import { makeErasureFigures } from '../views/operator/erasure-figures.ts'
import { makeQueueFigures } from '../views/operator/queue-figures.ts'
import { makeRotationFigures } from '../views/operator/rotation.ts'
import { makeDomainFigures } from '../views/operator/undecided-domains.ts'
import type { ReadKeys } from '../views/read-keys.ts'
import { makeWebhookRoom, type WebhookRoom } from '../webhooks/open.ts'
import { makeWebhookStats } from '../webhooks/webhook-stats.ts'
import { makeExamine } from './assembly/examination.ts'
import { type LaneChanges, openLanes } from './assembly/open-lanes.ts'
import { makeOnCommitNote } from './commit-notes.ts'
import { makeContentReaders } from './content-readers.ts'
import { type DomainLookups, makeDomainLookups } from './domain-check.ts'
import type { RouteDeps } from './handlers.ts'
import { processStats } from './process-stats.ts'
import { findCapacityShortage, whyNotReady } from './readiness.ts'
import { type LogStore, openLog } from './segments.ts'
import { servedUrlsOf } from './served-urls.ts'

/** Everything that a running service is made of. */
export interface Parts {
  readonly config: Config
  readonly engine: Engine
  readonly log: Log
  readonly records: Records
  readonly secrets: Secrets
  readonly door: OpenStore['door']
  readonly rewrites: OpenStore['rewrites']
  readonly nodes: Nodes
  readonly primaries: OpenStore['primaries']
  readonly cluster: OpenStore['cluster']
  readonly readKeys: ReadKeys
  readonly store: OpenStore['store']
  readonly watch: StoreWatch
  readonly outgoing: OutgoingStore
  /** Null if all content is in Redis. */
  readonly contents: Contents | null
  readonly fence: Fence
  readonly metrics: Metrics
  /** Free share of the disk of DATA_DIR; null: not known yet. */
  readonly diskFree: () => number | null
  readonly mailRoom: MailRoom
  readonly webhooks: WebhookRoom
  /** Signs all live mail in addition to its domain's key. */
  readonly serviceKey: SigningKey | null
  readonly lookups: DomainLookups
  /** For lookups outside delivery, which has its own. */
  readonly resolver: Resolver
  /** Called when the store's connection is open again; with several, when one is, or holds other shards. */
  readonly onStoreUp: Set<() => void>
  /** Ends the service: it cannot continue. */
  readonly end: (code: number) => void
  readonly outbound: Outbound
  /** Gives the store back. */
  readonly closeStore: () => Promise<void>
  /** Processes that deliver now; until there is a worker, this one alone. */
  readonly delivering: { count(): number }
  /** Whether the first account is made, or there is one already, as far as it is for this process to make it. */
  readonly first: { isDone: boolean }
  /** The worker's id and clock; before there is one, those of this process. */
  readonly self: { worker: string; nowMs: () => number }
  readonly received: ReceivedStore
  readonly parsing: Parsing
  readonly feeds: Pick<RouteDeps, 'openFeeds' | 'userFeeds' | 'waits'>
  /** The message log, in Redis and in the content store. */
  readonly logStore: LogStore
  /** Changes of a test. */
  readonly smtp: SmtpChanges
  /** Reads bodies of broadcasts. */
  readonly broadcastReader: BroadcastReader
}

/** Changes for tests, and the callback if the service cannot continue. */
interface PartsOptions {
  readonly end: (code: number) => void
  readonly smtp?: SmtpChanges
  readonly fullShare?: number
  readonly acceptDomain?: boolean
}

/** Opens the store and makes the parts that depend on it. `end` is called if the service cannot continue. */
export async function openParts(config: Config, { log, records }: Logs, options: PartsOptions): Promise<Parts> {
  const engine = await loadEngine(config.httpEngine)
  const serviceKey = openServiceKey(config)
  const siteLimits = readSiteLimits(config.siteLimits)
  const fence = openFence()
  const onStoreUp = new Set<() => void>()
  const onUp = (): void => {
    for (const call of onStoreUp) call()
  }
  const opened = await openStore(config, {
    ...options,
    log,
    onUp,
    onDown: () => fence.disconnected(),
    onFault: (isFaulty) => fence.hold(isFaulty),
  })
  const known = { config, engine, log, records, serviceKey, fence, onStoreUp, end: options.end }
  return await makeParts(known, { opened, siteLimits, smtp: options.smtp ?? {} }).catch(async (error) => {
    await opened.close()
    throw error
  })
}

type KnownParts = Pick<Parts, 'config' | 'engine' | 'log' | 'records' | 'serviceKey' | 'fence' | 'onStoreUp' | 'end'>

interface PartsInput {
  readonly opened: OpenStore
  readonly siteLimits: ReturnType<typeof readSiteLimits>
  readonly smtp: SmtpChanges
}

/** The parts that depend on an open store. */
async function makeParts(known: KnownParts, { opened, siteLimits, smtp }: PartsInput): Promise<Parts> {
  const { config, log, fence } = known
  const { store, secrets, watch, nodes, primaries, cluster, rewrites, door: ringDoor } = opened
  const readKeys = makeReadKeys(nodes)
  const metrics = makeMetrics(known.engine.name)
  const self = { worker: newCmdId(Date.now(), Math.random), nowMs: (): number => Date.now() }
  const contents = await openContents({
    config,
    mark: makeHomeMark(nodes),
    log,
    worker: () => self.worker,
    told: (act) => metrics.contentDone(act),
  })
  const redis = makeContentStore(nodes)
  const outgoing: OutgoingStore = {
    redis,
    contents,
    ring: secrets.ring,
    listed: makeListedContents(redis, monotonicMs),
  }
  const received: ReceivedStore = { contents, ring: secrets.ring }
  const dns = makeClientThread({ servers: config.dnsServers, isTrusted: config.dnssec === 'trusted' })
  const resolver = createResolver({ client: dns.open(), nowMs: monotonicMs })
  const mailRoom = makeMailRoom({ config, fence, log, changes: smtp })
  const delivering = { count: (): number => 1 }
  const outbound = await openOutbound({
    sharers: () => delivering.count(),
    config,
    log,
    policyStore: makePolicyStore(nodes),
    readKeys,
    hear: (topic, heard) => store.hear(topic, heard),
    siteLimits: watchSiteLimits(config.siteLimits, siteLimits, log),
    nowMs: () => self.nowMs(),
    egressStore: makeEgressCounts(nodes),
    ring: secrets.ring,
    counted: (source, result) => metrics.attemptedBy(source, result),
    run: mailRoom.run,
    smtp,
    dns: dns.open(),
  })
  const logStore = openLog({ contents, secrets, store, redis, readKeys, metrics, log, config })
  const webhooks = makeWebhookRoom({
    config,
    metrics,
    read: logStore.read,
    ring: secrets.ring,
    resolver,
    ca: smtp.ca ?? null,
    received: {
      readParsed: (place) => readParsed(received, place),
      nowMs: () => self.nowMs(),
      inboundDomain: config.inboundDomain,
    },
    openRaw: (place) => openRaw(received, place),
  })
  const parsing = openParsing({ received, secrets, config, metrics, dns: dns.open() })
  async function closeStore(): Promise<void> {
    await dns.close()
    await contents?.close()
    await opened.close()
  }
  const mail = { outgoing, received, parsing, contents, mailRoom, outbound, delivering, webhooks }
  const made = { ...mail, logStore, self, resolver, metrics, closeStore }
  const readers = { lookups: makeDomainLookups(config, resolver), broadcastReader: makeBroadcastReader() }
  const feeds = { openFeeds: new Map<string, number>(), userFeeds: new Map<string, number>(), waits: new SearchWaits() }
  const door = { store, nodes, primaries, cluster, readKeys, rewrites, door: ringDoor }
  const own = { first: { isDone: !config.roles.includes('actors') }, feeds, diskFree: makeDiskFigure(config.dataDir) }
  return { ...known, ...made, ...door, ...readers, ...own, smtp, secrets, watch }
}

/** The effective roles of a process, which receives no mail without its port. */
function rolesRun({ roles, mxPort }: Config): readonly Role[] {
  return roles.filter((role) => role !== 'mx' || mxPort !== 0)
}

/** Changes of a worker for tests. */
export interface WorkerChanges extends LaneChanges {
  /** Makes the shards; crash tests stop them at a named step. */
  readonly makeShard?: WorkerOptions['makeShard']
}

/** Starts the worker: behaviours, and lanes with their performers. */
export async function openWorker(parts: Parts, changes: WorkerChanges): Promise<Worker> {
  const { config, store, fence, outbound, metrics, log } = parts
  const { makeShard } = changes
  const self = processIdentity()
  const clock = { nowMs: (): number => Date.now() }
  const lanes = openLanes(parts, { clock, worker: () => worker, ...changes })
  const urls = servedUrlsOf(config)
  const worker = await startWorker({
    store,
    fence,
    behaviours: { ...BEHAVIOURS, lanes },
    log,
    shards: SHARDS,
    random: Math.random,
    takesShards: config.roles.includes('actors'),
    identity: () => ({
      ...self,
      ...store.identity,
      roles: rolesRun(config),
      keys: parts.door.record(),
      ...(urls && { urls }),
    }),
    processGone: (record) => isProcessGone(record, self),
    lags: () => store.lags,
    ...(parts.primaries !== null && { primaries: parts.primaries }),
    committed: (ms) => metrics.committed(ms),
    lostCommits: (commits) => metrics.lostCommits(commits),
    noted: makeOnCommitNote({ records: parts.records, metrics, outbound }),
    hopeless: () => parts.end(1),
    ...(makeShard !== undefined && { makeShard }),
  })
  if (!config.roles.includes('actors')) store.prepareToAsk(worker.id)
  parts.onStoreUp.add(() => worker.connected())
  clock.nowMs = () => worker.nowMs()
  parts.self.worker = worker.id
  parts.self.nowMs = () => worker.nowMs()
  parts.delivering.count = () => worker.sharers
  return worker
}

/** Dependencies of the handlers of routes. */
export function makeRouteDeps(parts: Parts, worker: Worker): RouteDeps {
  const { config, store, secrets, outgoing, metrics, mailRoom, outbound, webhooks, readKeys } = parts
  const condition = makeStoreCondition(parts.nodes, config.durability, parts.cluster)
  return {
    ask: makeAsk(parts, worker),
    read: parts.logStore.read,
    readKeys,
    siteOf: outbound.siteOf,
    mailRoute: outbound.routeOf,
    egressPlan: outbound.egress.plan,
    refreshHolds: outbound.holds.refresh,
    newCmdId: () => newCmdId(worker.nowMs(), Math.random),
    nowMs: () => worker.nowMs(),
    scans: new Scans(monotonicMs),
    exportPlaces: new ExportPlaces(monotonicMs),
    secrets,
    ring: secrets.ring,
    broadcastReader: parts.broadcastReader,
    outgoing,
    ...makeContentReaders(parts, () => worker.nowMs()),
    contents: parts.contents,
    readParsed: (place) => readParsed(parts.received, place),
    openRaw: (place, span) => openRaw(parts.received, place, span),
    metrics,
    webhookSecrets: webhooks.secrets,
    readEvent: webhooks.readEvent,
    newEventId: randomUUID,
    ...parts.feeds,
    hear: (topic, heard) => store.hear(topic, heard),
    privateNetworksAllowed: config.privateNetworksAllowed,
    billing: config.billing === 'on',
    // With sources that send to sites themselves, mail waits by its domain.
    hasRelay: () => config.relayUrl !== null && outbound.egress.plan()?.isDirect !== true,
    serviceDomain: config.serviceDomain,
    inboundDomain: config.inboundDomain,
    baseUrl: config.baseUrl,
    operatorUrl: config.operatorUrl,
    measure: mailRoom.measure,
    ...parts.lookups,
    examine: makeExamine(parts, worker, condition),
    livingWorkers: () => worker.livingWorkers,
    cluster: parts.cluster,
    countAccounts: () => countAccounts(readKeys),
    shardPlaces: () => worker.shardPlaces,
    approval: config.approval,
    freshMails: parts.parsing.freshMails,
    judges: parts.parsing.judges,
    roomLack: () => findCapacityShortage(parts),
    whyNotReady: () => whyNotReady(parts, worker),
    figures: () => processStats(parts, worker),
    redisFigures: () => parts.watch.nodes,
    webhookFigures: makeWebhookStats({
      readKeys,
      nowMs: () => worker.nowMs(),
      shards: () => worker.owned,
      standingOf: (lane) => webhooks.standings.of(lane),
    }),
    erasureFigures: makeErasureFigures({ readKeys, nowMs: () => worker.nowMs(), shards: () => worker.owned }),
    domainFigures: makeDomainFigures({ readKeys, nowMs: () => worker.nowMs(), shards: () => worker.owned }),
    rotationFigures: makeRotationFigures({ read: makeReader(store), nowMs: () => worker.nowMs() }),
    door: parts.door,
    queueFigures: makeQueueFigures({
      readKeys,
      nowMs: () => worker.nowMs(),
      siteOf: outbound.siteOf,
    }),
  }
}

/** Sends commands to actors, except while the store is not durable, and after the process was frozen. */
function makeAsk({ watch, door }: Parts, worker: Worker): RouteDeps['ask'] {
  const refused = { kind: 'unavailable' } as const
  const isOpen = (): boolean => watch.fault === null && door.isAwake()
  return (shard, command) => (isOpen() ? worker.ask(shard, command) : Promise.resolve(refused))
}
