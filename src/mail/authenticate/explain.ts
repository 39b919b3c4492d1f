/**
 * explain - the authentication of a mail in sentences, with the record, the name, and the fix.
 *
 * Spec inbound.authentication
 */

import type { DkimVerdict, SpfVerdict } from '../../../schemas/inbound.ts'
import type { DmarcReport } from './dmarc.ts'
import type { Judgement } from './judge.ts'
import type { AuthenticationPart } from './rounds.ts'
import { NO_HOST_NAME, NULL_SENDER, type SpfFinding } from './sender.ts'
import type { SignatureFinding, SignatureReport } from './signatures.ts'

/** One verdict. */
export interface Explained {
  readonly check: AuthenticationPart
  readonly verdict: string
  readonly message: string
  /** The DNS record behind the verdict, if one was found. */
  readonly record: { readonly name: string; readonly text: string } | null
  /** The change after which it would pass. */
  readonly fix: string | null
}

const LATER = 'Run the check again later, or use other name servers (DNS_SERVERS)'
const LIMITS = 'The header has over 256 KiB, 1,000 fields or 10,000 lines: nothing in it is verified'

/** Explains all verdicts, signatures one by one. Takes the address of the client, if known. */
export function explain({ authentication, findings }: Judgement, ip: string | null): Explained[] {
  const { sender, signatures, dmarc } = findings
  return [
    spfExplained('spf', sender.from, ip),
    spfExplained('spfHelo', sender.helo, ip),
    ...dkimExplained(signatures, authentication.dkim),
    dmarcExplained(dmarc, { signatures, sender: sender.from }),
    arcExplained(signatures, authentication.arc),
  ]
}

function spfExplained(check: 'spf' | 'spfHelo', finding: SpfFinding, ip: string | null): Explained {
  const { verdict, domain, record } = finding
  const { message, fix } = SPF[verdict](finding, ip ?? 'the sender')
  return { check, verdict, message, record: record === null ? null : { name: domain, text: record }, fix }
}

type Sentences = { readonly message: string; readonly fix: string | null }

const SPF: Readonly<Record<SpfVerdict, (finding: SpfFinding, ip: string) => Sentences>> = {
  pass: ({ domain }, ip) => ({ message: `${ip} may send for ${domain}`, fix: null }),
  fail: ({ domain }, ip) => ({ message: `${domain} does not let ${ip} send for it`, fix: nameAddress(domain, ip) }),
  softfail: ({ domain }, ip) => ({
    message: `${domain} does not name ${ip}, and asks to treat such mail with suspicion`,
    fix: nameAddress(domain, ip),
  }),
  neutral: ({ domain }, ip) => ({ message: `${domain} has no policy for ${ip}`, fix: nameAddress(domain, ip) }),
  none: ({ domain, reason, record }, ip) =>
    reason !== NULL_SENDER && reason !== NO_HOST_NAME
      ? {
          message: `${domain} has no SPF record`,
          fix: record === null ? `Create the DNS record: ${domain} TXT "v=spf1 ${mechanism(ip)} -all"` : null,
        }
      : { message: `SPF was not checked: ${reason}`, fix: null },
  permerror: ({ domain, reason }) => ({
    message: `The SPF record of ${domain} cannot be used: ${cleanDetail(reason)}`,
    fix: `Fix the TXT record of ${domain} (RFC 7208)`,
  }),
  temperror: ({ domain, reason }) => ({
    message: `The DNS did not return the SPF record of ${domain}: ${cleanDetail(reason)}`,
    fix: LATER,
  }),
  unchecked: ({ reason }) => ({ message: `SPF was not checked: ${reason}`, fix: null }),
}

function nameAddress(domain: string, ip: string): string {
  return `It passes from an address that the record names; to let this one send: ${mechanism(ip)} in the TXT record of ${domain}`
}

function mechanism(ip: string): string {
  if (!/[.:]/.test(ip)) return 'ip4:<address>'
  return `${ip.includes(':') ? 'ip6' : 'ip4'}:${ip}`
}

/** Further details of the verifier. */
function cleanDetail(reason: string | null): string {
  const detail = (reason ?? '').replace(/^(?:permanent )?error in processing during lookup of \S+?(?:: |$)/, '')
  return detail === '' ? 'no reason given' : detail
}

function dkimExplained(report: SignatureReport | null, overall: DkimVerdict): Explained[] {
  const nothing = { check: 'dkim', verdict: overall, record: null } as const
  if (report === null) return [{ ...nothing, message: LIMITS, fix: null }]
  if (report.signatures.length > 0) return report.signatures.map(signatureExplained)
  if (overall !== 'none') return [{ ...nothing, message: 'Its signatures have over 16 KiB', fix: null }]
  const fix = 'Sign it with a key of the domain in From'
  return [{ ...nothing, message: 'The mail is not signed', fix }]
}

function signatureExplained(finding: SignatureFinding): Explained {
  const { domain, selector, verdict, record } = finding
  const name = `${selector}._domainkey.${domain}`
  const { message, fix } = signatureSentences(finding, name)
  return { check: 'dkim', verdict, message, record: record === null ? null : { name, text: record }, fix }
}

