/**
 * signing-keys - the private keys that sign mail: those of domains, read from the store and opened once, and the
 * service's own
 *
 * A key is found by the time from which it signs, so a cached key never becomes wrong: a rotated or newly added domain
 * has another time. Attempts after the first do not know the time and read again.
 *
 * Keys: `dkim:<account>:<domain>`
 *
 * Spec dkim.signed, dkim.service
 */

import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { shardOf } from '../../cluster/id.ts'
import { formatKeyOwner } from '../mail/compose/dkim-key.ts'
import type { Config } from '../process/config.ts'
import { WrongFile } from '../process/named-file.ts'
import { pairAt } from '../state/dkim-pair.ts'
import { dkimKey } from '../state/keys.ts'
import { openSecret, type SealingRing } from '../state/ring/sealing.ts'
import type { Reader } from '../views/key.ts'
import type { SigningKey } from './thread/sign.ts'

/** Maximum number of opened keys that are cached, some 2 KB each. */
const OPENED_MAX = 2000
/** RFC 8301 3.2: less is not accepted by verifiers. */
const MODULUS_BITS_MIN = 1024

/** The account whose mail is signed, and the time of acceptance. */
export interface SigningOrder {
  readonly accountId: string
  /** In lower case. */
  readonly domain: string
  readonly acceptedAtMs: number
  /** The time from which the wanted key signs, if it is known. */
  readonly keySinceMs: number | null
}

/** Finds a domain's key: null when there is none, undefined when the store did not answer. */
export type FindKey = (order: SigningOrder) => Promise<SigningKey | null | undefined>

/** Keys of sending domains, opened with the installation's sealing key. */
export function makeSigningKeyFinder(read: Reader, ring: SealingRing): FindKey {
  const opened = new Map<string, SigningKey>()
  return async ({ accountId, domain, acceptedAtMs, keySinceMs }) => {
    const name = `${accountId} ${domain} ${keySinceMs}`
    const known = opened.get(name)
    if (known !== undefined) return known
    const shard = shardOf(accountId) as number
    const seen = await read(shard, [{ read: 'hash', key: dkimKey(shard, accountId, domain) }])
    if (seen === null) return undefined
    const pair = pairAt(seen[0] as ReadonlyMap<string, string>, keySinceMs ?? acceptedAtMs)
    if (pair === null) return null
    const owner = formatKeyOwner({ accountId, domain, selector: pair.selector })
    const privateKey = openSecret(ring, { sealed: Buffer.from(pair.sealedPrivateKey, 'base64'), owner })
    if (privateKey === null) return null
    const key = { domain, selector: pair.selector, privateKey: privateKey.toString('base64') }
    if (keySinceMs === null) return key
    if (opened.size >= OPENED_MAX) opened.delete(opened.keys().next().value as string)
    opened.set(name, key)
    return key
  }
}

/** The service's own key, or null. Throws WrongFile for a file without an RSA key, which ends the start. */
export function openServiceKey({ serviceDkim, serviceDomain }: Config): SigningKey | null {
  if (serviceDkim === null) return null
  const key = readRsaKey(serviceDkim.keyFile)
  const bits = key?.asymmetricKeyDetails?.modulusLength ?? 0
  if (key === null || key.asymmetricKeyType !== 'rsa' || bits < MODULUS_BITS_MIN)
    throw new WrongFile('SERVICE_DKIM', {
      wanted: `a private RSA key in PEM of ${MODULUS_BITS_MIN} bits or more`,
      path: serviceDkim.keyFile,
    })
  const privateKey = key.export({ format: 'der', type: 'pkcs8' }).toString('base64')
  return { domain: serviceDomain, selector: serviceDkim.selector, privateKey }
}

function readRsaKey(path: string): KeyObject | null {
  try {
    return createPrivateKey(readFileSync(path))
  } catch {
    // Neither call has another way to report that the file cannot be read or is not a key.
    return null
  }
}
