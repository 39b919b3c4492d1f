/** route-deps - dependencies of the handlers of routes, from the parts of a process and its worker */

import { randomUUID } from 'node:crypto'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import type { Worker } from '../../../cluster/worker/worker.ts'
import { Scans } from '../../http/scans.ts'
import { monotonicMs } from '../../process/fence.ts'
import { ExportPlaces } from '../../routes/export/places.ts'
import { makeStoreCondition } from '../../store/condition.ts'
import { countAccounts } from '../../store/installation.ts'
import { openRaw, readParsed } from '../../store/received.ts'
import { makeReader } from '../../views/key.ts'
import { openFigures } from '../../views/operator/figures.ts'
import { makeContentReaders } from '../content-readers.ts'
import type { RouteDeps } from '../handlers.ts'
import type { Parts } from '../parts.ts'
import { processStats } from '../process-stats.ts'
import { findCapacityShortage, whyNotReady } from '../readiness.ts'
import { makeExamine } from './examination.ts'

/** Dependencies of the handlers of routes. */
export function makeRouteDeps(parts: Parts, worker: Worker): RouteDeps {
  const { config, store, secrets, outgoing, metrics, mailRoom, outbound, webhooks, readKeys } = parts
  const clock = { nowMs: () => worker.nowMs(), shards: () => worker.owned }
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
    ...openFigures({ readKeys, read: makeReader(store), siteOf: outbound.siteOf, ...clock }),
    webhookFigures: webhooks.figures({ readKeys, ...clock }),
    door: parts.door,
  }
}

/** Sends commands to actors, except while the store is not durable, and after the process was frozen. */
function makeAsk({ watch, door }: Parts, worker: Worker): RouteDeps['ask'] {
  const refused = { kind: 'unavailable' } as const
  const isOpen = (): boolean => watch.fault === null && door.isAwake()
  return (shard, command) => (isOpen() ? worker.ask(shard, command) : Promise.resolve(refused))
}
