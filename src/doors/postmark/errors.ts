/**
 * errors - our refusals as Postmark's clients read them: `{ErrorCode, Message}`
 *
 * Its clients choose their error class by status and code, and 422 with 300 or 406 have separate classes.
 */

import type { Reply } from '../../http/respond.ts'
import type { OwnRefusal } from '../common/own-api.ts'

/** Codes of Postmark's list that handlers answer with. */
export const CODES = {
  badToken: 10,
  maintenance: 100,
  invalidEmail: 300,
  unknownSender: 400,
  invalidJson: 402,
  invalidField: 403,
  notAllowedToSend: 405,
  inactiveRecipient: 406,
  tooManyMessages: 410,
  accountPending: 412,
  accountMayNotSend: 413,
  unknownMessage: 701,
  unknownBounce: 1001,
  notActivated: 1003,
  unknownTemplate: 1101,
  unknownStreamId: 1226,
  unknownStream: 1235,
  streamCannotSend: 1236,
} as const

/** A refusal as the client reads it. */
export interface PostmarkError {
  readonly ErrorCode: number
  readonly Message: string
}

/** Status and code of each refusal; one that is not listed is an invalid request. */
const SHAPES: Readonly<Record<string, readonly [status: number, code: number]>> = {
  unauthorized: [401, CODES.badToken],
  wrong_token_kind: [401, CODES.badToken],
  method_not_allowed: [405, CODES.invalidField],
  unsupported_media_type: [422, CODES.invalidJson],
  payment_required: [422, CODES.accountMayNotSend],
  account_not_active: [422, CODES.accountPending],
  account_paused: [422, CODES.accountMayNotSend],
  not_found: [404, CODES.unknownMessage],
  content_expired: [404, CODES.unknownMessage],
  stream_not_found: [422, CODES.unknownStream],
  stream_kind_not_allowed: [422, CODES.streamCannotSend],
  stream_archived: [422, CODES.streamCannotSend],
  stream_paused: [422, CODES.streamCannotSend],
  domain_not_verified: [422, CODES.unknownSender],
  suppression_not_liftable: [422, CODES.notActivated],
  cap_reached: [422, CODES.notAllowedToSend],
  rate_limited: [429, CODES.notAllowedToSend],
  scheduled_limit: [429, CODES.notAllowedToSend],
  internal_error: [500, CODES.maintenance],
  data_damaged: [503, CODES.maintenance],
  unavailable: [503, CODES.maintenance],
}

/** The answer of a refusal; one that a handler made in the client's form stays as it is. */
export function presentPostmark({ json, text, bytes: _, contentType: __, ...rest }: Reply): Reply {
  if (json !== null && typeof json === 'object' && 'ErrorCode' in json) return { ...rest, json }
  const refusal = (json ?? {}) as OwnRefusal
  const status = SHAPES[refusal.error ?? '']?.[0] ?? (rest.status < 413 ? 422 : rest.status)
  return { ...rest, status, json: makePostmarkError(refusal, text) }
}

/** A refusal without an equivalent among ours. */
export function refuseAs(status: number, ErrorCode: number, Message: string): Reply {
  return { status, json: { ErrorCode, Message } satisfies PostmarkError }
}

/** A refusal in the client's form. Takes our refusal, and the text of one without a JSON body. */
export function makePostmarkError(refusal: OwnRefusal, text?: string): PostmarkError {
  const { error = '', message, issues, domain } = refusal
  const [first] = issues ?? []
  if (error === 'unauthorized')
    return { ErrorCode: CODES.badToken, Message: 'Request does not contain a valid server token.' }
  if (error === 'domain_not_verified')
    return {
      ErrorCode: CODES.unknownSender,
      Message: `The domain ${domain} of the 'From' address is not verified. Add it to the account and verify its DNS records.`,
    }
  if (first === undefined)
    return { ErrorCode: SHAPES[error]?.[1] ?? CODES.invalidEmail, Message: message ?? text ?? 'Refused' }
  if (first.path === '') return { ErrorCode: CODES.invalidJson, Message: first.message }
  if (first.path === 'MessageStream')
    return { ErrorCode: CODES.unknownStream, Message: `Invalid 'MessageStream': ${first.message}` }
  return { ErrorCode: CODES.invalidEmail, Message: `Invalid '${first.path}' value: ${first.message}` }
}
