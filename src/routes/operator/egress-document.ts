/**
 * egress-document - a document of sources, pools and rules with its defaults, or the issues that a schema cannot name:
 * names that are unknown or given twice, and fields of a source that do not go together
 *
 * Spec egress.document
 */

import { isIP } from 'node:net'
import type { Issue } from '../../../schemas/error.ts'
import { DEFAULT_EGRESS, type Egress, type EgressBody } from '../../../schemas/operator/egress.ts'
import { parseRelayUrl } from '../../outbound/thread/relay-target.ts'
import type { EgressDocument } from '../../state/egress.ts'

type Source = Egress['sources'][number]
type SourceBody = EgressBody['sources'][number]

/** Issues of one answer. */
const ISSUES_MAX = 100

/** The document with all its fields, or its issues. Takes a body that matches the schema. */
export function makeEgressDocument(body: EgressBody): EgressDocument | { readonly issues: readonly Issue[] } {
  const sources = body.sources.map(fullSource)
  const pools = body.pools.map(({ name, sources: members }) => ({
    name,
    sources: members.map(({ source, weight = 1 }) => ({ source, weight })),
  }))
  const rules = body.rules.map((rule) => ({
    accountId: rule.accountId?.toLowerCase() ?? null,
    serverId: rule.serverId?.toLowerCase() ?? null,
    streamKind: rule.streamKind ?? null,
    streamId: rule.streamId?.toLowerCase() ?? null,
    site: rule.site?.toLowerCase() ?? null,
    pool: rule.pool,
  }))
  const document: EgressDocument = { sources, pools, rules, defaultPool: body.defaultPool ?? null }
  const issues = [...sourceIssues(body.sources), ...poolIssues(document), ...ruleIssues(document)]
  return issues.length === 0 ? document : { issues: issues.slice(0, ISSUES_MAX) }
}

function fullSource({ limits = [], warmup = null, ...source }: SourceBody): Source {
  return {
    name: source.name,
    address: source.address?.toLowerCase() ?? null,
    ehlo: source.ehlo?.toLowerCase() ?? null,
    relay: source.relay ?? null,
    tls: source.tls ?? 'opportunistic',
    connections: source.connections ?? null,
    limits: limits.map((limit) => ({
      site: limit.site.toLowerCase(),
      connections: limit.connections ?? null,
      connectionsPerMinute: limit.connectionsPerMinute ?? null,
      messagesPerConnection: limit.messagesPerConnection ?? null,
      messagesPerSecond: limit.messagesPerSecond ?? null,
      messagesPerHour: limit.messagesPerHour ?? null,
      messagesPerDay: limit.messagesPerDay ?? null,
    })),
    warmup: warmup && { startDate: warmup.startDate, schedule: warmup.schedule ?? null },
  }
}

function sourceIssues(sources: readonly SourceBody[]): Issue[] {
  const names = new Set([DEFAULT_EGRESS])
  return sources.flatMap((source, at) => {
    const path = `sources.${at}`
    const issues = [...wayIssues(source, path)]
    if (source.name === DEFAULT_EGRESS) issues.push({ path: `${path}.name`, message: RESERVED })
    else if (names.has(source.name)) issues.push({ path: `${path}.name`, message: TWICE })
    names.add(source.name)
    const sites = new Set<string>()
    for (const [place, { site }] of (source.limits ?? []).entries()) {
      const limitPath = `${path}.limits.${place}.site`
      if (sites.has(site.toLowerCase())) issues.push({ path: limitPath, message: TWICE })
      else if (source.relay && site !== 'default')
        issues.push({ path: limitPath, message: 'Must be default for a relay' })
      sites.add(site.toLowerCase())
    }
    const start = source.warmup?.startDate
    if (start !== undefined && !isDay(start))
      issues.push({ path: `${path}.warmup.startDate`, message: 'Must be a day that exists' })
    return issues
  })
}

const RESERVED = "Must not be default: that is the name of today's settings"
const TWICE = 'Must not be given twice'

/** Issues of the fields that say how a source sends: an address or a relay. */
function* wayIssues(source: SourceBody, path: string): Generator<Issue> {
  const { address = null, relay = null, tls, connections = null, password = null } = source
  if ((address === null) === (relay === null)) {
    yield { path: `${path}.address`, message: 'Must be given, or else relay, and not both' }
    return
  }
  if (address !== null && isIP(address) === 0) yield { path: `${path}.address`, message: 'Must be an IP address' }
  if (relay === null) {
    if (password !== null) yield { path: `${path}.password`, message: 'Must not be given without relay' }
    if (tls !== undefined && tls !== 'opportunistic')
      yield { path: `${path}.tls`, message: 'Must not be given without relay' }
    if (connections !== null) yield { path: `${path}.connections`, message: 'Must not be given without relay' }
    return
  }
  const target = parseRelayUrl(relay)
  if (target === null) yield { path: `${path}.relay`, message: 'Must be smtp://user@host:port or smtps://host' }
  else if (password !== null && target.auth === null)
    yield { path: `${path}.password`, message: 'Must not be given without a user in relay' }
}

function poolIssues({ sources, pools }: EgressDocument): Issue[] {
  const known = new Set([DEFAULT_EGRESS, ...sources.map(({ name }) => name)])
  const names = new Set<string>()
  return pools.flatMap(({ name, sources: members }, at) => {
    const issues: Issue[] = []
    if (name === DEFAULT_EGRESS) issues.push({ path: `pools.${at}.name`, message: RESERVED })
    else if (names.has(name)) issues.push({ path: `pools.${at}.name`, message: TWICE })
    names.add(name)
    const seen = new Set<string>()
    for (const [place, { source }] of members.entries()) {
      const path = `pools.${at}.sources.${place}.source`
      if (!known.has(source)) issues.push({ path, message: 'Must be the name of a source' })
      else if (seen.has(source)) issues.push({ path, message: TWICE })
      seen.add(source)
    }
    return issues
  })
}

function ruleIssues({ pools, rules, defaultPool }: EgressDocument): Issue[] {
  const known = new Set([DEFAULT_EGRESS, ...pools.map(({ name }) => name)])
  const message = 'Must be the name of a pool'
  const issues = rules.flatMap(({ pool }, at) => (known.has(pool) ? [] : [{ path: `rules.${at}.pool`, message }]))
  if (defaultPool !== null && !known.has(defaultPool)) issues.push({ path: 'defaultPool', message })
  return issues
}

/** Whether a day of this form exists: 30 February does not. */
function isDay(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}
