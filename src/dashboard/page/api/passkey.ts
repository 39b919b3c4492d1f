/** passkey - the browser's calls for passkeys, in its own JSON forms: to show one, and to create one */
import type { Passkey, PasskeyMade } from '../../../../schemas/dashboard/me.ts'
import type { SignedIn } from '../../../../schemas/dashboard/session.ts'
import { ApiError, call } from './call.ts'

interface Begun {
  readonly options: object
  readonly challenge: string
}

/** Whether this browser has passkeys for this page: for no page under an IP address. */
export function hasPasskeys(): boolean {
  return typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential
}

/** Signs in by a passkey; with a challenge, as a second step. Throws ApiError. */
export async function signInByPasskey(challenge?: string): Promise<SignedIn> {
  const begun = await call<Begun>('POST', '/session/passkey/options', { body: { challenge } })
  const body = { challenge: begun.challenge, credential: await show(begun) }
  return call<SignedIn>('POST', '/session/passkey', { body })
}

/** The proof by which a passkey confirms a session. Throws ApiError. */
export async function confirmByPasskey(): Promise<{ readonly challenge: string; readonly credential: object }> {
  const begun = await call<Begun>('POST', '/session/confirm/options')
  return { challenge: begun.challenge, credential: await show(begun) }
}

/** Makes a passkey of the user's. Throws ApiError. */
export async function makePasskey(name: string): Promise<PasskeyMade> {
  const begun = await call<Begun>('POST', '/me/passkeys/options')
  const credential = await asked(() => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
      begun.options as PublicKeyCredentialCreationOptionsJSON,
    )
    return navigator.credentials.create({ publicKey })
  })
  return call<PasskeyMade>('POST', '/me/passkeys', { body: { challenge: begun.challenge, credential, name } })
}

/** Gives a passkey another name. Throws ApiError. */
export function renamePasskey(passkeyId: string, name: string): Promise<Passkey> {
  return call<Passkey>('PATCH', `/me/passkeys/${passkeyId}`, { body: { name } })
}

function show({ options }: Begun): Promise<object> {
  return asked(() => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON)
    return navigator.credentials.get({ publicKey })
  })
}

/** The browser's answer. It throws if there is none, and the browser's own window shows the reason. */
async function asked(ask: () => Promise<Credential | null>): Promise<object> {
  if (!hasPasskeys()) throw new ApiError(0, { message: 'This browser does not support passkeys: update it' }, null)
  try {
    const credential = await ask()
    if (credential instanceof PublicKeyCredential) return credential.toJSON()
  } catch (fault) {
    if (!(fault instanceof DOMException)) throw fault
    if (fault.name === 'SecurityError') throw new ApiError(0, { message: NO_NAME }, null)
    if (fault.name === 'InvalidStateError') throw new ApiError(0, { message: 'You already have this passkey' }, null)
  }
  throw new ApiError(0, { message: 'No passkey was used' }, null)
}

const NO_NAME = 'Passkeys need the host name in BASE_URL, not an IP address: open the dashboard there'
