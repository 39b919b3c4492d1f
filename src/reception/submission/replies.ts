/**
 * replies - the replies to a client of SMTP submission, each with its enhanced status code once (RFC 3463, RFC 2034)
 *
 * A refusal of the contract begins with its code, so that it can be found in the documents and distinguished from
 * others with the same number. It is 4xx if a retry of the client's queue may succeed, and 5xx if a person must act.
 *
 * Spec submission.replies
 */

import { MESSAGE_BYTES_MAX, SEND_AT_DAYS_MAX, TEST_SEND_AT_DAYS_MAX } from '../../../schemas/limits.ts'
import { REFUSALS, type RefusalCode } from '../../../schemas/refusals.ts'
import type { Refused } from '../../actors/authorization/refusal.ts'
import { sentenceOfRefusal } from '../../sending/refusal-sentence.ts'
import type { SendResult } from '../../sending/send.ts'
import type { SmtpAnswer } from '../smtp-answer.ts'

/** Octets of a reply line with its end. RFC 5321 4.5.3.1.5 */
const REPLY_OCTETS_MAX = 512
const OWN_OCTETS = '250 '.length + '\r\n'.length

const MESSAGES: ReadonlyMap<string, string> = new Map(REFUSALS.map(({ code, message }) => [code, message]))

export const MALFORMED_KEY: SmtpAnswer = {
  code: 535,
  text: '5.7.8 unauthorized API key malformed: copy the whole key, sk_ or sk_test_ and two parts',
}
export const UNKNOWN_KEY: SmtpAnswer = { code: 535, text: '5.7.8 unauthorized API key unknown or revoked' }
export const WRONG_KIND: SmtpAnswer = {
  code: 535,
  text: '5.7.8 wrong_token_kind The password must be a server key (sk_ or sk_test_)',
}
export const TOO_MANY_LOGINS: SmtpAnswer = { code: 421, text: '4.7.0 Too many failed logins, try again later' }
export const LOGIN_UNAVAILABLE: SmtpAnswer = {
  code: 454,
  text: '4.7.0 unavailable Keys cannot be checked now, try again',
}
export const UNAVAILABLE: SmtpAnswer = { code: 451, text: '4.3.0 unavailable Nothing was accepted, try again' }
export const FULL: SmtpAnswer = { code: 452, text: '4.3.1 unavailable No room for new mail now, try again later' }
export const BAD_RECIPIENT: SmtpAnswer = { code: 501, text: '5.1.3 invalid_request Not a recipient address' }
export const BAD_SENDER: SmtpAnswer = { code: 553, text: '5.6.7 invalid_request Sender address must be ASCII' }
export const BAD_PARAMETER: SmtpAnswer = { code: 555, text: '5.5.4 invalid_request Parameter is not supported' }
/** A value of NOTIFY, RET, ENVID or ORCPT (RFC 3461). */
export const BAD_VALUE: SmtpAnswer = { code: 501, text: '5.5.4 invalid_request Parameter has a wrong value' }
export const BAD_LINES: SmtpAnswer = invalidMessage('Message contains NUL, or CR or LF outside CRLF')
export const LOOP: SmtpAnswer = { code: 554, text: '5.4.6 Too many hops: mail loops' }
export const DISPLACED: SmtpAnswer = { code: 421, text: '4.7.0 Too many connections without login, try again later' }
export const CROWDED: SmtpAnswer = { code: 421, text: '4.7.0 Too many connections, try again later' }
export const LATE: SmtpAnswer = { code: 421, text: '4.4.2 Timeout, closing connection' }
export const CLOSING: SmtpAnswer = { code: 421, text: '4.3.2 Service shutting down' }

const DAMAGED: SmtpAnswer = { code: 451, text: '4.3.0 data_damaged Stored data is damaged, nothing was accepted' }
const FAULT: SmtpAnswer = { code: 451, text: '4.3.0 internal_error Nothing was accepted, try again' }
export const TOO_LARGE: SmtpAnswer = {
  code: 552,
  text: `5.3.4 message_too_large Message may have ${MESSAGE_BYTES_MAX} bytes, including added header fields`,
}

