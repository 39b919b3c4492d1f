/**
 * authenticator - a passkey without a browser (WebAuthn level 2, ES256): the answers of a browser, and answers that no
 * browser gives
 *
 * `counter` rises with each use unless it is 0. `verifies` is whether it claims to have verified its holder.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

interface Options {
  readonly challenge: string
  readonly rp?: { readonly id: string }
  readonly rpId?: string
  readonly user?: { readonly id: string }
}

/** States its maker. In: its key, and the data that it signs. Returns name and statement in CBOR. */
export type Attest = (key: KeyObject, clientHash: Buffer) => { readonly fmt: string; readonly statement: Buffer }

const EMPTY_MAP = Buffer.from([0xa0])

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const HAS_KEY = 0x40

export class Authenticator {
  readonly id = randomBytes(16)
  counter = 1
  verifies = true
  #userHandle = ''
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  readonly #origin: string

  constructor(origin: string) {
    this.#origin = origin
  }

  /** The answer of `navigator.credentials.create`. */
  make({ challenge, rp, user }: Options, attest?: Attest, transports: unknown = ['internal']): object {
    this.#userHandle = user?.id ?? ''
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' })
    const coordinate = (text: string) => Buffer.from(text, 'base64url')
    const cose = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      coordinate(x),
      Buffer.from('225820', 'hex'),
      coordinate(y),
    ])
    const key = Buffer.concat([Buffer.alloc(16), Buffer.from([0, this.id.length]), this.id, cose])
    const data = Buffer.concat([this.#data(rp?.id ?? '', HAS_KEY), key])
    const client = this.#client('webauthn.create', challenge)
    const clientHash = createHash('sha256').update(client).digest()
    const { fmt, statement } = attest?.(this.#keys.publicKey, clientHash) ?? { fmt: 'none', statement: EMPTY_MAP }
    const text = (name: string) => Buffer.concat([Buffer.from([0x60 + name.length]), Buffer.from(name)])
    const said = [text('fmt'), text(fmt), text('attStmt'), statement, text('authData')]
    const object = Buffer.concat([Buffer.from([0xa3]), ...said, Buffer.from([0x58, data.length]), data])
    const attestationObject = object.toString('base64url')
    return this.#answer({ attestationObject, clientDataJSON: client.toString('base64url'), transports })
  }

  /** The answer of `navigator.credentials.get`. In: another origin, like that of a page in between. */
  show({ challenge, rpId }: Options, origin = this.#origin): object {
    if (this.counter > 0) this.counter += 1
    const data = this.#data(rpId ?? '', 0)
    const client = this.#client('webauthn.get', challenge, origin)
    const signed = Buffer.concat([data, createHash('sha256').update(client).digest()])
    return this.#answer({
      authenticatorData: data.toString('base64url'),
      clientDataJSON: client.toString('base64url'),
      signature: sign('sha256', signed, this.#keys.privateKey).toString('base64url'),
      userHandle: this.#userHandle,
    })
  }

  #data(rpId: string, flags: number): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(this.counter)
    const all = flags | USER_PRESENT | (this.verifies ? USER_VERIFIED : 0)
    return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.from([all]), counter])
  }

  #client(type: string, challenge: string, origin = this.#origin): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }))
  }

  #answer(response: object): object {
    const id = this.id.toString('base64url')
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response }
  }
}
