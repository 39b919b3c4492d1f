/**
 * passkey-worker - the body of the thread that verifies the answers of browsers about passkeys (WebAuthn level 2)
 *
 * Spec session.passkey
 */

import {
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { decodeAttestationObject } from '@simplewebauthn/server/helpers'
import { serveJobs } from '../../process/serve-jobs.ts'
import type { StoredPasskey } from '../../state/dashboard/user.ts'

/** WebAuthn 7.1 step 25: bytes of a credential's id. */
const CREDENTIAL_BYTES_MAX = 1023
/** An RSA key of 8,192 bits takes some 1,040 bytes. */
const PUBLIC_KEY_BYTES_MAX = 2048
/** WebAuthn 5.8.4, and `cable` of older browsers. */
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

interface Asked {
  readonly rpId: string
  readonly origins: string[]
  readonly challenge: string
  /** The answer of the browser: any object. */
  readonly credential: object
}

/** A known passkey that was shown. */
interface ShownJob extends Asked {
  readonly kind: 'shown'
  readonly passkey: Pick<StoredPasskey, 'credentialId' | 'publicKey' | 'counter'>
  /** Whether the passkey must have verified its holder. */
  readonly isAlone: boolean
}

/** A new passkey. */
interface MadeJob extends Asked {
  readonly kind: 'made'
  readonly algorithms: number[]
}

export type PasskeyJob = ShownJob | MadeJob
type NewPasskey = Pick<StoredPasskey, 'credentialId' | 'publicKey' | 'counter' | 'transports'>
/** Null: it does not match the request. */
export type PasskeyResult = { readonly newCounter: number } | NewPasskey | { readonly issue: string } | null

// The library throws for any invalid input of a browser.
serveJobs<PasskeyJob, PasskeyResult>((job) =>
  (job.kind === 'shown' ? verifyShown(job) : verifyMade(job)).catch(() => null),
)

async function verifyShown({
  rpId,
  origins,
  challenge,
  credential,
  passkey,
  isAlone,
}: ShownJob): Promise<PasskeyResult> {
  const { credentialId, publicKey, counter } = passkey
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: credential as AuthenticationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: origins,
    expectedRPID: rpId,
    credential: { id: credentialId, publicKey: Buffer.from(publicKey, 'base64url'), counter },
    requireUserVerification: isAlone,
  })
  return verified ? { newCounter: authenticationInfo.newCounter } : null
}

async function verifyMade({ rpId, origins, challenge, credential, algorithms }: MadeJob): Promise<PasskeyResult> {
  const response = credential as RegistrationResponseJSON
  if (isAttested(response)) return { issue: 'Must come without attestation' }
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origins,
    expectedRPID: rpId,
    requireUserVerification: false,
    supportedAlgorithmIDs: algorithms,
  })
  if (!verified) return null
  const { id, publicKey, counter, transports } = registrationInfo.credential
  const isLarge = Buffer.from(id, 'base64url').length > CREDENTIAL_BYTES_MAX
  if (isLarge || publicKey.length > PUBLIC_KEY_BYTES_MAX) return { issue: 'Its id or its key is too large' }
  const key = Buffer.from(publicKey).toString('base64url')
  return { credentialId: id, publicKey: key, counter, transports: knownTransports(transports) }
}

/** Whether an attestation of the authenticator is included. Throws for malformed input. */
function isAttested({ response }: RegistrationResponseJSON): boolean {
  const sent = decodeAttestationObject(new Uint8Array(Buffer.from(response.attestationObject, 'base64url')))
  const fmt = sent.get('fmt')
  return fmt !== 'none' && (fmt !== 'packed' || sent.get('attStmt').get('x5c') !== undefined)
}

/** A browser may send any value. */
function knownTransports(said: unknown): string[] {
  return Array.isArray(said) ? TRANSPORTS.filter((transport) => said.includes(transport)) : []
}
