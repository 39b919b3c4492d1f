/**
 * sts - MTA-STS policies (RFC 8461) of recipient domains: looked up, fetched, kept.
 *
 * Guarantees: never rejects; a valid policy is used whatever DNS and the policy's host return; the TXT record is
 * queried at most once an hour; the file is fetched over verified HTTPS from a checked public address, at most 64 KiB
 * in 10 s, without following redirects. If no policy can be determined, none applies. Others write policies, so memory
 * holds at most 8 MiB of them and none above 4 KB, which is read from the store each time.
 *
 * Spec delivery.sts
 */

import { request } from 'node:https'
import { isPublicAddress } from '../mail/ip-address.ts'
import { readPolicy, readPolicyId, type StsPolicy } from '../mail/sts-policy.ts'
import { BoundedCache } from '../process/bounded-cache.ts'
import type { Resolver } from './resolve.ts'

const RECHECK_MS = 3_600_000
/** After a failed DNS query. */
const FAILURE_RECHECK_MS = 60_000
const FETCH_MS_MAX = 10_000
const FILE_BYTES_MAX = 65_536
const KEPT_MAX = 65_536
const KEPT_BYTES_MAX = 8 * 1024 * 1024
const KEPT_POLICY_BYTES_MAX = 4096
/** Heap of a policy's objects, and of each name apart from its characters. */
const POLICY_BYTES = 160
const NAME_BYTES = 24
const HTTPS_PORT = 443

/** Where policies outlive the process. */
export interface PolicyStore {
  read(domain: string): Promise<string | null>
  write(domain: string, text: string, untilMs: number): Promise<void>
}

export interface StsOptions {
  readonly resolver: Resolver
  readonly store: PolicyStore
  /** Wall clock: policies are kept for weeks. */
  readonly nowMs: () => number
  readonly privateNetworksAllowed: readonly string[]
  readonly port?: number
  /** Authority in place of the system's (PEM). */
  readonly ca?: string
}

export interface StsPolicies {
  /** The policy that holds for mail to a domain now; null = none. */
  find(domain: string): Promise<StsPolicy | null>
}

interface Kept {
  readonly policy: StsPolicy | null
  readonly recheckAtMs: number
}

/** Policies with an empty memory over a store. */
export function createStsPolicies(options: StsOptions): StsPolicies {
  const kept = new BoundedCache<Kept>({
    entriesMax: KEPT_MAX,
    bytesMax: KEPT_BYTES_MAX,
    entryBytesMax: KEPT_POLICY_BYTES_MAX,
    nowMs: options.nowMs,
  })
  const inFlight = new Map<string, Promise<StsPolicy | null>>()

  async function look(domain: string): Promise<StsPolicy | null> {
    const known = kept.get(domain)?.policy ?? (await readStored(options, domain))
    const found = await renew(options, domain, known)
    const untilMs = Math.max(found.recheckAtMs, found.policy?.untilMs ?? 0)
    kept.set(domain, found, { bytes: policyBytes(found.policy), untilMs })
    return found.policy
  }

  return {
    async find(domain) {
      const known = kept.get(domain)
      const nowMs = options.nowMs()
      const isValid = known && (known.policy === null || known.policy.untilMs > nowMs)
      if (known && isValid && known.recheckAtMs > nowMs) return known.policy
      const running = inFlight.get(domain) ?? look(domain).finally(() => inFlight.delete(domain))
      inFlight.set(domain, running)
      return running
    },
  }
}

/** The heap that a policy takes, estimated on the high side. */
function policyBytes(policy: StsPolicy | null): number {
  if (policy === null) return POLICY_BYTES
  return policy.mx.reduce((sum, name) => sum + NAME_BYTES + name.length, POLICY_BYTES + policy.id.length)
}

/** The policy after checking the TXT record; the known one while it is valid and no newer one is available. */
async function renew(options: StsOptions, domain: string, known: StsPolicy | null): Promise<Kept> {
  const nowMs = options.nowMs()
  const valid = known !== null && known.untilMs > nowMs ? known : null
  const id = await findId(options.resolver, domain)
  if (id === undefined) return { policy: valid, recheckAtMs: nowMs + FAILURE_RECHECK_MS }
  const kept = { policy: valid, recheckAtMs: nowMs + RECHECK_MS }
  if (id === null || valid?.id === id) return kept
  const file = await fetchFile(options, domain)
  const policy = file === null ? null : readPolicy(file, { id, nowMs })
  if (policy === null) return kept
  await options.store.write(domain, JSON.stringify(policy), policy.untilMs).catch(() => undefined)
  return { ...kept, policy }
}

/** The policy's id; null if the domain has none; undefined if DNS did not answer. */
async function findId(resolver: Resolver, domain: string): Promise<string | null | undefined> {
  const answer = await resolver.look('TXT', `_mta-sts.${domain.toLowerCase()}`)
  if (answer.status === 'failure') return undefined
  return answer.status === 'ok' ? readPolicyId(answer.records.map((strings) => strings.join(''))) : null
}

async function readStored({ store }: StsOptions, domain: string): Promise<StsPolicy | null> {
  const text = await store.read(domain).catch(() => null)
  return text === null ? null : (JSON.parse(text) as StsPolicy)
}

/** The policy file; null when it is not to be had. */
async function fetchFile(options: StsOptions, domain: string): Promise<string | null> {
  const host = `mta-sts.${domain}`
  const found = await options.resolver.look('A', host)
  const addresses = found.status === 'ok' ? found.records : []
  const address = addresses.find((one) => isPublicAddress(one, options.privateNetworksAllowed))
  if (address === undefined) return null
  return new Promise((resolve) => {
    const asked = request({
      host: address,
      port: options.port ?? HTTPS_PORT,
      path: '/.well-known/mta-sts.txt',
      servername: host,
      headers: { host },
      agent: false,
      signal: AbortSignal.timeout(FETCH_MS_MAX),
      ...(options.ca !== undefined && { ca: options.ca }),
    })
    asked.once('error', () => resolve(null))
    asked.once('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        chunks.push(chunk)
        if (bytes > FILE_BYTES_MAX) asked.destroy()
      })
      response.once('error', () => resolve(null))
      response.once('close', () => {
        const isWhole = response.complete && response.statusCode === 200 && bytes <= FILE_BYTES_MAX
        resolve(isWhole ? Buffer.concat(chunks).toString() : null)
      })
    })
    asked.end()
  })
}
