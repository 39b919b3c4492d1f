/** answer - the meaning of the answers of the commit script and of the read script. */

import type { Entry, FactValue, ViewFact } from '../behaviour.ts'
import type { Meta, Verdict } from '../store.ts'
import type { StoreAnswer } from './link.ts'

/** Errors that the store gives before a script has run, by their first word. */
const REFUSALS: ReadonlySet<string> = new Set([
  'OOM',
  'READONLY',
  'MISCONF',
  'LOADING',
  'NOREPLICAS',
  'CROSSSLOT',
  'BUSY',
  'MASTERDOWN',
  'NOAUTH',
  'NOPERM',
  'NOSCRIPT',
])

/**
 * Errors of a cluster while slots are moved, by their first word, after which the command did not run and can soon be
 * repeated.
 */
const AWAY: ReadonlySet<string> = new Set(['CLUSTERDOWN', 'MOVED', 'ASK', 'TRYAGAIN'])
/** Errors of a node that is about to be a primary, or no longer one, and that another node will replace. */
const AWAY_IN_CLUSTER: ReadonlySet<string> = new Set(['READONLY', 'LOADING', 'NOREPLICAS', 'MASTERDOWN'])

/** A command inside a script failed: earlier writes were applied. */
const INSIDE = /\bscript: /

/** A reply as the script's JSON shows it: nil is false, an empty list is an object. */
type Shown = string | false | readonly unknown[] | Readonly<Record<string, never>>

/**
 * The verdict in an answer; `isOfCluster` for a node of a cluster. Any unknown answer is `torn`, because the written
 * part is unknown.
 */
export function parseVerdict(answer: StoreAnswer, isOfCluster = false): Verdict {
  if (answer.kind === 'error') return verdictOfError(answer.message, isOfCluster)
  if (answer.kind !== 'reply') return { kind: answer.kind }
  const [name, fact] = (Array.isArray(answer.value) ? answer.value : [answer.value]) as [unknown, unknown]
  switch (name) {
    case 'OK':
      return { kind: 'ok' }
    case 'DUP':
      return { kind: 'dup' }
    case 'FENCED':
      return { kind: 'fenced' }
    case 'CONFLICT':
      return { kind: 'conflict', seq: Number(fact) }
    case 'LATE':
      return { kind: 'late', nowMs: Number(fact) }
    case 'CLOCK':
      return { kind: 'clock', nowMs: Number(fact) }
    case 'MISSING':
      return { kind: 'missing', key: String(fact) }
    case 'BADOP':
      return { kind: 'badop', reason: String(fact) }
    case 'TORN':
      return { kind: 'torn', reason: String(fact) }
    default:
      return { kind: 'torn', reason: 'The store gave an answer that is no verdict' }
  }
}

function verdictOfError(message: string, isOfCluster: boolean): Verdict {
  const word = message.split(' ', 1)[0] ?? ''
  const isAway = AWAY.has(word) || (isOfCluster && AWAY_IN_CLUSTER.has(word))
  if (isAway && !INSIDE.test(message)) return { kind: 'away', reason: word }
  if (REFUSALS.has(word) && !INSIDE.test(message)) return { kind: 'refused', reason: word }
  return { kind: 'torn', reason: `The store failed: ${word}` }
}

/** The values of `facts` from the script's answer; a fact has `pieces` commands, fact by fact, in order. */
export function factValues(facts: readonly ViewFact[], pieces: readonly number[], answer: string): FactValue[] {
  const replies = listOf<Shown>(JSON.parse(answer) as Shown)
  let next = 0
  return facts.map((fact, index) => {
    const count = pieces[index] ?? 0
    const reply =
      count === 1 ? replies[next] : replies.slice(next, next + count).flatMap((shown) => listOf<unknown>(shown))
    next += count
    return factValue(fact, reply ?? false)
  })
}

function factValue(fact: ViewFact, reply: Shown): FactValue {
  switch (fact.read) {
    case 'fields': {
      const values = listOf<string | false | Shown>(reply)
      const [first] = values
      // A whole hash is a nested list, or an object if it is empty.
      if (typeof first === 'object') return new Map(pairs(listOf<string>(first)))
      return values.map((value) => (value === false ? null : (value as string)))
    }
    case 'hash':
      return new Map(pairs(listOf<string>(reply)))
    case 'range':
    case 'last':
    case 'newest':
      return listOf<[string, string[]]>(reply).map(([id, fields]): Entry => ({ id, fields }))
    case 'sorted':
      return pairs(listOf<string>(reply)).map(([member, score]): [string, number] => [member, parseScore(score)])
    case 'score':
      return reply === false ? null : parseScore(reply as string)
    case 'value':
      return reply === false ? null : (reply as string)
  }
}

function listOf<Item>(shown: Shown): readonly Item[] {
  return Array.isArray(shown) ? shown : []
}

function pairs(flat: readonly string[]): [string, string][] {
  const list: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2) list.push([flat[i]!, flat[i + 1]!])
  return list
}

/** Redis writes infinities as `inf`, and zero now and then as `-0`. */
function parseScore(text: string): number {
  if (text === 'inf') return Number.POSITIVE_INFINITY
  return text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text) + 0
}

/** Names and values of an answer that lists them in turn. */
export function parseFlatPairs(flat: readonly string[]): Map<string, string> {
  const pairs = new Map<string, string>()
  for (let i = 0; i < flat.length; i += 2) pairs.set(flat[i]!, flat[i + 1]!)
  return pairs
}

/** The row of a shard, from META_FIELDS in their order. */
export function parseMeta(fields: readonly (string | null)[]): Meta {
  const [owner, token, seq, last, lid, cursor, outcomesCursor, tries, freed] = fields.map((field) => field ?? '')
  return {
    owner: owner ?? '',
    token: token ?? '',
    seq: Number(seq),
    last: last ?? '',
    lid: lid ?? '',
    cursor: cursor ?? '',
    outcomesCursor: outcomesCursor ?? '',
    tries: Number(tries),
    freedAtMs: Number(freed),
  }
}
