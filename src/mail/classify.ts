/**
 * classify - what a refusal means: its class, whether it is temporary, and whether the address is dead for good (`hard`).
 *
 * Rules are tried in order over the one-line reply (`reply.ts`); the first that holds decides. Class names are those of
 * KumoMTA. Guarantees: the reply code alone says temporary or permanent (RFC 5321 4.2.1), except where a rule or 503 says
 * temporary; what is not a reply is temporary; `hard` needs a 5xx, one of three classes, and a recipient to be spoken of:
 * a refusal for policy or reputation must never suppress a person.
 *
 * Spec delivery.class, message.hard
 */

import type { Outcome, Phase } from './outcome.ts'
import { parseReply } from './reply.ts'

export interface ClassifyInput {
  readonly phase: Phase
  /** The reply in one line, code first. */
  readonly response: string
}

export interface Classification {
  readonly classification: string
  readonly temporary: boolean
  readonly hard: boolean
}

interface Rule {
  readonly classification: string
  readonly text: RegExp
  /** A line that this matches is not for the rule. */
  readonly not?: RegExp
  readonly phases?: readonly Phase[]
  /** The address is dead when the other conditions of `hard` hold too. */
  readonly hard?: true
  /** Temporary whatever the reply code says. */
  readonly temporary?: true
}

/** Phases in which a refusal can be about the recipient. */
const RECIPIENT_PHASES: readonly Phase[] = ['rcpt', 'data', 'dot']
/** Phases in which the address may be dead; a refusal of DATA before the message says nothing of one recipient for good. */
const HARD_PHASES: readonly Phase[] = ['rcpt', 'dot', 'dns']
const UNKNOWN_RECIPIENT = new RegExp(
  [
    '(user|recipient|mailbox|address|account|alias)( is| name)? (unknown|unrecognized|not (found|known|exist))',
    'unknown (or illegal )?(alias|user|recipient|mailbox|address|account|local part)',
    "(no|not?) such (a )?(user|mailbox|recipient|address|account|person|customer)|no mail-?box|isn't a valid",
    "(doesn't|does not|did not) have an? .{0,40}account",
    "(user|recipient|mailbox|address|account|that you tried to reach|email|<[^>]*>|\\S@[^\\s@]+)( you .{0,40})? (does not|doesn't|do not|didn't) exist",
    'mailbox (unavailable|not available|not found)|(invalid|bad) (recipient|mailbox|user|destination mailbox)',
    'not a (valid|known) (user|mailbox|recipient|address)|user (is )?invalid|not our customer',
    'utilisateur inconnu|undeliverable address',
  ].join('|'),
  'i',
)

