/**
 * blocklist - asks DNS blocklists about addresses (RFC 5782)
 *
 * A list counts only if it proves to work: it has to list 127.0.0.2 and not 127.0.0.1, and in IPv6 ::ffff:7f00:2. So a
 * list that is shut down, answers everything, or refuses the resolver of this machine is `unusable`, and never reads as
 * a clean address or a listed one.
 *
 * Spec blocklist.answers
 */

import ipaddr from 'ipaddr.js'
import type { Resolver } from './resolve.ts'

const LISTED_V4 = '127.0.0.2'
const CLEAN_V4 = '127.0.0.1'
const LISTED_V6 = '::ffff:7f00:2'
const REASON_CHARS_MAX = 200
const CONTROLS = /[\p{Cc}\p{Cf}]/gu

/** An address on a list. */
export interface Listing {
  readonly address: string
  /** Answers of the list, such as 127.0.0.3. */
  readonly codes: readonly string[]
  /** Text of the list, '' for none. */
  readonly reason: string
}

/** The result of a list. */
export interface BlocklistResult {
  readonly list: string
  /** Why its answers cannot be used; null if they can. */
  readonly unusable: 'no_answer' | 'refused' | 'no_test_entry' | 'lists_everything' | 'bad_answer' | null
  readonly listings: readonly Listing[]
}

/** Asks lists about addresses. Never rejects. */
export function askBlocklists(
  resolver: Pick<Resolver, 'look'>,
  { lists, addresses }: { readonly lists: readonly string[]; readonly addresses: readonly string[] },
): Promise<BlocklistResult[]> {
  return Promise.all(lists.map((list) => askList(resolver, list, addresses)))
}

async function askList(
  resolver: Pick<Resolver, 'look'>,
  list: string,
  addresses: readonly string[],
): Promise<BlocklistResult> {
  const ask = (address: string) => askOne(resolver, list, address)
  const [listed, clean] = await Promise.all([ask(LISTED_V4), ask(CLEAN_V4)])
  const unusable = whyUnusable(listed, clean)
  if (unusable !== null) return { list, unusable, listings: [] }
  // Most lists have IPv4 addresses only.
  const hasV6 = addresses.some((one) => one.includes(':')) && Array.isArray(await ask(LISTED_V6))
  const asked = addresses.filter((one) => hasV6 || !one.includes(':'))
  const answers = await Promise.all(asked.map(async (address) => ({ address, answer: await ask(address) })))
  const failure = answers.map(({ answer }) => answer).find((answer) => typeof answer === 'string' && answer !== 'clean')
  const found = answers.flatMap(({ address, answer }) => (Array.isArray(answer) ? [{ address, codes: answer }] : []))
  // A lost answer about one address leaves the listing of another valid.
  const isProven = failure === undefined || (failure === 'no_answer' && found.length > 0)
  if (!isProven) return { list, unusable: failure as Failure, listings: [] }
  const listings = found.map(async (one) => ({ ...one, reason: await reasonOf(resolver, list, one.address) }))
  return { list, unusable: null, listings: await Promise.all(listings) }
}

type Failure = 'no_answer' | 'refused' | 'bad_answer'
type Answer = readonly string[] | 'clean' | Failure

function whyUnusable(listed: Answer, clean: Answer): BlocklistResult['unusable'] {
  if (listed === 'clean') return 'no_test_entry'
  if (typeof listed === 'string') return listed
  if (clean === 'clean') return null
  return typeof clean === 'string' ? clean : 'lists_everything'
}

/** The codes of an address on a list; `clean`: it is not listed. */
async function askOne(resolver: Pick<Resolver, 'look'>, list: string, address: string): Promise<Answer> {
  const answer = await resolver.look('A', blocklistName(address, list), { fresh: true })
  if (answer.status === 'nxdomain' || answer.status === 'nodata') return 'clean'
  if (answer.status === 'failure') return 'no_answer'
  const codes = answer.records
  // By convention these codes mean an error: a public resolver, too many questions, a typing error.
  if (codes.some((code) => code.startsWith('127.255.255.'))) return 'refused'
  return codes.length > 0 && codes.every((code) => code.startsWith('127.')) ? codes : 'bad_answer'
}

async function reasonOf(resolver: Pick<Resolver, 'look'>, list: string, address: string): Promise<string> {
  const answer = await resolver.look('TXT', blocklistName(address, list), { fresh: true })
  const text = answer.status === 'ok' ? (answer.records[0]?.join('') ?? '') : ''
  return text.replace(CONTROLS, ' ').slice(0, REASON_CHARS_MAX)
}

/** The name that a list has for an address (RFC 5782 2.1, 2.4). Takes a valid IP address. */
export function blocklistName(address: string, list: string): string {
  const parsed = ipaddr.parse(address)
  const labels =
    parsed instanceof ipaddr.IPv6
      ? [...Buffer.from(parsed.toByteArray()).toString('hex')]
      : parsed.toByteArray().map(String)
  return `${labels.reverse().join('.')}.${list}`
}
