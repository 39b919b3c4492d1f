/** open - assembles delivery: routes, sources, sites, destinations held by the operator */
import type { DnsClient } from '../dns/client.ts'
import { findRoute as findRouteFor, type MxRoute } from '../dns/mx-route.ts'
import { createResolver } from '../dns/resolve.ts'
import { createStsPolicies, type PolicyStore } from '../dns/sts.ts'
import type { SiteLimitTable } from '../mail/site.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'
import type { Log } from '../process/log.ts'
import type { SealingRing } from '../state/ring/sealing.ts'
import { type Dispatch, makeDispatch } from './dispatch.ts'
import { type EgressDoor, type EgressDoorDeps, type EgressStore, openEgress } from './egress/open.ts'
import { type Holds, type HoldsDeps, watchHolds } from './holds.ts'
import type { AttemptFacts } from './perform.ts'
import { Sites } from './sites.ts'
import type { RunMail } from './thread/thread-job.ts'
import type { SmtpChanges } from './threads.ts'

/** Domains whose faulty policy is logged. */
const TOLD_MAX = 1000

export interface Outbound {
  readonly sites: Sites
  readonly holds: Holds
  readonly dispatch: Dispatch
  readonly egress: EgressDoor
  /** The mail servers of a domain; null if it has none, or the DNS did not answer. */
  routeOf(domain: string): Promise<MxRoute | null>
  /** The site of a destination; null if it has none, or the DNS did not answer. */
  siteOf(destination: string): Promise<string | null>
  /** Tells the log how an attempt went. */
  attempted(facts: AttemptFacts): void
  /** No new transactions; waiting attempts return to their lanes, unused units of ceilings to the store. */
  close(): void
}

export interface OutboundDeps {
  readonly config: Config
  readonly log: Log
  /** Where MTA-STS policies are kept. */
  readonly policyStore: PolicyStore
  readonly readKeys: HoldsDeps['readKeys']
  /** Subscribes to a topic; resolves with a function that ends it. */
  readonly hear: HoldsDeps['hear']
  readonly siteLimits: () => SiteLimitTable
  readonly run: RunMail
  readonly smtp: SmtpChanges
  readonly dns: DnsClient
  /** Processes that deliver now, this one with them. */
  readonly sharers: () => number
  /** The store's time. */
  readonly nowMs: () => number
  readonly egressStore: EgressStore
  readonly ring: SealingRing
  /** Counts an attempt of a source, for the metrics. */
  readonly counted: EgressDoorDeps['counted']
}

/** Opens delivery. */
export async function openOutbound(deps: OutboundDeps): Promise<Outbound> {
  const { config, log, readKeys, hear, run, sharers, ring, counted } = deps
  const findRoute = makeFindRoute(deps)
  const egress = await openEgress({
    readKeys,
    hear,
    store: deps.egressStore,
    ring,
    hasRelay: config.relayUrl !== null,
    log,
    nowMs: deps.nowMs,
    sharers,
    random: Math.random,
    counted,
  })
  const hasSources = () => egress.plan()?.hasDocument === true
  const sites = new Sites({ nowMs: monotonicMs, random: Math.random, after, sharers, hasSources })
  const wake = (destination: string) => {
    const site = sites.siteOf(destination)
    if (site !== null) egress.wake(site)
    sites.wake(destination)
  }
  const holds = await watchHolds({ readKeys, hear, wake })
  return {
    sites,
    holds,
    egress,
    dispatch: makeDispatch({ sites, findRoute, egress, run }),
    async routeOf(domain) {
      const route = await findRoute(domain)
      return 'site' in route ? route : null
    },
    async siteOf(destination) {
      const known = sites.siteOf(destination)
      if (known !== null || egress.plan()?.isDirect !== true || !destination.includes('.')) return known
      const route = await findRoute(destination)
      return 'site' in route ? route.site : null
    },
    attempted: (facts) => logAttempt(log, facts),
    close() {
      sites.close()
      holds.stop()
      void egress.close()
    },
  }
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

function makeFindRoute({ config, log, policyStore, smtp: { ca, stsPort }, siteLimits, dns }: OutboundDeps) {
  const { privateNetworksAllowed, serviceDomain, inboundDomain, smtpHostname } = config
  const resolver = createResolver({ client: dns, nowMs: monotonicMs })
  const policies = createStsPolicies({
    resolver,
    store: policyStore,
    nowMs: Date.now,
    privateNetworksAllowed,
    ...(ca && { ca }),
    ...(stsPort && { port: stsPort }),
  })
  const deps = {
    resolver,
    policies,
    get siteLimits() {
      return siteLimits()
    },
    ownHosts: [`mx.${serviceDomain}`, smtpHostname],
    ownDomains: [serviceDomain, inboundDomain],
    unit: Math.random,
  }
  const told = new Set<string>()
  return async (domain: string) => {
    const route = await findRouteFor(domain, deps)
    // Spec delivery.sts: a policy in testing mode is logged, once for each domain.
    if ('site' in route && route.sts === 'testing' && !route.isNamed && !told.has(domain) && told.size < TOLD_MAX) {
      told.add(domain)
      log.info({ domain, site: route.site }, 'No mail server matches an MTA-STS policy in testing mode')
    }
    return route
  }
}

function logAttempt(log: Log, { messageId, domain, outcome }: AttemptFacts): void {
  if (!log.isLevelEnabled('debug')) return
  const { result, code, classification, phase, route } = outcome
  log.debug({ messageId, domain, result, code, classification, phase, route: route ?? null }, 'Attempt ended')
}