const RULES: readonly Rule[] = [
  { classification: 'TransientFailure', text: /^4.*gr[ae]y-? ?list/i },
  { classification: 'PolicyRelated', text: /too many (invalid recipients|errors|unknown|bad )/i },
  {
    classification: 'InvalidRecipient',
    text: /\b5\.1\.10\b.*(resolver\.adr|recipientnotfound)/i,
    phases: RECIPIENT_PHASES,
    hard: true,
  },
  {
    classification: 'BadDomain',
    text: /^556|null mx|\b5\.7\.18\b|\b5\.1\.10\b/i,
    not: /sender|\b5\.7\.27\b/i,
    hard: true,
  },
  {
    classification: 'InactiveMailbox',
    text: /overquotaperm|\b(account|mailbox|user|recipient)\b[^.;]{0,60}\b(disabled|inactive|suspended|closed|deactivated|not activ(e|ated))\b|\b(disabled|inactive|suspended) ?(account|mailbox|user|recipient)/i,
    not: /\bsend(er|ing)\b|\byour (account|domain|ip|server)/i,
    hard: true,
  },
  {
    classification: 'QuotaIssues',
    text: /\b[45]\.2\.2\b|over ?-?quota|quota (exceeded|violation)|exceeded .{0,20}quota|(mailbox|inbox) (is |was )?full|out of storage|mailbox limit exc?ee|^552.*storage allocation/i,
  },
  {
    classification: 'ContentRelated',
    text: /\b[45]\.2\.3\b|\b[45]\.3\.4\b|message (is )?too (large|big|long)|size exceeds|exceeds .{0,40}size|maximum message size/i,
  },
  { classification: 'VirusRelated', text: /virus|malware|infected|phish/i },
  {
    classification: 'ProhibitedAttachment',
    text: /(attachment|file (type|name|extension)).{0,60}(block|not (allowed|accepted|permitted)|prohibit|reject|forbid|banned)|(block|banned|prohibited|forbidden) .{0,20}(attachment|file (type|extension))/i,
  },
  {
    classification: 'AuthenticationFailed',
    text: /\b[45]\.7\.(2[0-69]|30|509|515)\b|\bdmarc\b|\b(dkim|spf)\b.{0,60}(fail|(not|n't) pass|invalid|missing|required)|(fail|(not|n't) pass|invalid|missing).{0,40}\b(dkim|spf)\b|unauthenticated|dmarcrejection|authentication (is )?required|smtp authentication/i,
  },
  {
    classification: 'InvalidSender',
    text: /\b[45]\.1\.[78]\b|\b5\.7\.27\b|sender (address|domain)?.{0,60}(reject|denied|does not exist|not exist|invalid|unresolv|not resolve|not found|verif|must exist|has no\b|resolve fail)|domain of sender/i,
  },
  {
    classification: 'SpamBlock',
    text: /spamhaus|spamcop|barracuda|\b(rbl|dnsbl|rhsbl)\b|(block|black) ?-?list|\bip\b.{0,60}\b(block|bann?ed|listed|deny|denied)|\b(blocked|banned|listed)\b.{0,40}\bip\b|reputation|\bS31[45]0\b|\bblocked by (ivmsip\b|\S+\.\S)/i,
  },
  {
    classification: 'SpamContent',
    text: /spam|junk ?mail|unsolicited|content (is |was )?(reject|denied)|url in this .{0,20}listed|uribl|surbl/i,
  },
  {
    classification: 'InvalidRecipient',
    text: /\b5\.1\.[123]\b|^550 5\.1\.\d+ (?!.*access denied).*reject|\b5\.4\.1\b.*(recipient|access denied)|\b5\.5\.0\b.*mailbox/i,
    phases: RECIPIENT_PHASES,
    hard: true,
  },
  { classification: 'InvalidRecipient', text: UNKNOWN_RECIPIENT, phases: RECIPIENT_PHASES, hard: true },
  {
    classification: 'RelayingIssues',
    text: /relay(ing)?( access)? (is )?(denied|not (permitted|allowed)|prohibited)|(unable|not permitted|not allowed|isn't allowed|refus\w+) to relay|rcpthosts|^551.*relay/i,
  },
  {
    classification: 'RoutingErrors',
    text: /\b[45]\.4\.[46]\b|unrouteable|unroutable|mail ?loop|loops back|looping|too many hops/i,
  },
  { classification: 'TooManyRecipients', text: /\b[45]\.5\.3\b|too many recipients/i, temporary: true },
  {
    classification: 'PolicyRelated',
    text: /policy|rate ?-?limit|too many (connections|messages)|throttl|try (again|later)|\b[45]\.7\.(?!13\b)\d+|denied|rejected|not allowed/i,
  },
  { classification: 'InactiveMailbox', text: /\b5\.2\.1\b|^525 5\.7\.13\b|\b5\.7\.13\b|\b5\.1\.6\b/i, hard: true },
  {
    classification: 'InvalidRecipient',
    text: /^55[013]( 5\.[10]\.\d+)?( .*\b(unknown|unavailable|no such|not found|not exist|invalid (user|recipient|mailbox|address)).*)?$/i,
    // Of a domain or a look-up it says nothing about the recipient.
    not: /\b(domain|dns)\b/i,
    phases: ['rcpt'],
    hard: true,
  },
  { classification: 'ProtocolErrors', text: /^50[0-4]|\b[45]\.[56]\.\d+|^(?![2-5]\d\d( |$))/i },
  { classification: 'BadConnection', text: /^421 4\.4\.2\b/ },
  { classification: 'TransientFailure', text: /^4/ },
  { classification: 'Uncategorized', text: /(?:)/ },
]

/** Classifies a refusal. Never fails: the last rule matches anything. */
export function classifyReply(input: ClassifyInput): Classification {
  const { code, enhanced } = parseReply(input.response)
  const rule = RULES.find((one) => holds(one, input))!
  const temporary = code === null || code < 500 || code === 503 || rule.temporary === true
  // Spec message.hard: of 5.7.x only "account disabled" and "null MX" speak of the recipient, whatever the words say.
  const isPolicy = enhanced !== null && /^5\.7\.(?!13$|18$)/.test(enhanced)
  const hard = rule.hard === true && !temporary && !isPolicy && HARD_PHASES.includes(input.phase)
  return { classification: rule.classification, temporary, hard }
}

/** The outcome that a refusing reply stands for. */
export function makeRefused(input: ClassifyInput): Outcome {
  const { classification, temporary, hard } = classifyReply(input)
  const { code } = parseReply(input.response)
  const result = temporary ? 'deferred' : 'bounced'
  return { result, code, response: input.response, classification, hard, expired: false, phase: input.phase }
}

function holds(rule: Rule, input: ClassifyInput): boolean {
  if (rule.phases && !rule.phases.includes(input.phase)) return false
  return rule.text.test(input.response) && !rule.not?.test(input.response)
}

/** Decisions without a reply of the receiving server: the text begins with the enhanced code that fits (RFC 3463). */
const UNASKED = {
  'no-domain': { classification: 'BadDomain', hard: true, phase: 'dns', text: '5.1.2 domain does not exist' },
  'null-mx': { classification: 'BadDomain', hard: true, phase: 'dns', text: '5.1.10 domain does not accept mail' },
  'private-only': {
    classification: 'RoutingErrors',
    hard: false,
    phase: 'dns',
    text: '5.4.4 domain has no public mail server',
  },
  'no-exchange': {
    classification: 'RoutingErrors',
    hard: false,
    phase: 'dns',
    text: '5.4.4 domain names no usable mail server',
  },
  loop: {
    classification: 'RoutingErrors',
    hard: false,
    phase: 'dns',
    text: '5.4.6 mail for the domain would loop back to this service',
  },
  'bad-address': {
    classification: 'InvalidRecipient',
    hard: false,
    phase: 'mail',
    text: '5.6.7 address needs SMTPUTF8',
  },
  'too-large': {
    classification: 'ContentRelated',
    hard: false,
    phase: 'mail',
    text: '5.3.4 message is larger than the receiving server takes',
  },
  unbuildable: {
    classification: 'Uncategorized',
    hard: false,
    phase: 'compose',
    text: '5.6.0 message cannot be built',
  },
} as const satisfies Record<string, { classification: string; hard: boolean; phase: Phase; text: string }>

export type UnaskedReason = keyof typeof UNASKED

/** A permanent outcome that was decided before any receiving server was asked. */
export function makeUnasked(reason: UnaskedReason): Outcome {
  const { classification, hard, phase, text } = UNASKED[reason]
  return { result: 'bounced', code: null, response: text, classification, hard, expired: false, phase }
}
