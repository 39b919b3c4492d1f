/**
 * passkey - the requests to browsers about passkeys, and the verification of their answers (WebAuthn level 2)
 *
 * A passkey belongs to the name in BASE_URL, on the loopback to `localhost`: browsers allow none for IP addresses. The
 * library is loaded with the first answer to verify, which takes some 0.4 s. Attestations are not verified, because for
 * a certificate the library would fetch URLs in it.
 *
 * Spec session.passkey
 */

import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { shardOf } from '../../cluster/id.ts'
import { SECOND_STEP_MINUTES } from '../../schemas/limits.ts'
import type { Shown } from '../actors/dashboard/factor.ts'
import type { DashboardEdge } from '../http/dashboard-edge.ts'
import { MINUTE_MS } from '../state/calendar.ts'
import { dashboardBase } from '../state/dashboard/link-token.ts'
import type { StoredPasskey, User } from '../state/dashboard/user.ts'

/** COSE: EdDSA, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257]
const TIMEOUT_MS = SECOND_STEP_MINUTES * MINUTE_MS
/** WebAuthn 7.1 step 25: bytes of a credential's id. */
const CREDENTIAL_BYTES_MAX = 1023
/** An RSA key of 8,192 bits takes some 1,040 bytes. */
const PUBLIC_KEY_BYTES_MAX = 2048
/** WebAuthn 5.8.4, and `cable` of older browsers. */
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']
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
  const response = of.credential as AuthenticationResponseJSON
  const known = findPasskey(user, response)
  if (known === undefined) return null
  const { credentialId, publicKey, counter, passkeyId } = known
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: of.challenge,
      expectedOrigin: origins,
      expectedRPID: rpId,
      credential: { id: credentialId, publicKey: Buffer.from(publicKey, 'base64url'), counter },
      requireUserVerification: of.isAlone,
    })
    return verified ? { kind: 'passkey', passkeyId, counter: authenticationInfo.newCounter } : null
  } catch {
    // The library throws for any invalid input of a browser.
    return null
  }
}

/** The stored data of a new passkey. */
export type MadePasskey = Pick<StoredPasskey, 'credentialId' | 'publicKey' | 'counter' | 'transports'>

/** The new passkey of a browser; null if it does not match the request; an issue if unacceptable. */
export async function verifyMade(
  { rpId, origins }: RelyingParty,
  of: { readonly credential: object; readonly challenge: string },
): Promise<MadePasskey | { readonly issue: string } | null> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const response = of.credential as RegistrationResponseJSON
  try {
    if (await isAttested(response)) return { issue: 'Must come without attestation' }
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: of.challenge,
      expectedOrigin: origins,
      expectedRPID: rpId,
      requireUserVerification: false,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!verified) return null
    const { id, publicKey, counter, transports } = registrationInfo.credential
    const isLarge = Buffer.from(id, 'base64url').length > CREDENTIAL_BYTES_MAX
    if (isLarge || publicKey.length > PUBLIC_KEY_BYTES_MAX) return { issue: 'Its id or its key is too large' }
    const key = Buffer.from(publicKey).toString('base64url')
    return { credentialId: id, publicKey: key, counter, transports: knownTransports(transports) }
  } catch {
    // The library throws for any invalid input of a browser.
    return null
  }
}

/** Whether an attestation of the authenticator is included. Throws for malformed input. */
async function isAttested({ response }: RegistrationResponseJSON): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const sent = decodeAttestationObject(new Uint8Array(Buffer.from(response.attestationObject, 'base64url')))
  const fmt = sent.get('fmt')
  return fmt !== 'none' && (fmt !== 'packed' || sent.get('attStmt').get('x5c') !== undefined)
}

/** A browser may send any value. */
function knownTransports(said: unknown): string[] {
  return Array.isArray(said) ? TRANSPORTS.filter((transport) => said.includes(transport)) : []
}
