/**
 * signatures - DKIM (RFC 6376, 8301, 8463) and ARC (RFC 8617): which signatures of a mail hold.
 *
 * mailauth verifies them, by the letter of the RFCs (`strict`): tag names are case-sensitive, a repeated or empty tag
 * is an error, an `i=` outside of `d=`, the flags and hashes of a key count.
 *
 * States: read once (`readSignedMail`, for the fields of the header and the hashes of the body), then verified, as
 * often as the DNS has new answers (`checkSignatures`).
 *
 * Spec inbound.authentication.dkim, inbound.authentication.arc
 */

import type { DKIMResult } from 'mailauth'
import { arc } from 'mailauth/lib/arc/index.js'
import type { ArcVerdict, DkimVerdict } from '../../../schemas/inbound.ts'
import { hashBodies } from './body-hash.ts'
import { type BodyHashes, type Verified, type VerifierOptions, verifyHeader, wantedForms } from './header-verifier.ts'
import { type DnsLookUp, plainName, watchLookUp } from './look-up.ts'
import { clip } from './reason.ts'
import { showHeader } from './signed-mail.ts'

/** The data needed to verify a mail, small whatever the mail's size. */
export interface SignedMail {
  readonly header: Uint8Array
  readonly hashes: BodyHashes
  readonly oversized: number
}

/** One signature. */
export interface SignatureFinding {
  /** `d=` and `s=`, '' if missing. */
  readonly domain: string
  readonly selector: string
  readonly verdict: DkimVerdict
  /** The verifier's reason, and the record of the key that it found. */
  readonly reason: string | null
  readonly record: string | null
}

/** Results of the signatures. */
export interface SignatureReport {
  readonly dkim: DkimVerdict
  readonly arc: ArcVerdict
  readonly signatures: readonly SignatureFinding[]
  readonly arcReason: string | null
  /** Addresses of all From fields, and how many fields there are. */
  readonly authors: readonly string[]
  readonly fromFields: number
}

/** One valid signature is enough. Otherwise the first of these verdicts that any signature has decides. */
const WORST_FIRST: readonly DkimVerdict[] = ['fail', 'temperror', 'permerror']
/** A shorter key proves nothing (RFC 8301 3.2). */
const KEY_BITS_MIN = 1024

const NOTHING_FOUND: VerifierOptions['resolver'] = () => Promise.reject(Object.assign(new Error(), { code: 'ENODATA' }))

/** Reads a mail, its body once. Null if its header exceeds the limits. */
export async function readSignedMail(raw: Buffer): Promise<SignedMail | null> {
  const shown = showHeader(raw)
  if (shown === null) return null
  const forms = await wantedForms(shown.header, makeOptions(NOTHING_FOUND, 0))
  const hashes = hashBodies(raw, shown.bodyStart, [...forms.values()])
  return {
    header: shown.header,
    hashes: new Map([...forms.keys()].map((key, at) => [key, hashes[at] as string])),
    oversized: shown.oversized,
  }
}

/** Verifies a mail. `nowMs` is compared with `x=`. */
export async function checkSignatures(
  { header, hashes, oversized }: SignedMail,
  { lookUp, nowMs }: { lookUp: DnsLookUp; nowMs: number },
): Promise<SignatureReport> {
  const watched = watchLookUp(lookUp)
  const options = makeOptions(watched.lookUp as VerifierOptions['resolver'], nowMs)
  const bytes = Buffer.from(header.buffer, header.byteOffset, header.byteLength)
  const verified = await verifyHeader(bytes, { options, hashes })
  const signatures = verified.results.filter(({ status }) => status.result !== 'none').map(makeFinding)
  const verdicts = signatures.map(({ verdict }) => verdict)
  return {
    dkim: overallVerdict(verdicts, oversized),
    ...(await checkArc(verified, { options, failed: watched.failed })),
    signatures,
    authors: verified.headerFrom,
    fromFields: verified.fromFields,
  }
}

/** The domains (`d=`) of the signatures with a verdict. */
export function domainsWith({ signatures }: Pick<SignatureReport, 'signatures'>, wanted: DkimVerdict): string[] {
  return signatures.filter(({ verdict }) => verdict === wanted).map(({ domain }) => domain)
}

function makeOptions(resolver: VerifierOptions['resolver'], nowMs: number): VerifierOptions {
  return { resolver, strict: true, minBitLength: KEY_BITS_MIN, curTime: new Date(nowMs) }
}

function makeFinding({ status, signingDomain = '', selector = '', rr }: DKIMResult): SignatureFinding {
  return {
    domain: clip(signingDomain),
    selector: clip(selector),
    verdict: convertVerdict(status),
    reason: clip(status.policy?.['dkim-rules'] ?? (status.comment || null)),
    record: clip(rr ?? null),
  }
}

/** Verdict on one signature: `fail` if the content differs, `permerror` if the signature or key is unusable. */
function convertVerdict({ result, comment }: { result: string; comment?: string | false }): DkimVerdict {
  if (result === 'pass' || result === 'temperror') return result
  // `policy` stands for a key or a hash that RFC 8301 forbids.
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
  { options, failed }: { options: VerifierOptions; failed: ReadonlySet<string> },
): Promise<{ arc: ArcVerdict; arcReason: string | null }> {
  const { status } = await arc(data, options)
  const arcReason = clip(status.comment || null)
  if (status.result === 'pass' || status.result === 'none') return { arc: status.result, arcReason }
  // A chain that fails because the DNS did not return a key is not judged yet.
  const seals = (data.chain || []).map((entry) => entry['arc-seal']?.parsed)
  const latest = (data.chain || []).at(-1)?.['arc-message-signature']?.parsed
  const isUndecided = [...seals, latest].some(
    (tags) => tags !== undefined && failed.has(plainName(`${tags.s?.value}._domainkey.${tags.d?.value}`)),
  )
  return { arc: isUndecided ? 'unchecked' : 'fail', arcReason }
}
