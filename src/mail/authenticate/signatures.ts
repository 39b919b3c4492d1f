/**
 * signatures - DKIM (RFC 6376, 8301, 8463) and ARC (RFC 8617): which signatures of a mail hold.
 *
 * mailauth verifies them, by the letter of the RFCs (`strict`): tag names are case-sensitive, a repeated or empty tag is an
 * error, an `i=` outside of `d=`, the flags and hashes of a key count.
 *
 * Spec inbound.authentication.dkim, inbound.authentication.arc
 */

import { Readable } from 'node:stream'
import { arc } from 'mailauth/lib/arc/index.js'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import type { ArcVerdict, DkimVerdict } from '../../../schemas/inbound.ts'
import { type LookUp, plainName, watchLookUp } from './look-up.ts'
import { prepareSignedMail } from './signed-mail.ts'

/** What the signatures say. */
export interface SignatureReport {
  readonly dkim: DkimVerdict
  readonly arc: ArcVerdict
  /** Domains (`d=`) whose signature holds, and those about whose key the DNS could not tell. */
  readonly passed: readonly string[]
  readonly undecided: readonly string[]
  /** Addresses of all From fields, and how many fields there are. */
  readonly authors: readonly string[]
  readonly fromFields: number
}

/** Of several signatures the best says what the mail is; without one that holds, in this order. */
const WORST_FIRST: readonly DkimVerdict[] = ['fail', 'temperror', 'permerror']
/** RFC 8301 3.2: below this a key says nothing. */
const KEY_BITS_MIN = 1024

type Verified = Awaited<ReturnType<typeof dkimVerify>>
type Resolver = (name: string, type: string) => Promise<string[][]>

/** Verifies a mail. In: when it is checked, for `x=`. Null where its header passes the limits. */
export async function checkSignatures(
  raw: Buffer,
  { lookUp, nowMs }: { lookUp: LookUp; nowMs: number },
): Promise<SignatureReport | null> {
  const signed = prepareSignedMail(raw)
  if (signed === null) return null
  const watched = watchLookUp(lookUp)
  const resolver = watched.lookUp as Resolver
  const options = { resolver, strict: true, minBitLength: KEY_BITS_MIN }
  // In one piece: of pieces, it would put together a line that never ends again and again.
  const input = Readable.from([signed.message])
  const verified = await dkimVerify(input, { ...options, curTime: new Date(nowMs) })
  const judged = verified.results.map(({ status, signingDomain = '' }) => ({
    verdict: verdictOf(status),
    domain: signingDomain,
  }))
  const domainsWith = (wanted: DkimVerdict): string[] =>
    judged.filter(({ verdict }) => verdict === wanted).map(({ domain }) => domain)
  return {
    dkim: overallVerdict(
      judged.map(({ verdict }) => verdict),
      signed.oversized,
    ),
    arc: await checkArc(verified, { options, failed: watched.failed }),
    passed: domainsWith('pass'),
    undecided: domainsWith('temperror'),
    authors: verified.headerFrom,
    fromFields: verified.fromFields,
  }
}

/** One signature: what was signed otherwise has failed; what cannot be used, its key included, is an error that stays. */
function verdictOf({ result, comment }: { result: string; comment?: string | false }): DkimVerdict {
  if (result === 'pass' || result === 'none' || result === 'temperror') return result
  // `policy`: a key or a hash that RFC 8301 forbids.
  if (result === 'fail' || result === 'policy' || comment === 'expired') return 'fail'
  return 'permerror'
}

function overallVerdict(verdicts: readonly DkimVerdict[], oversized: number): DkimVerdict {
  if (verdicts.includes('pass')) return 'pass'
  const worst = WORST_FIRST.find((verdict) => verdicts.includes(verdict))
  return worst ?? (oversized > 0 ? 'permerror' : 'none')
}

async function checkArc(
  { arc: data }: Verified,
  {
    options,
    failed,
  }: { options: { resolver: Resolver; strict: boolean; minBitLength: number }; failed: ReadonlySet<string> },
): Promise<ArcVerdict> {
  if (data === undefined) return 'none'
  // The object is the one that it wants; its two types differ.
  const { status } = await arc(data as Parameters<typeof arc>[0], options)
  if (status.result === 'pass' || status.result === 'none') return status.result
  // A chain that fails for want of a key that the DNS could not tell is not judged yet.
  const seals = (data.chain || []).map((entry) => entry['arc-seal']?.parsed)
  const latest = (data.chain || []).at(-1)?.['arc-message-signature']?.parsed
  const isUndecided = [...seals, latest].some(
    (tags) => tags !== undefined && failed.has(plainName(`${tags.s?.value}._domainkey.${tags.d?.value}`)),
  )
  return isUndecided ? 'unchecked' : 'fail'
}
