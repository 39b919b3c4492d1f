/**
 * passkey - the requests to browsers about passkeys, and the verification of their answers (WebAuthn level 2)
 *
 * A passkey belongs to the name in BASE_URL, on the loopback to `localhost`: browsers allow none for IP addresses.
 * Answers are verified in a thread (`factor/passkey-thread.ts`). Attestations are not verified, because for a
 * certificate the library would fetch URLs in it.
 *
 * Spec session.passkey
 */

import { shardOf } from '../../cluster/id.ts'
import { SECOND_STEP_MINUTES } from '../../schemas/limits.ts'
import type { Shown } from '../actors/dashboard/factor.ts'
import type { DashboardEdge } from '../http/dashboard-edge.ts'
import { MINUTE_MS } from '../state/calendar.ts'
import { dashboardBase } from '../state/dashboard/link-token.ts'
import type { StoredPasskey, User } from '../state/dashboard/user.ts'
import { runPasskeyJob } from './factor/passkey-thread.ts'

/** COSE: EdDSA, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257]
const TIMEOUT_MS = SECOND_STEP_MINUTES * MINUTE_MS
/** The name under which authenticators list the service. */
const RP_NAME = 'Sendwright'

/** Whose passkeys they are, and which pages may ask for them. */
export interface RelyingParty {
  readonly rpId: string
  readonly origins: string[]
}

/** The relying party of this installation. */
export function relyingParty({
  baseUrl,
  edge,
}: {
  readonly baseUrl: string
  readonly edge: Pick<DashboardEdge, 'origins'>
}): RelyingParty {
  const rpId = new URL(dashboardBase(baseUrl)).hostname
  return { rpId, origins: [...edge.origins].filter((origin) => new URL(origin).hostname === rpId) }
}

/** The JSON input of `navigator.credentials.get`. Takes the user, or null for any passkey. */
export function optionsToShow({ rpId }: RelyingParty, challenge: string, user: User | null): object {
  return {
    challenge,
    rpId,
    timeout: TIMEOUT_MS,
    userVerification: user === null ? 'required' : 'preferred',
    allowCredentials: user === null ? [] : user.passkeys.map(descriptorOf),
  }
}

/** The JSON input of `navigator.credentials.create`. */
export function optionsToMake({ rpId }: RelyingParty, challenge: string, user: User): object {
  const { userId, address, name, passkeys } = user
  return {
    challenge,
    rp: { id: rpId, name: RP_NAME },
    user: { id: Buffer.from(userId).toString('base64url'), name: address, displayName: name },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    timeout: TIMEOUT_MS,
    attestation: 'none',
    excludeCredentials: passkeys.map(descriptorOf),
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
  }
}

function descriptorOf({ credentialId, transports }: StoredPasskey): object {
  return { type: 'public-key', id: credentialId, ...(transports.length > 0 && { transports }) }
}

/** The user whom a passkey names; null: none. */
export function parseUserId(credential: object): string | null {
  const { response } = credential as { readonly response?: { readonly userHandle?: unknown } }
  const handle = response?.userHandle
  const userId = typeof handle === 'string' ? Buffer.from(handle, 'base64url').toString() : ''
  return shardOf(userId) === null ? null : userId
}

/** Whether a browser's answer names a passkey of a user. */
export function hasPasskey(user: User, credential: object): boolean {
  return findPasskey(user, credential) !== undefined
}

function findPasskey({ passkeys }: User, { id }: { readonly id?: unknown }): StoredPasskey | undefined {
  return passkeys.find(({ credentialId }) => credentialId === id)
}

/** The verified result of a user's passkey, or null. With `isAlone`, the passkey must have verified its holder. */
export async function verifyShown(
  { rpId, origins }: RelyingParty,
  user: User,
  of: { readonly credential: object; readonly challenge: string; readonly isAlone: boolean },
): Promise<Shown | null> {
  const { credential, challenge, isAlone } = of
  const known = findPasskey(user, credential)
  if (known === undefined) return null
  const { credentialId, publicKey, counter, passkeyId } = known
  const passkey = { credentialId, publicKey, counter }
  const verified = await runPasskeyJob({ kind: 'shown', rpId, origins, credential, challenge, isAlone, passkey })
  return verified === null || !('newCounter' in verified)
    ? null
    : { kind: 'passkey', passkeyId, counter: verified.newCounter }
}

/** The stored data of a new passkey. */
export type MadePasskey = Pick<StoredPasskey, 'credentialId' | 'publicKey' | 'counter' | 'transports'>

/** The new passkey of a browser; null if it does not match the request; an issue if unacceptable. */
export async function verifyMade(
  { rpId, origins }: RelyingParty,
  { credential, challenge }: { readonly credential: object; readonly challenge: string },
): Promise<MadePasskey | { readonly issue: string } | null> {
  const made = await runPasskeyJob({ kind: 'made', rpId, origins, credential, challenge, algorithms: ALGORITHMS })
  return made === null || 'newCounter' in made ? null : made
}