/** By the verifier's reason. */
const SIGNATURE: Readonly<Record<string, (domain: string, name: string) => Sentences>> = {
  'body hash did not verify': (domain) => ({
    message: `The body was changed after ${domain} signed it`,
    fix: 'Forwarders must not change the body: no footer, no new line ends, no new encoding',
  }),
  'bad signature': (_, name) => ({
    message: `A signed field was changed in transit, or ${name} holds a different key than the one that signed`,
    fix: `Compare the key in ${name} with that of the signer`,
  }),
  expired: (domain) => ({ message: `The signature of ${domain} has expired`, fix: null }),
  'weak-key': (_, name) => ({
    message: `The key in ${name} has less than 1,024 bits (RFC 8301)`,
    fix: 'Sign with a key of 2,048 bits',
  }),
  'weak-algorithm': (domain) => ({
    message: `The signature of ${domain} uses SHA-1, which is no longer accepted (RFC 8301)`,
    fix: 'Sign with rsa-sha256',
  }),
  'no key': (_, name) => ({
    message: `There is no key in ${name}`,
    fix: `Create the DNS record: ${name} TXT "v=DKIM1; k=rsa; p=<public key>"`,
  }),
}

function signatureSentences({ domain, selector, verdict, reason }: SignatureFinding, name: string): Sentences {
  if (verdict === 'pass') return { message: `The signature of ${domain} (selector ${selector}) is valid`, fix: null }
  const known = SIGNATURE[reason ?? '']
  if (known !== undefined) return known(domain, name)
  if (verdict === 'temperror') return { message: `The DNS did not return the key in ${name}: ${reason}`, fix: LATER }
  const whose = domain === '' ? 'A signature' : `The signature of ${domain}`
  return { message: `${whose} cannot be used: ${reason}`, fix: `Fix the signer, or the record ${name} (RFC 6376)` }
}

const AUTHORS: Readonly<Record<string, string>> = {
  'multiple-author-domains': 'From names authors of several domains',
  'multiple-from-fields': 'There are several From fields',
  'invalid-author-domain': 'From names no valid domain',
}

function dmarcExplained(
  report: DmarcReport | null,
  { signatures, sender }: { signatures: SignatureReport | null; sender: SpfFinding },
): Explained {
  if (report === null || signatures === null)
    return { check: 'dmarc', verdict: 'permerror', message: LIMITS, record: null, fix: null }
  const { dmarc, record, policyDomain } = report
  const { message, fix } = dmarcSentences(report, { signatures, sender })
  const found = record === null ? null : { name: `_dmarc.${policyDomain}`, text: record }
  return { check: 'dmarc', verdict: dmarc, message, record: found, fix }
}

function dmarcSentences(
  { dmarc, dmarcPolicy, reason, aligned }: DmarcReport,
  { signatures, sender }: { signatures: SignatureReport; sender: SpfFinding },
): Sentences {
  const [first = ''] = signatures.authors
  const author = first.slice(first.lastIndexOf('@') + 1)
  if (dmarc === 'pass') {
    const by = [aligned.dkim && `the signature of ${aligned.dkim}`, aligned.spf && `SPF for ${aligned.spf}`]
    return { message: `From ${author} is confirmed by ${by.filter(Boolean).join(' and ')}`, fix: null }
  }
  if (dmarc === 'permerror') return { message: AUTHORS[reason ?? ''] ?? `It cannot be judged: ${reason}`, fix: null }
  if (dmarc === 'temperror') return { message: `The DNS did not answer: ${reason}`, fix: LATER }
  if (author === '') return { message: 'From has no address', fix: null }
  if (dmarc === 'none')
    return {
      message: `${author} has no DMARC record`,
      fix: `Create the DNS record: _dmarc.${author} TXT "v=DMARC1; p=none; rua=mailto:dmarc@${author}"`,
    }
  const held = signatures.signatures.filter(({ verdict }) => verdict === 'pass').map(({ domain }) => domain)
  const signed = held.length === 0 ? 'no signature is valid' : `valid signatures are of ${held.join(', ')}`
  const sent = sender.verdict === 'pass' ? `SPF passes for ${sender.domain}` : `SPF is ${sender.verdict}`
  return {
    message: `Nothing confirms From ${author}: ${signed}, ${sent}; its policy is ${dmarcPolicy}`,
    fix: `It passes with a signature with d=${author}, or with MAIL FROM in ${author} and SPF`,
  }
}

function arcExplained(report: SignatureReport | null, verdict: string): Explained {
  const reason = report?.arcReason ?? null
  const messages: Readonly<Record<string, string>> = {
    none: 'No forwarder has sealed it',
    pass: `The chain of seals is valid${reason === null ? '' : ` (${reason})`}`,
    fail: `The chain of seals is broken: ${reason ?? 'a signature of it, or a key, cannot be used'}`,
    unchecked: 'The DNS did not return a key of the chain of seals',
  }
  const message = report === null ? LIMITS : (messages[verdict] as string)
  return { check: 'arc', verdict, message, record: null, fix: verdict === 'unchecked' ? LATER : null }
}
