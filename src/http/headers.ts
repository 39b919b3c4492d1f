/**
 * headers - the headers of a request that the edge reads, copied while the request is valid
 *
 * Spec request.idempotency, request.client, request.framing, request.repeated
 */

import type { Incoming } from './engine/engine.ts'

/** The headers that the edge reads. '' if missing. */
export interface RequestHeaders {
  authorization: string
  contentType: string
  contentEncoding: string
  contentLength: string
  /** Another server on the way may see the body end elsewhere than we do. */
  isFramedTwice: boolean
  isChunked: boolean
  /** The last header that was given twice although another server on the way may read the other one. */
  repeated: 'Host' | 'Authorization' | null
  hasHost: boolean
  hasAuthorization: boolean
  forwardedFor: string
  /** Null if the header is absent; an empty one is refused. */
  idempotencyKey: string | null
  /** '' also if it depends on a version of the content, because versions are not sent. */
  range: string
  /** Null if the header is absent. */
  lastEventId: string | null
  accept: string
  acceptLanguage: string
  cookie: string
  origin: string
  userAgent: string
  /** The browser's fetch destination; '' if missing. */
  fetchDest: string
  acceptEncoding: string
  /** Values of the further headers that a door reads. */
  named: NamedHeaders
}

/** Further headers that a door reads, by name in lower case; two of one name are joined by a comma. */
export type NamedHeaders = Readonly<Record<string, string>>

const NO_NAMES: readonly string[] = []
const NO_NAMED: NamedHeaders = Object.freeze({})

let reading: RequestHeaders = makeHeaders()
let isRangeVoid = false
let namesRead = NO_NAMES

/**
 * Copies the headers in one pass, which distinguishes an empty Idempotency-Key from an absent one. Takes the request,
 * and names of further headers in lower case.
 */
export function readHeaders(req: Pick<Incoming, 'forEach'>, names = NO_NAMES): RequestHeaders {
  reading = makeHeaders()
  isRangeVoid = false
  namesRead = names
  req.forEach(names.length === 0 ? readHeader : readNamedHeader)
  if (isRangeVoid) reading.range = ''
  return reading
}

function readNamedHeader(name: string, value: string): void {
  readHeader(name, value)
  // The name out of the list, because the engine would have to look for the new string of each request.
  const known = namesRead[namesRead.indexOf(name)]
  if (known === undefined) return
  if (reading.named === NO_NAMED) reading.named = {}
  const named = reading.named as Record<string, string>
  named[known] = named[known] === undefined ? value : `${named[known]},${value}`
}

function readHeader(name: string, value: string): void {
  switch (name) {
    case 'host':
      if (reading.hasHost) reading.repeated = 'Host'
      reading.hasHost = true
      break
    case 'authorization':
      if (reading.hasAuthorization) reading.repeated = 'Authorization'
      reading.hasAuthorization = true
      reading.authorization = value
      break
    case 'content-type':
      // Two media types together match none that is known.
      reading.contentType = reading.contentType === '' ? value : `${reading.contentType},${value}`
      break
    case 'content-encoding':
      reading.contentEncoding += value
      break
    case 'content-length':
      reading.isFramedTwice ||= reading.contentLength !== '' || value === ''
      reading.contentLength = value
      break
    case 'transfer-encoding':
      reading.isFramedTwice ||= reading.isChunked || value.toLowerCase() !== 'chunked'
      reading.isChunked = true
      break
    case 'trailer':
      // Fields behind the body (RFC 9112 7.1.2), which the library would read as the next request.
      reading.isFramedTwice = true
      break
    case 'x-forwarded-for':
      reading.forwardedFor = reading.forwardedFor === '' ? value : `${reading.forwardedFor},${value}`
      break
    case 'range':
      reading.range ||= value
      break
    case 'if-range':
      // No answer has a validator, so If-Range never matches. RFC 9110 13.1.5
      isRangeVoid = true
      break
    case 'accept':
      reading.accept = reading.accept === '' ? value : `${reading.accept},${value}`
      break
    case 'accept-language':
      reading.acceptLanguage ||= value
      break
    case 'cookie':
      reading.cookie = reading.cookie === '' ? value : `${reading.cookie}; ${value}`
      break
    case 'origin':
      reading.origin = reading.origin === '' ? value : `${reading.origin},${value}`
      break
    case 'user-agent':
      reading.userAgent ||= value
      break
    case 'sec-fetch-dest':
      reading.fetchDest ||= value
      break
    case 'accept-encoding':
      reading.acceptEncoding ||= value
      break
    case 'last-event-id':
      reading.lastEventId = value
      break
    case 'idempotency-key':
      // Two keys are ambiguous: they are read as the empty key, which is refused.
      reading.idempotencyKey = reading.idempotencyKey === null ? value : ''
      break
  }
}

function makeHeaders(): RequestHeaders {
  return {
    authorization: '',
    contentType: '',
    contentEncoding: '',
    contentLength: '',
    isFramedTwice: false,
    isChunked: false,
    repeated: null,
    hasHost: false,
    hasAuthorization: false,
    forwardedFor: '',
    idempotencyKey: null,
    range: '',
    lastEventId: null,
    accept: '',
    acceptLanguage: '',
    cookie: '',
    origin: '',
    userAgent: '',
    fetchDest: '',
    acceptEncoding: '',
    named: NO_NAMED,
  }
}
