/**
 * parts - the parts of a running service, opened one on the other: secret, store, installation, worker
 *
 * Guarantees: a failed start closes everything it had opened; while the store is not durable, no commands go to
 * actors.
 */

import { newCmdId } from '../../cluster/cmd-id.ts'
import type { Fence } from '../../cluster/fence.ts'
import type { Contents } from '../content/contents.ts'
import { makeDiskFigure } from '../content/disk-figure.ts'
import { openContents } from '../content/open.ts'
import { openDns } from '../dns/open.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Engine } from '../http/engine/engine.ts'
import { loadEngine } from '../http/engine/load.ts'
import { type Outbound, openOutbound } from '../outbound/open.ts'
import { openServiceKey } from '../outbound/signing-keys.ts'
import { readSiteLimits, watchSiteLimits } from '../outbound/site-limits.ts'
import type { SigningKey } from '../outbound/thread/sign.ts'
import { type MailRoom, makeMailRoom, type SmtpChanges } from '../outbound/threads.ts'
import type { Config } from '../process/config.ts'
import { openFence } from '../process/fence.ts'
import type { Log, Logs } from '../process/log.ts'
import { type Metrics, makeMetrics } from '../process/metrics.ts'
import type { Records } from '../process/records.ts'
import type { Secrets } from '../process/secrets.ts'
import { openParsing, type Parsing } from '../reception/open-parsing.ts'
import { type BroadcastReader, makeBroadcastReader } from '../routes/broadcast/broadcast-reader.ts'
import { SearchWaits } from '../routes/wait/waits.ts'
import { makeEgressCounts } from '../store/egress-counts.ts'
import { makeHomeMark } from '../store/installation.ts'
import type { Nodes } from '../store/nodes.ts'
import { type OpenStore, openStore } from '../store/open-store.ts'
import { type OutgoingStore, openOutgoing } from '../store/outgoing.ts'
import { makeReadKeys } from '../store/read-keys.ts'
import { openRaw, type ReceivedStore, readParsed } from '../store/received.ts'
import type { StoreWatch } from '../store/store-watch.ts'
import { makePolicyStore } from '../store/sts-policies.ts'
import type { ReadKeys } from '../views/read-keys.ts'
import { makeWebhookRoom, type WebhookRoom } from '../webhooks/open.ts'
import { type DomainLookups, makeDomainLookups } from './domain-check.ts'
import type { RouteDeps } from './handlers.ts'
import { type LogStore, openLog } from './segments.ts'

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
  /** Calls back when the store's connection is open again; with several, when one is, or holds other shards. */
  readonly whenStoreUp: (call: () => void) => void
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
  const whenStoreUp = (call: () => void): void => void onStoreUp.add(call)
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
  const known = { config, engine, log, records, serviceKey, fence, whenStoreUp, end: options.end }
  return await makeParts(known, { opened, siteLimits, smtp: options.smtp ?? {} }).catch(async (error) => {
    await opened.close()
    throw error
  })
}

type KnownParts = Pick<Parts, 'config' | 'engine' | 'log' | 'records' | 'serviceKey' | 'fence' | 'whenStoreUp' | 'end'>

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
  const outgoing = openOutgoing(nodes, { contents, ring: secrets.ring })
  const received: ReceivedStore = { contents, ring: secrets.ring }
  const dns = openDns(config)
  const { resolver } = dns
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
  const logStore = openLog({ contents, secrets, store, redis: outgoing.redis, readKeys, metrics, log, config })
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
  const lookups = makeDomainLookups(config, resolver, outbound.egress.addresses)
  const mail = { outgoing, received, parsing, contents, mailRoom, outbound, delivering, webhooks }
  const made = { ...mail, lookups, logStore, self, resolver, metrics, closeStore }
  const feeds = { openFeeds: new Map<string, number>(), userFeeds: new Map<string, number>(), waits: new SearchWaits() }
  const door = { store, nodes, primaries, cluster, readKeys, rewrites, door: ringDoor }
  const own = { first: { isDone: !config.roles.includes('actors') }, feeds, diskFree: makeDiskFigure(config.dataDir) }
  return { ...known, ...made, ...door, ...own, smtp, secrets, watch, broadcastReader: makeBroadcastReader() }
}
