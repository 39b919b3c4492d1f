/**
 * classify-kumomta - KumoMTA's rules as vectors: each pattern becomes a reply that it matches, whose class is compared
 * with ours.
 *
 * KumoMTA's classes sort a sender's statistics; ours also decide about suppression. So one rule must never break: if
 * KumoMTA sees no dead address, neither do we. If the classes differ otherwise, most replies must still agree.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { classifyReply } from '../../src/mail/classify.ts'
import { findSuite } from '../support/machine/suites.ts'

const RULES = findSuite('bounce/kumomta-rules')
const DEAD = ['InvalidRecipient', 'BadDomain', 'InactiveMailbox']
/** KumoMTA's class and ours, if our table has a more precise one. */
const CLOSER = [
  'AuthenticationFailed InvalidSender',
  'RoutingErrors RelayingIssues',
  'SpamBlock SpamContent',
  'QuotaIssues ContentRelated',
]
/**
 * Part of the replies that have the same class; the others are patterns wider than their class, or of one site's words.
 */
const AGREE_MIN = 0.8

interface Vector {
  readonly classification: string
  readonly reply: string
}

/** `Name = [ "pattern", … ]` of a TOML file, the only form in these. */
function readRules(file: string): { classification: string; pattern: string }[] {
  let classification = ''
  const rules: { classification: string; pattern: string }[] = []
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    classification = /^(\w+) = \[/.exec(line)?.[1] ?? classification
    const text = /^\s*("(?:[^"\\]|\\.)*")/.exec(line)?.[1] ?? /^\s*'([^']*)'/.exec(line)?.[1]
    if (text !== undefined && !line.includes('=')) rules.push({ classification, pattern: parseText(text) })
  }
  return rules
}

function parseText(text: string): string {
  return text.startsWith('"') ? (JSON.parse(text) as string) : text
}

/**
 * A reply that a pattern matches: the first that it allows, permanent if it allows both; null if that is not simple.
 */
function replyOf(pattern: string): string | null {
  const simple = pattern
    .replace(/\(\?i\)/g, '')
    .replace(/\((?:\d+\|)+(\d+)\)/g, '$1')
    .replace(/\[45\]/g, pattern.startsWith('^4') ? '4' : '5')
    .replace(/\[(\d)\d*\]/g, '$1')
    .replace(/\\d(\{(\d)\}|\+)?/g, (_, _many, count) => '0'.repeat(Number(count ?? 1)))
    .replace(/\\s[+*]?/g, ' ')
    .replace(/\((?:\?:)?([^()|]*)(\|[^()]*)?\)\??/g, '$1')
    .replace(/\.[+*]\??/g, ' - ')
    .replace(/\\(.)/g, '$1')
    .replace(/^\^|\$$/g, '')
  const reply = /^[45]\d\d/.test(simple) ? simple : `550 ${simple}`
  return new RegExp(pattern.replace('(?i)', ''), 'i').test(reply) ? reply : null
}

const rules =
  RULES === null
    ? []
    : ['bounce_classifier/iana.toml', 'community/bounces.toml'].flatMap((file) => readRules(join(RULES, file)))
const vectors = rules.flatMap(({ classification, pattern }): Vector[] => {
  const reply = replyOf(pattern)
  return reply === null ? [] : [{ classification, reply }]
})
const ours = (reply: string) => classifyReply({ phase: 'rcpt', response: reply })

t.test('classify: like KumoMTA [delivery.class]', { skip: RULES === null && 'no vectors' }, async (t) => {
  t.ok(rules.length > 100 && vectors.length > rules.length * 0.9, `${vectors.length} replies of ${rules.length} rules`)
  const agreeing = vectors.filter(({ classification: theirs, reply }) => {
    const { classification } = ours(reply)
    return classification === theirs || CLOSER.includes(`${theirs} ${classification}`)
  })
  t.ok(agreeing.length >= vectors.length * AGREE_MIN, `${agreeing.length} of ${vectors.length} in the same class`)
})

t.test(
  'classify: no dead address if KumoMTA sees none [message.hard]',
  { skip: RULES === null && 'no vectors' },
  async (t) => {
    // A mailbox that is permanently over its quota is dead to us, whatever it may hold.
    const isOurs = (reply: string) => reply.includes('OverQuotaPerm')
    const wrong = vectors.filter(
      ({ classification, reply }) => !DEAD.includes(classification) && ours(reply).hard && !isOurs(reply),
    )
    t.same(
      wrong.map(({ classification, reply }) => `${classification}: ${reply}`),
      [],
    )
  },
)
