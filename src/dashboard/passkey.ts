/**
 * passkey - what browsers are asked with passkeys, and whether what they answer is right (WebAuthn level 2)
 *
 * A passkey belongs to the name in BASE_URL, on the loopback to `localhost`: browsers give IP addresses none. The
 * library is loaded with the first answer that is to be verified: it takes some 0.4 s.
 *
 * Spec session.passkey
 */

import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { isId } from '../../cluster/id.ts'
import { SECOND_STEP_MINUTES } from '../../schemas/limits.ts'
import type { Shown } from '../actors/dashboard/factor.ts'
import type { DashboardEdge } from '../http/dashboard-edge.ts'
import { MINUTE_MS } from '../state/calendar.ts'
import type { StoredPasskey, User } from '../state/dashboard/user.ts'
import { dashboardBase } from './link-token.ts'

/** COSE: EdDSA, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257]
const TIMEOUT_MS = SECOND_STEP_MINUTES * MINUTE_MS
/** As what authenticators show the service. */
const RP_NAME = 'Sendwright'

/** Whose passkeys they are, and which pages may ask for them. */
export interface RelyingParty {
  readonly rpId: string
  readonly origins: string[]
}

/** The one of this installation. */
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

/** What `navigator.credentials.get` takes as JSON. In: null for whoever has a passkey here. */
export function optionsToShow({ rpId }: RelyingParty, challenge: string, user: User | null): object {
  return {
    challenge,
    rpId,
    timeout: TIMEOUT_MS,
    userVerification: user === null ? 'required' : 'preferred',
    allowCredentials: user === null ? [] : user.passkeys.map(descriptorOf),
  }
}

/** What `navigator.credentials.create` takes as JSON. */
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
export function userIdOf(credential: object): string | null {
  const { response } = credential as { readonly response?: { readonly userHandle?: unknown } }
  const handle = response?.userHandle
  const userId = typeof handle === 'string' ? Buffer.from(handle, 'base64url').toString() : ''
  return isId(userId) ? userId : null
}

/** What a passkey of a user has shown; null: nothing. `isAlone`: it must have verified who holds it. */
export async function verifyShown(
  { rpId, origins }: RelyingParty,
  user: User,
  of: { readonly credential: object; readonly challenge: string; readonly isAlone: boolean },
): Promise<Shown | null> {
  const response = of.credential as AuthenticationResponseJSON
  const known = user.passkeys.find(({ credentialId }) => credentialId === response.id)
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
    // The library throws for everything that is wrong with what a browser sent.
    return null
  }
}

/** The passkey that a browser has made; null where it is not as it was asked for. */
export async function verifyMade(
  { rpId, origins }: RelyingParty,
  of: { readonly credential: object; readonly challenge: string },
): Promise<Pick<StoredPasskey, 'credentialId' | 'publicKey' | 'counter' | 'transports'> | null> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  try {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: of.credential as RegistrationResponseJSON,
      expectedChallenge: of.challenge,
      expectedOrigin: origins,
      expectedRPID: rpId,
      requireUserVerification: false,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!verified) return null
    const { id, publicKey, counter, transports = [] } = registrationInfo.credential
    return { credentialId: id, publicKey: Buffer.from(publicKey).toString('base64url'), counter, transports }
  } catch {
    // The library throws for everything that is wrong with what a browser sent.
    return null
  }
}
