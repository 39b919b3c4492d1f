/**
 * request-head - one request for the head of a web page, over a connection to an address that was checked
 *
 * Nothing of the body is read, no cookie is sent or kept. Guarantees: ends within its time; never rejects.
 *
 * Spec message.checks, webhook.private
 */

import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'

const HEADER_BYTES_MAX = 16 * 1024
/** A reason as Node.js names it, without anything of the server's. */
const REASON = /^[A-Z0-9_]{1,60}$/

export interface HeadOrder {
  readonly url: URL
  /** Of the host, checked. */
  readonly address: string
  readonly method: 'HEAD' | 'GET'
  /** Authorities to trust in place of the system's; null: the system's. */
  readonly ca: string | null
  readonly timeoutMs: number
}

export type HeadAnswer =
  | { readonly status: number; readonly location: string | null }
  | { readonly failure: 'timeout' | string }

/** Requests the head. */
export function requestHead({ url, address, method, ca, timeoutMs }: HeadOrder): Promise<HeadAnswer> {
  return new Promise((resolve) => {
    const isTls = url.protocol === 'https:'
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const request = (isTls ? requestHttps : requestHttp)({
      host: address,
      port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
      path: url.pathname + url.search,
      method,
      agent: false,
      maxHeaderSize: HEADER_BYTES_MAX,
      headers: { Host: url.host, 'User-Agent': 'Sendwright link check', Accept: '*/*', Connection: 'close' },
      ...(isTls && isIP(host) === 0 && { servername: host }),
      ...(isTls && ca !== null && { ca }),
    })
    const end = (answer: HeadAnswer): void => {
      clearTimeout(timer)
      resolve(answer)
      request.destroy()
    }
    const timer = setTimeout(() => end({ failure: 'timeout' }), timeoutMs)
    request.on('response', ({ statusCode = 0, headers }) => {
      end({ status: statusCode, location: headers.location ?? null })
    })
    // Stays after the end: a destroyed request may still report its error.
    request.on('error', ({ code = '' }: NodeJS.ErrnoException) => {
      end({ failure: REASON.test(code) ? code : 'connect_failed' })
    })
    request.end()
  })
}