const SEND_AT_SENTENCE = `X-Sendwright-Send-At must not be in the past and at most ${SEND_AT_DAYS_MAX} days ahead, ${TEST_SEND_AT_DAYS_MAX} on a test server`

/** Refusals of the form of a message. */
export function invalidMessage(sentence: string): SmtpAnswer {
  return { code: 554, text: oneLine(`5.6.0 invalid_request ${sentence}`) }
}

/** The reply to a message; `cut` if the outcome is unknown, and the connection is closed without a reply. */
export function answerSubmission(result: SendResult): SmtpAnswer | 'cut' {
  if (result.kind === 'silent') return 'cut'
  if (result.kind === 'unavailable') return UNAVAILABLE
  if (result.kind === 'fault') return result.isDamaged === true ? DAMAGED : FAULT
  const { reply } = result
  if (reply.kind === 'refused') return answerRefusal(reply)
  return { code: 250, text: `2.0.0 accepted ${reply.messages[0]?.messageId}` }
}

/** The reply to a refusal by the decision. */
export function answerRefusal({ code, extra }: Pick<Refused, 'code' | 'extra'>): SmtpAnswer {
  if (code === 'message_too_large') return TOO_LARGE
  if ('sendAt' in extra) return invalidMessage(SEND_AT_SENTENCE)
  const { requested, limit } = extra as Readonly<Record<string, unknown>>
  const message = MESSAGES.get(code) ?? ''
  const sentence = code === 'domain_not_verified' ? sentenceOfRefusal(code, extra) : undefined
  if (code !== 'rate_limited') return { code: 550, text: oneLine(`5.7.1 ${code} ${sentence ?? message}`) }
  // Spec submission.rate
  const canPass = !(typeof requested === 'number' && typeof limit === 'number' && requested > limit)
  return canPass
    ? { code: 451, text: `4.7.1 ${code} ${message}, try again in a minute` }
    : { code: 550, text: `5.7.1 ${code} Message has more recipients than the whole limit: ${requested} of ${limit}` }
}

/** A reply as the library sends it: its text, and the prefix of the text (`false` for none). */
export interface LibraryReply {
  readonly text: string | string[] | null | undefined
  readonly context: string | false | undefined
}

const HAS_CODE = /^[245]\.\d{1,3}\.\d{1,3} /

/** Corrects the library's replies: ours already have their code, and some of its own need another one. */
export function correctReply(code: number, { text, context }: LibraryReply): LibraryReply {
  if (typeof text !== 'string') return { text, context }
  if (HAS_CODE.test(text)) return { text, context: false }
  const own = CORRECTED.find((one) => one.code === code && one.words.test(text))
  if (own !== undefined) return { text: own.text, context: false }
  // The library looks a code up by the name of the command, which the client chose.
  return { text, context: code === 500 || code === 421 ? undefined : context }
}

const CORRECTED: readonly { code: number; words: RegExp; text: string }[] = [
  { code: 421, words: /Timeout/, text: LATE.text },
  { code: 421, words: /shutting down/, text: CLOSING.text },
  { code: 421, words: /talk too soon/, text: '4.7.0 Data received before the greeting' },
  { code: 421, words: /HTTP/, text: '4.7.0 This is not an HTTP server' },
  { code: 421, words: /too many|too long/i, text: '4.7.0 Too many errors' },
  { code: 421, words: /./, text: '4.3.0 Session cannot continue' },
  { code: 501, words: /\b(?:NOTIFY|RET|ORCPT|ENVID)\b/, text: BAD_VALUE.text },
  { code: 530, words: /./, text: '5.7.0 unauthorized Log in with a server key first' },
  { code: 538, words: /./, text: '5.7.11 Encryption is required: send STARTTLS first' },
  { code: 552, words: /./, text: TOO_LARGE.text },
]

/** A text reduced to the characters and length of one reply line. */
function oneLine(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, REPLY_OCTETS_MAX - OWN_OCTETS)
}

/** The code of the contract that a reply begins with; its number if there is none. */
export function codeOfReply({ code, text }: SmtpAnswer): RefusalCode | string {
  const word = text.replace(HAS_CODE, '').split(' ')[0] ?? ''
  return MESSAGES.has(word) ? word : String(code)
}
