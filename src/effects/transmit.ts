/**
 * transmit - one attempt to hand one message to one recipient: to the mail servers of the recipient's domain, or through
 * the operator's relay.
 *
 * Guarantees: always an outcome, never an exception; `bounced` only for a refusal by the recipient's side or a domain that
 * the DNS denies; a private address is never connected to; after the message was sent whole no other server is tried,
 * because the first may have taken it (RFC 5321 6.1).
 */

import { domainToASCII } from 'node:url'
import { makeUnasked } from '../mail/classify.ts'
import { isPublicAddress, planExchanges } from '../mail/mx.ts'
import type { Outcome } from '../mail/outcome.ts'
import { makeDeferred } from '../mail/outcome.ts'
import type { AttemptDeps, Tried } from './attempt.ts'
import { attemptAddress } from './attempt.ts'
import type { Relay } from './relay.ts'
import type { Resolver } from './resolve.ts'

/** Addresses that are connected to in one attempt, and servers that answer, whatever they say. */
const ADDRESSES_MAX = 5
const SESSIONS_MAX = 2
/** Exchanges that are looked up; a domain with more is served by the first ones. */
const HOSTS_MAX = 10

export interface TransmitJob {
  readonly recipient: string
  readonly mailFrom: string
  readonly message: Buffer
}

export interface TransmitDeps extends AttemptDeps {
  readonly resolver: Resolver
  /** Null = to the MX. */
  readonly relay: Relay | null
  /** CIDRs that may be connected to although they are private. */
  readonly privateNetworksAllowed: readonly string[]
  /** This machine's own addresses: mail to them would come straight back. */
  readonly ownAddresses: readonly string[]
  /** A random number, 0 to 1. */
  unit(): number
}

/** Performs the attempt; the signal cuts it off (outcome `deferred`, phase `abort`). */
export async function transmit(job: TransmitJob, deps: TransmitDeps, signal: AbortSignal): Promise<Outcome> {
  const at = job.recipient.lastIndexOf('@')
  const domain = domainToASCII(job.recipient.slice(at + 1))
  const local = job.recipient.slice(0, Math.max(at, 0))
  // RFC 6531 is not spoken here: an address that needs it must not go out raw.
  if (domain === '' || local === '' || /[^\x21-\x7e]|[<>]/.test(local)) return makeUnasked('bad-address')
  const send = {
    recipient: `${local}@${domain}`,
    mailFrom: job.mailFrom,
    message: job.message,
    mayFinish: deps.mayFinish,
  }
  if (deps.relay !== null) return deps.relay.send(send, signal)
  const hosts = await findHosts(domain, deps)
  return 'result' in hosts ? hosts : tryHosts({ hosts, send, deps, signal })
}

/** The domain's mail servers in the order to try, or the outcome when there can be none. */
async function findHosts(domain: string, deps: TransmitDeps): Promise<readonly string[] | Outcome> {
  const found = await deps.resolver.look('MX', domain)
  if (found.status === 'nxdomain') return makeUnasked('no-domain')
  if (found.status === 'failure') return makeDeferred('dns', 'DNSFailure', `4.4.3 MX lookup failed: ${found.code}`)
  const records = found.status === 'ok' ? found.records : []
  const plan = planExchanges({ domain, records, units: records.map(() => deps.unit()) })
  if (plan.kind === 'null-mx') return makeUnasked('null-mx')
  if (plan.kind === 'unusable') return makeUnasked('no-exchange')
  return plan.hosts.slice(0, HOSTS_MAX)
}

interface Tour {
  readonly hosts: readonly string[]
  readonly send: Parameters<typeof attemptAddress>[0]['send']
  readonly deps: TransmitDeps
  readonly signal: AbortSignal
}

async function tryHosts({ hosts, send, deps, signal }: Tour): Promise<Outcome> {
  const budget = {
    addresses: ADDRESSES_MAX,
    sessions: SESSIONS_MAX,
    connectUntilMs: deps.nowMs() + deps.timeouts.connectAllMs,
  }
  const seen = { private: 0, failures: 0 }
  let last: Outcome | null = null
  for (const host of hosts) {
    const found = await deps.resolver.look('A', host)
    if (found.status === 'failure') seen.failures += 1
    for (const address of found.status === 'ok' ? found.records : []) {
      if (!mayConnect(address, deps)) {
        seen.private += 1
        continue
      }
      if (signal.aborted) return makeDeferred('abort', 'TransientFailure', '4.3.2 attempt was cut off')
      if (budget.addresses === 0 || budget.sessions === 0 || deps.nowMs() >= budget.connectUntilMs) break
      const tried: Tried = await attemptAddress({ host, address, send }, deps, signal)
      if (tried.isFinal) return tried.outcome
      budget.addresses -= 1
      if (tried.answered) budget.sessions -= 1
      // A server's own words say more than "could not connect to the last one".
      if (last === null || last.code === null || tried.outcome.code !== null) last = tried.outcome
    }
  }
  return last ?? judgeNoAddress(seen)
}

function judgeNoAddress(seen: { private: number; failures: number }): Outcome {
  if (seen.failures > 0) return makeDeferred('dns', 'DNSFailure', '4.4.3 address lookup of the mail servers failed')
  if (seen.private > 0) return makeUnasked('private-only')
  // The name exists and may get its address yet.
  return makeDeferred('dns', 'RoutingErrors', '4.4.4 mail servers of the domain have no address')
}

/** Our own addresses count as private: what we listen on must not receive what we send. */
function mayConnect(address: string, deps: TransmitDeps): boolean {
  if (!isPublicAddress(address, deps.privateNetworksAllowed)) return false
  return !deps.ownAddresses.includes(address) || deps.privateNetworksAllowed.length > 0
}
