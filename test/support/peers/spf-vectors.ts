/**
 * spf-vectors - the sender, the published records, and the two verdicts; and the suite of the openspf project for RFC
 * 7208
 */
import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import type { SpfVerdict } from '../../../schemas/inbound.ts'
import type { Sender } from '../../../src/mail/authenticate/sender.ts'
import { findSuite } from '../machine/suites.ts'
import type { Records } from './records.ts'

/** Where the suite is; null without it. */
export const SPF_SUITE = findSuite('spf/rfc7208-tests.yml')

export interface SpfScenario {
  readonly description: string
  readonly tests: Record<string, { helo: string; host: string; mailfrom: string; result: string | string[] }>
  readonly zonedata: Record<string, ('TIMEOUT' | Record<string, unknown>)[]>
}

/** A zone of the suite. SPF records replace missing TXT records, as its header says. */
export function lookUpOf(zone: SpfScenario['zonedata']): (name: string, type: string) => Promise<unknown[]> {
  const names = new Map(Object.entries(zone).map(([name, records]) => [name.toLowerCase(), records]))
  const fault = (code: string): Error => Object.assign(new Error(code), { code })
  const find = (name: string, type: string): unknown[] => {
    const records = names.get(name.toLowerCase().replace(/\.$/, ''))
    if (records === undefined) throw fault('ENOTFOUND')
    const entries = records.flatMap((record) => (record === 'TIMEOUT' ? [] : Object.entries(record)))
    const hasTxt = entries.some(([own]) => own === 'TXT')
    const alias = entries.find(([own]) => own === 'CNAME')?.[1]
    if (alias !== undefined && type !== 'CNAME') return find(String(alias), type)
    const found = entries
      .filter(([own, value]) => (own === 'SPF' && !hasTxt ? 'TXT' : own) === type && value !== 'NONE')
      .map(([, value]) => value)
    if (found.length === 0) throw fault(records.includes('TIMEOUT') ? 'ETIMEOUT' : 'ENODATA')
    if (type === 'TXT') return found.map((value) => [value].flat())
    if (type !== 'MX') return found
    return found.map((value) => ({
      priority: (value as [number, string])[0],
      exchange: (value as [number, string])[1],
    }))
  }
  return async (name, type) => find(name, type)
}

/** The scenarios of the suite. */
export function readSpfSuite(path: string): SpfScenario[] {
  return parseAllDocuments(readFileSync(path, 'utf8'), { version: '1.1' }).map(
    (document) => document.toJS() as SpfScenario,
  )
}

export const SPF_RECORDS: Records = {
  'a.example': ['TXT v=spf1 ip4:192.0.2.1 -all'],
  'soft.example': ['TXT v=spf1 ~all'],
  'neutral.example': ['TXT v=spf1 ?all'],
  'bad.example': ['TXT v=spf1 ip4:nonsense -all'],
  'two.example': ['TXT v=spf1 -all', 'TXT v=spf1 +all'],
  'away.example': ['TIMEOUT'],
  'mx1.a.example': ['TXT v=spf1 a -all', 'A 192.0.2.1'],
  'loop.example': ['TXT v=spf1 include:loop.example -all'],
  'void.example': ['TXT v=spf1 a:x1.example a:x2.example a:x3.example -all'],
  'xn--mnchen-3ya.example': ['TXT v=spf1 ip4:192.0.2.1 -all'],
}
/** A sender that may. */
export const SPF_SENDER: Sender = {
  address: 'ada@a.example',
  ip: '192.0.2.1',
  helo: 'mx1.a.example',
  receiver: 'mx.b.example',
}

/** what, sender, spf, spfHelo */
export const SPF_CASES: [string, Partial<Sender>, SpfVerdict, SpfVerdict][] = [
  ['both hold', {}, 'pass', 'pass'],
  ['another address', { ip: '192.0.2.9' }, 'fail', 'fail'],
  ['an IPv4 address in IPv6', { ip: '::ffff:192.0.2.1' }, 'pass', 'pass'],
  ['an IPv6 address', { ip: '2001:db8::1' }, 'fail', 'fail'],
  ['<> has no domain', { address: '' }, 'none', 'pass'],
  ['an address literal', { helo: '[192.0.2.1]' }, 'pass', 'none'],
  ['an address', { helo: '192.0.2.1' }, 'pass', 'none'],
  ['a name without a dot', { helo: 'localhost' }, 'pass', 'none'],
  ['a name that is not there', { helo: 'other.example' }, 'pass', 'none'],
  ['nonsense', { helo: 'a b.example' }, 'pass', 'none'],
  ['softfail', { address: 'a@soft.example' }, 'softfail', 'pass'],
  ['neutral', { address: 'a@neutral.example' }, 'neutral', 'pass'],
  ['a record that cannot be read', { address: 'a@bad.example' }, 'permerror', 'pass'],
  ['two records', { address: 'a@two.example' }, 'permerror', 'pass'],
  ['a record that includes itself', { address: 'a@loop.example' }, 'permerror', 'pass'],
  ['three void look-ups', { address: 'a@void.example' }, 'permerror', 'pass'],
  ['the DNS cannot tell', { address: 'a@away.example', helo: 'away.example' }, 'temperror', 'temperror'],
  ['letters beyond ASCII', { address: 'ä@münchen.example' }, 'pass', 'pass'],
  ['a domain that cannot be', { address: `a@${'x'.repeat(70)}.example` }, 'none', 'pass'],
  ['a literal as the domain', { address: 'a@[192.0.2.1]' }, 'none', 'pass'],
]

/** A zone of the suite as records. SPF records replace missing TXT records. */
export function zoneOf(zone: SpfScenario['zonedata']): Records {
  return Object.fromEntries(
    Object.entries(zone).map(([name, entries]) => {
      const all = entries.flatMap((entry) => (entry === 'TIMEOUT' ? [] : Object.entries(entry)))
      const hasTxt = all.some(([type]) => type === 'TXT')
      const named = all.flatMap(([type, value]) => {
        const own = type === 'SPF' && !hasTxt ? 'TXT' : type
        return value === 'NONE' || own === 'SPF'
          ? []
          : [`${own} ${own === 'TXT' ? [value].flat().join('') : [value].flat().join(' ')}`]
      })
      return [name.toLowerCase(), entries.includes('TIMEOUT') ? [...named, 'TIMEOUT'] : named]
    }),
  )
}
