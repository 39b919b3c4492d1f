/**
 * egress - whether each source of outgoing mail is known by its name: EHLO name and reverse DNS of its address, and a
 * stored password that can be opened
 *
 * SPF and blocklists are asked about all addresses at once, with those of the settings. A private address is that of a
 * machine behind a router: its public one is not known here.
 *
 * Spec operator.health, egress.document
 */

import type { Finding } from '../../schemas/operator/health.ts'
import type { StoredEgress } from '../state/egress.ts'
import { relayPasswordOwner } from '../state/ring/sealed-values.ts'
import { openSecret, type SealingRing } from '../state/ring/sealing.ts'
import type { Reader } from '../views/key.ts'
import { readEgress } from '../views/operator/egress.ts'
import { type DnsDeps, examineEhloName, examinePtr } from './dns.ts'
import { failed, well } from './finding.ts'
import { isPublishable } from './service-records.ts'

const NAME = 'egress'
const RANKS = ['ok', 'warning', 'failed'] as const

/** The public addresses of the sources of a document. */
export function sourceAddresses({ document }: Pick<StoredEgress, 'document'>, allowed: readonly string[]): string[] {
  const addresses = document.sources.flatMap(({ address }) => (address === null ? [] : [address]))
  return [...new Set(addresses)].filter((address) => isPublishable(address, allowed))
}

/** The document; null if the store did not answer. */
export async function readSources(read: Reader): Promise<StoredEgress | null> {
  return (await readEgress(read, 0))?.stored ?? null
}

/** Examines each source. Takes the document; null if the store did not answer. */
export async function examineEgress(deps: DnsDeps, ring: SealingRing, stored: StoredEgress | null): Promise<Finding> {
  if (stored === null) return failed(NAME, 'The sources could not be read', 'Look at the finding of the store')
  const { sources } = stored.document
  if (sources.length === 0) return well(NAME, 'Mail leaves as the settings say: there are no other sources')
  const findings: Finding[] = []
  for (const { name, address, ehlo, relay } of sources) {
    if (relay !== null) findings.push(examinePassword(ring, name, stored.passwords.get(name)))
    else if (address !== null && isPublishable(address, deps.config.privateNetworksAllowed))
      findings.push(await examineAddress(deps, { name, address, ehlo }))
  }
  const worst = findings.reduce<Finding | null>(
    (worse, one) => (worse === null || RANKS.indexOf(one.status) > RANKS.indexOf(worse.status) ? one : worse),
    null,
  )
  if (worst !== null && worst.status !== 'ok') {
    const wrong = findings.filter(({ status }) => status !== 'ok').map(({ message }) => message)
    return { ...worst, message: wrong.join('; ') }
  }
  return well(NAME, `Sources ${sources.map(({ name }) => name).join(', ')} are as they should be`)
}

async function examineAddress(
  deps: DnsDeps,
  { name, address, ehlo }: { readonly name: string; readonly address: string; readonly ehlo: string | null },
): Promise<Finding> {
  const own = { ...deps, config: { ...deps.config, smtpHostname: ehlo ?? deps.config.smtpHostname } }
  const looked = [await examineEhloName(own, [address]), await examinePtr(own, [address])]
  const wrong = looked.find(({ status }) => status !== 'ok')
  const { status, message, fix } = wrong ?? (looked[0] as Finding)
  return { name: NAME, status, message: `${name}: ${message}`, fix }
}

function examinePassword(ring: SealingRing, source: string, sealed: string | undefined): Finding {
  const isOpen =
    sealed === undefined ||
    openSecret(ring, { sealed: Buffer.from(sealed, 'base64'), owner: relayPasswordOwner(source) }) !== null
  if (isOpen) return well(NAME, source)
  const fix = 'Apply the document again with the password: sendwright egress apply'
  return failed(NAME, `${source}: the stored password of its relay cannot be opened`, fix)
}
