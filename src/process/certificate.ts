/**
 * certificate - the certificate of the SMTP listeners: the operator's, or one of our own that is kept in the data
 * directory
 *
 * Mail servers take any certificate (RFC 7435): encryption to a stranger is better than none. Node has no maker of
 * certificates, so the few structures of one are written here (X.509 as in RFC 5280 4.1, DER as in X.690).
 */

import { createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { readNamedFile, WrongFile } from './named-file.ts'
import { replaceFile } from './whole-file.ts'

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

const FILES = { cert: 'tls-cert.pem', key: 'tls-key.pem' }
const DAY_MS = 86_400_000
const LIFE_DAYS = 3650
/** A certificate that expires within this time is replaced. */
const RENEW_DAYS = 30
/** Names under which a client on this machine connects, beside the host name. */
const LOCAL_NAMES = ['localhost', 'sendwright.localhost']
/** 127.0.0.1 and ::1. */
const LOCAL_ADDRESSES = [Buffer.from([127, 0, 0, 1]), Buffer.from([...new Array(15).fill(0), 1])]
const LOCAL_ADDRESSES_TEXT = ['127.0.0.1', '0:0:0:0:0:0:0:1']
/** RFC 5280 4.2.1.6: tags of names in an extension. */
const TAGS = { dnsName: 0x82, ipAddress: 0x87 }
/** RFC 5280 A.1: characters of a common name. */
const COMMON_NAME_CHARS_MAX = 64

const OIDS = { ecdsaWithSha256: '2a8648ce3d040302', commonName: '550403', subjectAltName: '551d11' }

export interface CertificatePlace {
  readonly tlsCert: string | null
  readonly tlsKey: string | null
  readonly dataDir: string
  /** The host name that the certificate is for. */
  readonly name: string
}

export interface CertificateLog {
  error(facts: object, sentence: string): void
}

/**
 * Reads the certificate that the operator named, or the installation's own. A new pair is created if there is none, if
 * it expires soon, or if its files are damaged, which is logged.
 * @throws WrongFile if the operator's files are not a certificate and its key
 */
export function openCertificate(
  { tlsCert, tlsKey, dataDir, name }: CertificatePlace,
  { nowMs, log }: { nowMs: number; log: CertificateLog },
): Certificate {
  if (tlsCert !== null && tlsKey !== null) return readCertificate(tlsCert, tlsKey)
  const paths = { cert: join(dataDir, FILES.cert), key: join(dataDir, FILES.key) }
  if (existsSync(paths.cert) && existsSync(paths.key)) {
    const kept = { cert: readFileSync(paths.cert, 'utf8'), key: readFileSync(paths.key, 'utf8') }
    if (!isPair(kept)) log.error(paths, 'The generated TLS certificate or its key is damaged: creating a new pair')
    else if (holds(kept.cert, name, nowMs)) return kept
  }
  const made = makeCertificate(name, nowMs)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  // The key is written first: after a crash in between, the certificate does not match, and a new pair is made.
  replaceFile(paths.key, made.key)
  replaceFile(paths.cert, made.cert)
  return made
}

/** Throws WrongFile if the two are not a certificate and its key. */
function readCertificate(certPath: string, keyPath: string): Certificate {
  const cert = readNamedFile('TLS_CERT', certPath)
  const key = readNamedFile('TLS_KEY', keyPath)
  if (orNull(() => new X509Certificate(cert)) === null)
    throw new WrongFile('TLS_CERT', { wanted: 'a certificate in PEM', path: certPath })
  if (!isPair({ cert, key }))
    throw new WrongFile('TLS_KEY', { wanted: 'the private key of TLS_CERT, in PEM', path: keyPath })
  const fault = faultOfChain({ cert, key })
  if (fault !== null)
    throw new WrongFile('TLS_CERT', { wanted: `a certificate chain for TLS (${fault})`, path: certPath })
  return { cert, key }
}

/** Why TLS refuses a pair, for example because of a truncated chain; null if it does not. */
export function faultOfChain(pair: Certificate): string | null {
  try {
    createSecureContext({ ...pair, minVersion: 'TLSv1.2' })
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** Whether both are valid PEM, and the key is the private key of the certificate. */
export function isPair({ cert, key }: Certificate): boolean {
  return orNull(() => new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) === true
}

function orNull<Value>(read: () => Value): Value | null {
  try {
    return read()
  } catch {
    return null
  }
}

/**
 * A certificate for a host name and for connections on this machine, signed with its own key (P-256), from now for ten
 * years.
 */
export function makeCertificate(name: string, nowMs: number): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = der(0x30, oid(OIDS.ecdsaWithSha256))
  const subject = nameOf(name)
  const altName = der(
    0x30,
    ...namesWith(name).map((one) => der(TAGS.dnsName, Buffer.from(one))),
    ...LOCAL_ADDRESSES.map((one) => der(TAGS.ipAddress, one)),
  )
  const extension = der(0x30, oid(OIDS.subjectAltName), der(0x04, altName))
  const told = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    // Positive, so its first bit is 0.
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    subject,
    der(0x30, time(nowMs - DAY_MS), time(nowMs + LIFE_DAYS * DAY_MS)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, extension)),
  )
  const signature = sign('sha256', told, privateKey)
  const whole = der(0x30, told, algorithm, der(0x03, Buffer.from([0]), signature))
  const lines = whole.toString('base64').replace(/.{1,64}/g, '$&\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function holds(cert: string, name: string, nowMs: number): boolean {
  try {
    const { validTo, subjectAltName } = new X509Certificate(cert)
    return Date.parse(validTo) - nowMs > RENEW_DAYS * DAY_MS && subjectAltName === altNameText(name)
  } catch {
    return false
  }
}

function namesWith(name: string): string[] {
  return [...new Set([name, ...LOCAL_NAMES])]
}

/** The extension as `X509Certificate` prints it. */
function altNameText(name: string): string {
  const names = namesWith(name).map((one) => `DNS:${one}`)
  return [...names, ...LOCAL_ADDRESSES_TEXT.map((one) => `IP Address:${one}`)].join(', ')
}

function nameOf(name: string): Buffer {
  const value = der(0x0c, Buffer.from(name.slice(0, COMMON_NAME_CHARS_MAX)))
  return der(0x30, der(0x31, der(0x30, oid(OIDS.commonName), value)))
}

/** UTCTime until 2049, GeneralizedTime after (RFC 5280 4.1.2.5). */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+Z$|\D/g, '')
  const isLate = digits.slice(0, 4) >= '2050'
  return der(isLate ? 0x18 : 0x17, Buffer.from(`${isLate ? digits : digits.slice(2)}Z`))
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}

/** Tag, length, contents (X.690 8.1). */
function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content])
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
