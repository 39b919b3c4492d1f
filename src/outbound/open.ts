/** open - assembles delivery: routes, sites, destinations held by the operator */
import type { DnsClient } from '../dns/client.ts'
import { findRoute as findRouteFor } from '../dns/mx-route.ts'
import { createResolver } from '../dns/resolve.ts'
import { createStsPolicies, type PolicyStore } from '../dns/sts.ts'
import { parseSiteLimits, type SiteLimitTable } from '../mail/site.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'
import type { Log } from '../process/log.ts'
import { readNamedFile, WrongFile } from '../process/named-file.ts'
import { type Dispatch, makeDispatch } from './dispatch.ts'
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
  /** The site of a destination; null if it has none, or the DNS did not answer. */
  siteOf(destination: string): Promise<string | null>
  /** Tells the log how an attempt went. */
  attempted(facts: AttemptFacts): void
  /** No new transactions; waiting attempts return to their lanes. */
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
  readonly siteLimits: SiteLimitTable
  readonly run: RunMail
  readonly smtp: SmtpChanges
  readonly dns: DnsClient
  /** Processes that deliver now, this one with them. */
  readonly sharers: () => number
}

/** Opens delivery. */
export async function openOutbound(deps: OutboundDeps): Promise<Outbound> {
  const { config, log, readKeys, hear, run, sharers } = deps
  const findRoute = config.relayUrl === null ? makeFindRoute(deps) : null
  const sites = new Sites({ nowMs: monotonicMs, random: Math.random, after, sharers })
  const holds = await watchHolds({ readKeys, hear, wake: (destination) => sites.wake(destination) })
  return {
    sites,
    holds,
    dispatch: makeDispatch({ sites, findRoute, run }),
    async siteOf(destination) {
      const known = sites.siteOf(destination)
      if (known !== null || findRoute === null || !destination.includes('.')) return known
      const route = await findRoute(destination)
      return 'site' in route ? route.site : null
    },
    attempted: (facts) => logAttempt(log, facts),
    close() {
      sites.close()
      holds.stop()
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
    siteLimits,
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

/** The operator's limits. Throws WrongFile for a file that is not there or cannot be used. */
export function readSiteLimits(path: string | null): SiteLimitTable {
  if (path === null) return new Map()
  const table = parseSiteLimits(readNamedFile('SITE_LIMITS', path))
  if (typeof table === 'string') throw new WrongFile('SITE_LIMITS', { wanted: table, path })
  return table
}

function logAttempt(log: Log, { messageId, domain, outcome }: AttemptFacts): void {
  if (!log.isLevelEnabled('debug')) return
  const { result, code, classification, phase, route } = outcome
  log.debug({ messageId, domain, result, code, classification, phase, route: route ?? null }, 'Attempt ended')
}
