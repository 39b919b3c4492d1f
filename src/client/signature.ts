/**
 * signature - checks that a webhook's request comes from the service, and reads the event in it
 *
 * Spec client.verify, webhook.signature
 */
import { SendwrightError, SignatureError } from './errors.ts'
import { webCrypto } from './exchange.ts'
import type { Event } from './shapes/events.ts'

const TOLERANCE_SECONDS = 300
/** More signatures than two secrets have; a header is bounded. */
const SIGNATURES_MAX = 8
const HEADER = 'service-signature'

/** Headers of a request, either of the Fetch API, or an object with lower-case names, as in Node.js. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined }

export interface VerifyOptions {
  /** Maximum age of the signature in seconds, and its maximum distance ahead of this clock. Default: 300 */
  readonly toleranceSeconds?: number
}

/**
 * Checks the signature of a webhook's request.
 * @param rawBody the body as it arrived, before it was parsed
 * @param secret the signing secret of the webhook (`whsec_...`), or several
 * @returns the event
 * @throws SignatureError if the signature is missing, does not match, or is too old
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS }: VerifyOptions = {},
): Promise<Event> {
  const { t, signatures } = parse(headerIn(headers))
  if (!(Math.abs(Date.now() / 1000 - Number(t)) <= toleranceSeconds))
    throw new SignatureError(`The signature is of another time (t=${t}): the request is a replay, or a clock is wrong`)
  const body = typeof rawBody === 'string' ? new TextEncoder().encode(rawBody) : rawBody
  const signed = joined(new TextEncoder().encode(`${t}.`), body)
  const { subtle } = await webCrypto()
  for (const one of [secret].flat()) {
    // Some runtimes take an empty key, with which everybody can sign.
    if (typeof one !== 'string' || one === '')
      throw new SendwrightError('No secret: pass the signing secret of the webhook (whsec_...)')
    const raw = new TextEncoder().encode(one)
    const key = await subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    for (const signature of signatures)
      if (await subtle.verify('HMAC', key, signature, signed))
        return JSON.parse(new TextDecoder().decode(body)) as Event
  }
  throw new SignatureError('No signature matches: check the secret, and pass the body as it arrived')
}

function headerIn(headers: WebhookHeaders): string {
  const value = typeof headers.get === 'function' ? headers.get(HEADER) : (headers as Record<string, unknown>)[HEADER]
  if (typeof value !== 'string') throw new SignatureError('The request has no Service-Signature header')
  return value
}

function parse(header: string): { t: string; signatures: Uint8Array<ArrayBuffer>[] } {
  const parts = header.split(',', SIGNATURES_MAX + 1).map((part) => part.trim())
  const t = /^t=(\d{1,12})$/.exec(parts[0] ?? '')?.[1]
  if (t === undefined) throw new SignatureError('The Service-Signature header does not begin with t=<unix seconds>')
  const hex = parts.slice(1).flatMap((part) => /^v1=([0-9a-f]{64})$/.exec(part)?.[1] ?? [])
  return {
    t,
    signatures: hex.map((one) => Uint8Array.from(one.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))),
  }
}

function joined(one: Uint8Array, two: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(one.length + two.length)
  all.set(one)
  all.set(two, one.length)
  return all
}
