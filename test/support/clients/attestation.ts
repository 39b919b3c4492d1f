/** attestation - the attestation of an Android key, in certificates that name the URL of their revocation list. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Attest } from './authenticator.ts'

const ECDSA = Buffer.from('300a06082a8648ce3d040302', 'hex')
const COMMON_NAME = Buffer.from('0603550403', 'hex')
const CRL_POINTS = Buffer.from('0603551d1f', 'hex')
const KEY_DESCRIPTION = Buffer.from('060a2b06010401d679020111', 'hex')
const DAY_MS = 86_400_000

/** In: the URL of the revocation list. */
export function attestAs(fmt: 'android-key' | 'packed', url: string): Attest {
  return (key, clientHash) => {
    const issuer = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const made = { issuer: issuer.privateKey, url }
    const leaf = certificateOf('leaf', key, { ...made, clientHash })
    const root = certificateOf('root', issuer.publicKey, made)
    const text = (name: string) => Buffer.concat([Buffer.from([0x60 + name.length]), Buffer.from(name)])
    const said = [text('alg'), Buffer.from([0x26]), text('sig'), bytes(Buffer.alloc(300, 1)), text('x5c')]
    return {
      fmt,
      statement: Buffer.concat([Buffer.from([0xa3]), ...said, Buffer.from([0x82]), bytes(leaf), bytes(root)]),
    }
  }
}

/** A byte string of CBOR, of 256 bytes at least. */
function bytes(of: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x59, of.length >> 8, of.length & 0xff]), of])
}

/** A value of DER. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const { length } = Buffer.concat(parts)
  const long = length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  const head = [tag, ...(length < 128 ? [length] : long)]
  return Buffer.concat([Buffer.from(head), ...parts])
}

const seq = (...parts: readonly Buffer[]) => der(0x30, ...parts)

function certificateOf(
  name: string,
  key: KeyObject,
  { issuer, url, clientHash }: { issuer: KeyObject; url: string; clientHash?: Buffer },
): Buffer {
  const named = (text: string) => seq(der(0x31, seq(COMMON_NAME, der(0x0c, Buffer.from(text)))))
  const at = (ms: number) => der(0x17, Buffer.from(`${new Date(ms).toISOString().replaceAll(/\D/g, '').slice(2, 14)}Z`))
  const uri = der(0x86, Buffer.from(url))
  const points = seq(CRL_POINTS, der(0x04, seq(seq(der(0xa0, der(0xa0, uri))))))
  const versions = Buffer.from('0201030a01010201040a0101', 'hex')
  const lists = Buffer.from('040030003000', 'hex')
  const described = clientHash && seq(KEY_DESCRIPTION, der(0x04, seq(versions, der(0x04, clientHash), lists)))
  const now = Date.now()
  const body = seq(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([name.length + (clientHash ? 1 : 2)])),
    ECDSA,
    named('root'),
    seq(at(now - DAY_MS), at(now + DAY_MS)),
    named(name),
    key.export({ format: 'der', type: 'spki' }),
    der(0xa3, seq(points, ...(described ? [described] : []))),
  )
  return seq(body, ECDSA, der(0x03, Buffer.from([0]), sign('sha256', body, issuer)))
}
