/**
 * check-links - whether the links of a message answer
 *
 * Links are chosen by people who send to a test server, so each hop is treated as a webhook's URL: looked up, checked
 * and requested at the address that was checked. Links that could do something are never requested.
 *
 * Guarantees: at most 30 links of a message, 2 requests to a host at once and 60 a minute of an account; at most 3
 * redirects, 5 seconds for a request and 20 for all; never rejects.
 *
 * Spec message.checks, webhook.private
 */

import type { Resolver } from '../dns/resolve.ts'
import { findAddresses, NotConnected } from '../webhooks/post-connect.ts'
import { readTarget, type Unchecked } from './link-rules.ts'
import { requestHead } from './request-head.ts'

const LINKS_MAX = 30
const AT_ONCE_MAX = 8
const HOST_AT_ONCE_MAX = 2
const REDIRECTS_MAX = 3
const REQUEST_MS_MAX = 5_000
const TOTAL_MS_MAX = 20_000
const MINUTE_MS = 60_000
const REQUESTS_PER_MINUTE = 60
const ACCOUNTS_MAX = 10_000
/** Messages whose links are checked at once, in all. */
export const CHECKS_MAX = 16
const HOST_WAIT_MS = 20

export interface LinkResult {
  readonly href: string
  readonly result: 'ok' | 'broken' | 'timeout' | 'not_checked'
  /** Status of the last answer; null: there was none. */
  readonly status: number | null
  /** Why it is broken or not checked; null: its answer says so. */
  readonly reason: string | null
}

export interface LinkCheckDeps {
  readonly resolver: Resolver
  readonly privateNetworksAllowed: readonly string[]
  /** Authorities to trust in place of the system's; null: the system's. */
  readonly ca: string | null
  readonly baseUrl: string
  readonly nowMs: () => number
  /** In place of our own. */
  readonly requestMsMax?: number
  readonly ports?: readonly string[]
}

export interface LinkOrder {
  readonly accountId: string
  readonly hrefs: readonly string[]
  /** Links of the message's List-Unsubscribe. */
  readonly unsubscribes: ReadonlySet<string>
}

export interface LinkChecker {
  /** Null: the account's links are being checked already, or too many are. */
  check(order: LinkOrder): Promise<readonly LinkResult[] | null>
}

/** Makes the checker of a process. */
export function makeLinkChecker(deps: LinkCheckDeps): LinkChecker {
  const { nowMs } = deps
  const rate = makeQuota(nowMs)
  const underWay = new Set<string>()
  const hosts = new Map<string, number>()
  return {
    async check({ accountId, hrefs, unsubscribes }) {
      if (underWay.has(accountId) || underWay.size >= CHECKS_MAX) return null
      underWay.add(accountId)
      const run = { ...deps, accountId, unsubscribes, rate, hosts, endsAtMs: nowMs() + TOTAL_MS_MAX }
      try {
        const results = new Array<LinkResult>(hrefs.length)
        let next = 0
        const work = async (): Promise<void> => {
          for (let at = next++; at < hrefs.length; at = next++) {
            const href = hrefs[at] as string
            results[at] = at < LINKS_MAX ? await checkLink(run, href) : unchecked(href, 'limit')
          }
        }
        await Promise.all(Array.from({ length: AT_ONCE_MAX }, work))
        return results
      } finally {
        underWay.delete(accountId)
      }
    },
  }
}

interface Quota {
  /** Counts a request of an account. False if its minute is used up. */
  take(accountId: string): boolean
}

/** At most 60 requests of an account in any minute. The account that was silent for longest is dropped first. */
function makeQuota(nowMs: () => number): Quota {
  const taken = new Map<string, readonly number[]>()
  return {
    take(accountId) {
      const atMs = nowMs()
      const recent = (taken.get(accountId) ?? []).filter((ms) => ms > atMs - MINUTE_MS)
      const isFree = recent.length < REQUESTS_PER_MINUTE
      taken.delete(accountId)
      taken.set(accountId, isFree ? [...recent, atMs] : recent)
      if (taken.size > ACCOUNTS_MAX) taken.delete(taken.keys().next().value as string)
      return isFree
    },
  }
}

interface Run extends LinkCheckDeps {
  readonly accountId: string
  readonly unsubscribes: ReadonlySet<string>
  readonly rate: Quota
  readonly hosts: Map<string, number>
  readonly endsAtMs: number
}

function unchecked(href: string, reason: Unchecked | 'rate' | 'redirects'): LinkResult {
  return { href, result: 'not_checked', status: null, reason }
}

/** Follows a link to its answer. */
async function checkLink(run: Run, href: string): Promise<LinkResult> {
  let target = readTarget(href, run)
  for (let hops = 0; ; hops += 1) {
    if (typeof target === 'string') return unchecked(href, target)
    const answer = await followLink(run, target)
    if (answer === 'rate') return unchecked(href, 'rate')
    if ('failure' in answer) return failed(href, answer.failure)
    const { status, location } = answer
    if (status < 300 || status >= 400 || location === null)
      return { href, result: status < 400 ? 'ok' : 'broken', status, reason: null }
    if (hops === REDIRECTS_MAX) return { href, result: 'broken', status, reason: 'redirects' }
    const at: string | null = URL.canParse(location, target.href) ? new URL(location, target.href).href : null
    target = at === null ? 'not_web' : readTarget(at, run)
  }
}

function failed(href: string, reason: string): LinkResult {
  if (reason === 'private_address') return unchecked(href, reason)
  const result = reason === 'timeout' ? 'timeout' : 'broken'
  return { href, result, status: null, reason: result === 'timeout' ? null : reason }
}

/** HEAD, and GET if the server does not answer that well. */
async function followLink(run: Run, url: URL) {
  const head = await requestOnce(run, url, 'HEAD')
  return typeof head !== 'string' && 'status' in head && head.status >= 400 ? requestOnce(run, url, 'GET') : head
}

async function requestOnce(run: Run, url: URL, method: 'HEAD' | 'GET') {
  const { hosts, resolver, privateNetworksAllowed, ca, nowMs, requestMsMax = REQUEST_MS_MAX } = run
  const leftMs = () => Math.min(requestMsMax, run.endsAtMs - nowMs())
  while ((hosts.get(url.hostname) ?? 0) >= HOST_AT_ONCE_MAX) {
    if (leftMs() <= 0) return { failure: 'timeout' }
    await new Promise((resolve) => setTimeout(resolve, HOST_WAIT_MS))
  }
  if (leftMs() <= 0) return { failure: 'timeout' }
  if (!run.rate.take(run.accountId)) return 'rate' as const
  hosts.set(url.hostname, (hosts.get(url.hostname) ?? 0) + 1)
  try {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const [address] = await findAddresses({ resolver, privateNetworksAllowed }, host, false)
    const timeoutMs = Math.max(1, leftMs())
    return await requestHead({ url, address: address as string, method, ca, timeoutMs })
  } catch (error) {
    if (error instanceof NotConnected) return { failure: error.reason }
    throw error
  } finally {
    const left = (hosts.get(url.hostname) ?? 1) - 1
    if (left > 0) hosts.set(url.hostname, left)
    else hosts.delete(url.hostname)
  }
}
