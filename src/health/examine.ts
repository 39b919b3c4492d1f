/**
 * examine - everything that an installation needs of the world around it, looked at once
 *
 * Guarantees: it ends within half a minute, even if parts do not answer; it changes nothing and sends no mail; one
 * failed check does not prevent the others.
 *
 * Spec operator.health
 */

import { setTimeout as delay } from 'node:timers/promises'
import { damagedValues } from '../../cluster/sum.ts'
import { EXAMINED, type ExaminedName, type Finding, type Health } from '../../schemas/operator/health.ts'
import type { Contents } from '../content/contents.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Engine } from '../http/engine/engine.ts'
import type { SigningKey } from '../outbound/thread/sign.ts'
import { type Config, isOwnStore } from '../process/config.ts'
import type { SealingRing } from '../state/ring/sealing.ts'
import type { StoreCondition } from '../store/condition.ts'
import type { RingDoor } from '../store/ring.ts'
import type { Reader } from '../views/key.ts'
import { examineBlocklists } from './blocklists.ts'
import { readClockSync } from './clock-sync.ts'
import { examineClocks, examineCluster } from './cluster.ts'
import { examineContent } from './content.ts'
import {
  type DnsDeps,
  examineDmarc,
  examineEhloName,
  examineMx,
  examinePtr,
  examineResolver,
  examineReturnPath,
  examineServiceDkim,
  examineServiceDomain,
  examineSpf,
  lookUpAddresses,
} from './dns.ts'
import { examineDnssec } from './dnssec.ts'
import { examineDomains } from './domains.ts'
import { examineEgress, readSources, sourceAddresses } from './egress.ts'
import { failed } from './finding.ts'
import { examineBackup, examineExposure, examineFsync, examineKernel, examineNode } from './host.ts'
import { examineDisk, examineHttpEngine, examineTls } from './machine.ts'
import { examineMxListener } from './mx-listener.ts'
import { examineMxPort } from './mx-port.ts'
import { examinePort } from './port.ts'
import { examineReportAuthorization } from './report-authorization.ts'
import { examineSecret } from './secret.ts'
import { examineSegments } from './segments.ts'
import { serviceRecords } from './service-records.ts'
import { examineClock, examineStore } from './store.ts'
import { examineSubmission } from './submission.ts'
import { examineUnsubscribe } from './unsubscribe.ts'
import { examineWebhookPorts } from './webhook-ports.ts'

/** Timeout of one check; at most two run in sequence. */
const LOOK_MS_MAX = 12_000
/** After a failover or a move the nodes of a cluster agree within this. */
const AGREED_MS = 2_000

export interface ExamineDeps {
  readonly config: Config
  readonly engine: Engine
  readonly store: StoreCondition
  /** Reads data of accounts. */
  readonly read: Reader
  /** Why nothing is accepted now; null while the store syncs acknowledged writes. */
  readonly storeFault: () => string | null
  /** Null if all content is in Redis. */
  readonly contents: Contents | null
  /** Opens the keys of segments. */
  readonly ring: SealingRing
  /** Whether a new secret is set that the store does not use yet. */
  readonly door: Pick<RingDoor, 'hasNext'>
  readonly resolver: Resolver
  readonly serviceKey: SigningKey | null
  /** Reads the roles of the living processes. */
  readonly livingRoles: () => Promise<ReadonlySet<string>>
  /** The store's clock, milliseconds. */
  readonly storeMs: () => number
  /** The local clock, milliseconds. */
  readonly nowMs: () => number
}

/** Runs all checks. Never rejects. */
export async function examine(deps: ExamineDeps): Promise<Health> {
  const { config, store, read, livingRoles, nowMs } = deps
  const isOwn = isOwnStore(config)
  const port = within('outbound-port', async () => examinePort(deps))
  const findings = await Promise.all([
    examineRedis(deps, isOwn),
    one('clock', () => examineClock(store, nowMs, readClockSync)),
    one('disk', () => examineDisk(config.dataDir, isOwn)),
    one('fsync', () => examineFsync(config.dataDir)),
    one('kernel', async () => examineKernel(isOwn)),
    one('node', async () => examineNode(process.version, nowMs())),
    one('backup', async () => examineBackup(config.dataDir, nowMs())),
    one('secret', () => examineSecret({ ...deps, nowMs: deps.storeMs })),
    one('content', () => examineContent(deps.contents, config.dataDir)),
    one('segments', () => examineSegments({ ...deps, nowMs: deps.storeMs })),
    one('http-engine', async () => examineHttpEngine(deps.engine)),
    one('exposure', async () => examineExposure(config)),
    one('mx-listener', () => examineMxListener(livingRoles, config.dataDir)),
    one('mx-port', () => examineMxPort(deps)),
    one('submission', () => examineSubmission(config, livingRoles)),
    one('resolver', () => examineResolver(deps)),
    one('dnssec', () => examineDnssec(deps)),
    one('tls', async () => examineTls(config, nowMs())),
    one('unsubscribe', async () => examineUnsubscribe(config.baseUrl)),
    one('webhook-ports', () => examineWebhookPorts(read, config.webhookPorts)),
    one('domains', () => examineDomains(read, nowMs())),
    port.then((found) => ('finding' in found ? found.finding : found)),
    examineNames(deps, port),
  ])
  const all = findings.flat().sort((a, b) => EXAMINED.indexOf(a.name) - EXAMINED.indexOf(b.name))
  return {
    ok: all.every(({ status }) => status !== 'failed'),
    findings: all,
    records: await listRecords(deps, await port),
  }
}

