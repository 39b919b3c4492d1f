/**
 * s3-wire - one request to S3: signed, bounded in time, retried if that can help
 *
 * Path style (`<endpoint>/<bucket>/<key>`), AWS Signature Version 4. A definite refusal (4xx) is not retried; a
 * failure without a verdict (a failed connection, a time-out, 5xx, 429) is, twice, after a pause.
 */

import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { Pool } from 'undici'
import { StorageFailure } from './storage-backend.ts'

export interface S3Place {
  /** Without a slash at its end. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  /** Empty, or without slashes at its ends. */
  readonly prefix: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export interface S3Request {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  /** Name of the object; null for the bucket. */
  readonly name: string | null
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** The body, created again for each try, with its length and its SHA-256 in hex. */
  readonly body?: { make(): Uint8Array | Readable; readonly bytes: number; readonly sha256: string }
}

export interface S3Answer {
  readonly status: number
  header(name: string): string | null
  readonly body: AsyncIterable<Buffer>
  /** Reads the rest and throws it away. */
  drop(): Promise<void>
}

/** Timeouts of a request: to connect, until its answer begins, and between two pieces. */
export interface S3Times {
  readonly connectMs: number
  readonly answerMs: number
  readonly pieceMs: number
  /** Before the second try; before the third it is four times as long. */
  readonly pauseMs: number
}

export const S3_TIMES: S3Times = { connectMs: 3_000, answerMs: 10_000, pieceMs: 10_000, pauseMs: 200 }
const TRIES = 3
const CONNECTIONS = 32
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
/** Characters read of an error. */
const ERROR_CHARS_MAX = 4096

export interface S3Wire {
  /** The answer, with any status below 500. Rejects with a HomeFailure. */
  send(request: S3Request): Promise<S3Answer>
  close(): Promise<void>
}

/** Opens the way to a place; nothing is connected to yet. */
export function makeS3Wire(place: S3Place, times: S3Times): S3Wire {
  const { origin, pathname } = new URL(place.endpoint)
  const pool = new Pool(origin, {
    connections: CONNECTIONS,
    connect: { timeout: times.connectMs },
    headersTimeout: times.answerMs,
    bodyTimeout: times.pieceMs,
  })
  const pathOf = (name: string | null): string => {
    const key = name === null ? '' : `/${[place.prefix, name].filter(Boolean).join('/')}`
    return `${pathname.replace(/\/+$/, '')}/${place.bucket}${key}`
  }
  const sendOnce = async (request: S3Request): Promise<S3Answer> => {
    const { method, name, query = {}, headers = {}, body } = request
    const url = new URL(origin + pathOf(name))
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value)
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? EMPTY_SHA256 },
      accessKeyId: place.accessKeyId,
      secretAccessKey: place.secretAccessKey,
      region: place.region,
      service: 's3',
    })
    const signed = await signer.sign()
    const answer = await pool.request({
      method,
      path: signed.url.pathname + signed.url.search,
      headers: { ...Object.fromEntries(signed.headers), ...(body && { 'content-length': String(body.bytes) }) },
      body: body?.make() ?? null,
    })
    return {
      status: answer.statusCode,
      header: (header) => answer.headers[header]?.toString() ?? null,
      body: answer.body,
      drop: () => answer.body.dump(),
    }
  }
  return {
    async send(request) {
      let reason = ''
      for (let tries = 0; tries < TRIES; tries += 1) {
        if (tries > 0) await pause(times.pauseMs * 4 ** (tries - 1))
        const answer = await sendOnce(request).catch((error: Error) => error)
        if (answer instanceof Error) reason = reasonOf(answer)
        else if (answer.status < 500 && answer.status !== 429) return answer
        else reason = await readRefusal(answer)
      }
      throw new StorageFailure('away', reason)
    },
    close: () => pool.destroy(),
  }
}

/** Why an answer refuses, in its own words: `S3 answered 403 SignatureDoesNotMatch`. */
export async function readRefusal(answer: S3Answer): Promise<string> {
  let text = ''
  try {
    for await (const piece of answer.body) if (text.length < ERROR_CHARS_MAX) text += piece.toString('latin1')
  } catch {
    // The status is sufficient.
  }
  const code = /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(text)?.[1]
  return `S3 answered ${answer.status}${code === undefined ? '' : ` ${code}`}`
}

function reasonOf(error: Error & { code?: string }): string {
  return `S3 did not answer: ${error.code ?? error.message}`
}
