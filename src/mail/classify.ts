/**
 * classify - the meaning of a refusal, with its class, whether it is temporary, and whether the address is dead for
 * good (`hard`).
 *
 * The rules (`reply-rules.ts`) are tried in order over the words of the one-line reply (`reply-words.ts`); the first
 * that holds decides. Class names are those of KumoMTA. Words override codes, so a reply whose code means a dead
 * recipient is not hard if its words mean something else. Guarantees that the reply code alone decides between
 * temporary and permanent (RFC 5321 4.2.1), unless a rule or 503 means temporary; that a text which is not a reply is
 * temporary; and that `hard` needs a 5xx, one of three classes, and words about the recipient. A refusal for policy or
 * reputation must never suppress a person.
 *
 * Spec delivery.class, message.hard
 */

import type { Outcome, Phase } from './outcome.ts'
import { parseReply } from './reply.ts'
import { NEUTRAL, RULES, type Rule, VETOES } from './reply-rules.ts'
import { readWords } from './reply-words.ts'

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

/**
 * Phases in which the address may be dead; a refusal of DATA before the message proves nothing permanent about one
 * recipient.
 */
const HARD_PHASES: readonly Phase[] = ['rcpt', 'dot', 'dns']

/**
 * Classifies a refusal. If a gateway quotes the next server, the inner reply decides, but whether there will be
 * another attempt is decided by the reply of the outer server. Never fails, because the last rule matches any text.
 */
export function classifyReply({ phase, response }: ClassifyInput): Classification {
  const { text, quotedCode } = readWords(response)
  const rule = RULES.find((one) => holds(one, text, phase))!
  const { code } = parseReply(response)
  const temporary = code === null || code < 500 || code === 503 || rule.temporary === true
  // Of 5.7.x only "account disabled" and "null MX" are about the recipient, whatever the words are. Spec message.hard
  const { enhanced } = parseReply(text)
  const isPolicy = enhanced !== null && /^5\.7\.(?!13$|18$)/.test(enhanced)
  const isRefused = (quotedCode ?? code ?? 0) >= 500 && !temporary && !isPolicy && HARD_PHASES.includes(phase)
  const veto = rule.hard === true ? findVeto(text) : null
  const hard = rule.hard === true && veto === null && isRefused
  return { classification: veto ?? rule.classification, temporary, hard }
}

/** The class that overrides a reply about a dead recipient because of its words; null if none does. */
function findVeto(text: string): string | null {
  const words = NEUTRAL.reduce((rest, phrase) => rest.replace(phrase, ' '), text)
  return VETOES.find((one) => one.text.test(words) && !one.not?.test(words))?.classification ?? null
}

/** The outcome of a refusing reply. */
export function makeRefused(input: ClassifyInput): Outcome {
  const { classification, temporary, hard } = classifyReply(input)
  const { code } = parseReply(input.response)
  const result = temporary ? 'deferred' : 'bounced'
  return { result, code, response: input.response, classification, hard, expired: false, phase: input.phase }
}

function holds({ phases, text, not }: Rule, words: string, phase: Phase): boolean {
  if (phases && !phases.includes(phase)) return false
  return text.test(words) && !not?.test(words)
}

/** Decisions without a reply of the receiving server, whose text begins with the matching enhanced code (RFC 3463). */
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