/** The store, either one Redis or every node of a cluster. */
async function examineRedis({ config, store, storeFault }: ExamineDeps, isOwn: boolean): Promise<Finding[]> {
  const { cluster } = store
  if (cluster === null)
    return [await one('store', () => examineStore(store, { isOwn, fault: storeFault(), damaged: damagedValues() }))]
  const found = await within('store', async () => {
    let state = await cluster()
    if (state !== null && state.dissent.length > 0) {
      await delay(AGREED_MS)
      state = await cluster()
    }
    if (state === null) throw new Error('no Redis of the cluster answers')
    return { state }
  })
  if (!('state' in found)) return [found]
  const isReplicated = config.durability === 'replica'
  return [...examineCluster(found.state, { fault: storeFault(), isReplicated }), examineClocks(found.state)]
}

/** The records that are needed, with the addresses that are known by now. */
async function listRecords(
  { config, resolver, serviceKey, read }: ExamineDeps,
  port: Port | Finding,
): Promise<Health['records']> {
  const known = 'finding' in port ? port.outAddresses : []
  const stored = await readSources(read)
  const sources = stored === null ? [] : sourceAddresses(stored, config.privateNetworksAllowed)
  const named = async (host: string) => (await lookUpAddresses(resolver, host)) ?? []
  const outAddresses = known.length === 0 ? await named(config.smtpHostname) : known
  const mxAddresses = await named(`mx.${config.serviceDomain}`)
  const records = serviceRecords({ config, serviceKey, outAddresses, sourceAddresses: sources, mxAddresses })
  return records.map(({ host, type, value, remark = null }) => ({ host, type, value, remark }))
}

type Port = ReturnType<typeof examinePort> extends Promise<infer Found> ? Found : never

/** The records of the service's domain; those of outgoing mail belong to the relay if there is one. */
async function examineNames(deps: ExamineDeps, port: Promise<Port | Finding>): Promise<Finding[]> {
  const { config, serviceKey } = deps
  const own = examineServiceDomain(config)
  if (own.status === 'failed') return [own]
  const dns: DnsDeps = deps
  const inward = [
    one('mx', () => examineMx(dns)),
    one('return-path', () => examineReturnPath(dns)),
    one('service-dkim', () => examineServiceDkim(dns, serviceKey)),
    one('dmarc', () => examineDmarc(dns)),
    one('report-authorization', () => examineReportAuthorization(dns)),
  ]
  const found = await port
  const outAddresses = 'finding' in found ? found.outAddresses : []
  const stored = await readSources(deps.read)
  const sources = stored === null ? [] : sourceAddresses(stored, config.privateNetworksAllowed)
  const isDirect = config.relayUrl === null
  // The address of a relay is the relay's own.
  const known = isDirect ? outAddresses : sources
  const outward = [
    one('egress', () => examineEgress(dns, deps.ring, stored)),
    ...(isDirect
      ? [one('ehlo-name', () => examineEhloName(dns, outAddresses)), one('ptr', () => examinePtr(dns, outAddresses))]
      : []),
    ...(isDirect || sources.length > 0
      ? [
          one('spf', () => examineSpf(dns, known, sources)),
          one('blocklists', () => examineBlocklists(deps, known, sources)),
        ]
      : []),
  ]
  return [own, ...(await Promise.all([...inward, ...outward]))]
}

/** One look, which ends in time and always with a finding. */
function one(name: ExaminedName, look: () => Promise<Finding>): Promise<Finding> {
  return within(name, look)
}

async function within<Found>(name: ExaminedName, look: () => Promise<Found>): Promise<Found | Finding> {
  const ended = new AbortController()
  const late = delay(LOOK_MS_MAX, 'it took too long', { signal: ended.signal }).catch(() => 'it was ended')
  const looked = look().catch((error: Error) => error.message)
  const found = await Promise.race([looked, late])
  ended.abort()
  return typeof found === 'string'
    ? failed(name, `This could not be examined: ${found}`, "Look at the service's log")
    : found
}
