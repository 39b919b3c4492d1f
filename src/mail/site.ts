/**
 * site - the receiving side as a whole: every domain with the same set of mail servers is one site, with one set of
 * limits.
 *
 * A few providers host thousands of domains, and apply their limits to all of them together.
 *
 * Spec delivery.site, delivery.site.limits
 */

/** Limits of a site. */
export interface SiteLimits {
  /** Connections at once: how many to begin with, and how far success lets that grow. */
  readonly connectionsStart: number
  readonly connections: number
  readonly messagesPerSecond: number
  readonly messagesPerConnection: number
  /** New connections in any minute. */
  readonly connectionsPerMinute: number
  /** Messages a second while the site has reported throttling. */
  readonly throttledPerSecond: number
  /** Messages of an hour and of a day (UTC) from one source, all processes together; absent: any number. */
  readonly messagesPerHour?: number
  readonly messagesPerDay?: number
}

/** Limits by the end of a mail server's name, such as `google.com`; `default` is for every other site. */
export type SiteLimitTable = ReadonlyMap<string, Partial<SiteLimits>>

/** Limits of sites without an entry, and the defaults of an entry. */
export const SITE_LIMITS: SiteLimits = {
  connectionsStart: 5,
  connections: 10,
  messagesPerSecond: 100,
  messagesPerConnection: 100,
  connectionsPerMinute: 100,
  throttledPerSecond: 1,
}
const DEFAULT_ENTRY = 'default'
/** Thousands of names are kept; one of 32 hosts, as strangers may choose them, would have 8 KB. */
const NAME_CHARS_MAX = 512

/** Limits that the large providers publish, or enforce with 421. */
const PROVIDERS: SiteLimitTable = new Map([
  ['google.com', { connections: 5, messagesPerConnection: 50 }],
  ['outlook.com', { connections: 5, messagesPerConnection: 50 }],
  ['office365.us', { connections: 5, messagesPerConnection: 50 }],
  ['yahoodns.net', { messagesPerConnection: 20 }],
  ['icloud.com', { connections: 10, messagesPerConnection: 5 }],
  ['orange.fr', { connections: 2 }],
])

/** Largest value of each limit in a file: beyond it a mistake is likelier than a wish. */
const FILE_MAX: Required<Omit<SiteLimits, 'throttledPerSecond'>> = {
  connectionsStart: 256,
  connections: 256,
  messagesPerSecond: 10_000,
  messagesPerConnection: 100_000,
  connectionsPerMinute: 10_000,
  messagesPerHour: 1_000_000_000,
  messagesPerDay: 1_000_000_000,
}
const FILE_ENTRIES_MAX = 10_000

/**
 * The name of the site of these hosts: sorted, without duplicates, separated by commas, and truncated if it is long.
 */
export function siteName(hosts: readonly string[]): string {
  const name = [...new Set(hosts)].sort().join(',')
  return name.length <= NAME_CHARS_MAX ? name : `${name.slice(0, NAME_CHARS_MAX)}...`
}

/**
 * The limits of a site; the operator's entries take precedence over the built-in ones. Takes its hosts in lower case.
 */
export function siteLimits(hosts: readonly string[], operators: SiteLimitTable): SiteLimits {
  const limits = {
    ...SITE_LIMITS,
    ...operators.get(DEFAULT_ENTRY),
    ...entryFor(hosts, PROVIDERS),
    ...entryFor(hosts, operators),
  }
  return withinConnections(limits)
}

/** The limits of one source at a site: those of the site, with the source's own entries in their place. */
export function sourceLimits(limits: SiteLimits, hosts: readonly string[], own: SiteLimitTable): SiteLimits {
  return own.size === 0 ? limits : withinConnections({ ...limits, ...own.get(DEFAULT_ENTRY), ...entryFor(hosts, own) })
}

function withinConnections(limits: SiteLimits): SiteLimits {
  return { ...limits, connectionsStart: Math.min(limits.connectionsStart, limits.connections) }
}

/**
 * The share of a site's limits for one process of several that deliver. Takes their number, including this one. The
 * messages a second are divided exactly; each process has at least one connection, and one new connection a minute.
 *
 * Spec delivery.site.share
 */
export function computeShare(limits: SiteLimits, sharers: number): SiteLimits {
  if (sharers <= 1) return limits
  const whole = (all: number) => Math.max(1, Math.floor(all / sharers))
  return {
    ...limits,
    connectionsStart: whole(limits.connectionsStart),
    connections: whole(limits.connections),
    messagesPerSecond: limits.messagesPerSecond / sharers,
    connectionsPerMinute: whole(limits.connectionsPerMinute),
    throttledPerSecond: limits.throttledPerSecond / sharers,
  }
}

/** The entry whose name most closely fits one of the hosts. */
function entryFor(hosts: readonly string[], table: SiteLimitTable): Partial<SiteLimits> {
  let closest = ''
  for (const host of hosts)
    for (let at = 0; at !== -1 && host.length - at > closest.length; at = nextLabel(host, at))
      if (table.has(host.slice(at))) closest = host.slice(at)
  return table.get(closest) ?? {}
}

/** Where the next label begins; -1 after the last. */
function nextLabel(host: string, at: number): number {
  const dot = host.indexOf('.', at)
  return dot === -1 ? -1 : dot + 1
}

/** Reads the operator's file. The table, or a sentence that describes the problem. Never throws. */
export function parseSiteLimits(text: string): SiteLimitTable | string {
  const file = parseObject(text)
  if (file === null) return 'a JSON object of sites'
  const entries = Object.entries(file)
  if (entries.length > FILE_ENTRIES_MAX) return `at most ${FILE_ENTRIES_MAX} sites`
  const table = new Map<string, Partial<SiteLimits>>()
  for (const [site, entry] of entries) {
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return `an object of limits for ${site}`
    for (const [name, value] of Object.entries(entry)) {
      if (!Object.hasOwn(FILE_MAX, name)) return `no limit called ${name} (${site})`
      const max = FILE_MAX[name as keyof typeof FILE_MAX]
      if (!Number.isInteger(value) || value < 1 || value > max) return `${name} of ${site} from 1 to ${max}`
    }
    table.set(site.toLowerCase().replace(/\.$/, ''), entry as Partial<SiteLimits>)
  }
  return table
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}
