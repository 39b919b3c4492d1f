/**
 * reader - reads the log as if every segment were in Redis: rows of sealed segments come from their objects.
 *
 * A view asks for rows by the keys that hold them while a segment is in Redis. Rows that are missing there are read
 * from the object that the row of their segment names. Rows in Redis win, because those of a recalled message are
 * newer.
 *
 * Guarantees: the rows in Redis are read before the row of the segment. The commit that seals writes that row and
 * removes the others at once, so a segment that is not sealed then was read completely. If an object is gone, a newer
 * one has taken its place: everything is read again.
 *
 * Keys: `log head status by-person by-tag:<server>:<segment>`, `sealed:<server>`, `sealed-persons:<server>:<segment>`
 */

import type { Entry, EntryHint, FactOf, FactValue, ViewFact } from '../../../cluster/behaviour.ts'
import { entryIdOf, idOfShort, sortableEntryId } from '../../../cluster/id.ts'
import { damagedValue } from '../../../cluster/sum.ts'
import { sealedKey, sealedPersonsKey } from '../../state/keys.ts'
import { LOG_FIELD, unpackLogEntry } from '../../state/message/log-entry.ts'
import { FILTER_BLOCK_CHARS, mayHold, placeInFilter } from '../../state/message/person-filter.ts'
import { PERSON_FIELD, TAG_FIELD } from '../../state/message/posting.ts'
import { type SealedRow, unpackSealed } from '../../state/message/sealed.ts'
import type { Reader } from '../../views/key.ts'
import type { ReadKeys } from '../../views/read-keys.ts'
import { blockAt, type PlacedMessage, type SealedSegment, type SealedSegments, SegmentFailure } from './segment.ts'
import { type BlockPlace, INDEXES } from './tail.ts'

/** Keys of rows, with their kind, server and segment. */
const ROW_KEY = /^\{s\d{3}\}:(log|head|status|by-person|by-tag):([^:]+):([^:]+)(?::\d+)?$/
/** How often a segment is read again if its object was replaced in the meantime. */
const TRIES = 3
/** The highest low part of an entry id. */
const LOW_MAX = '18446744073709551615'
/** Segments whose objects are read at once. */
const AT_ONCE = 8

type RowKind = 'log' | 'head' | 'status' | 'by-person' | 'by-tag'
type EntriesFact = FactOf<'range'> | FactOf<'newest'>

export interface SealedReaderDeps {
  readonly read: Reader
  readonly readKeys: ReadKeys
  readonly segments: SealedSegments
  /** A read of sealed segments came to its end. */
  readonly done: (result: 'ok' | SegmentFailure['kind']) => void
  readonly warn: (facts: object, text: string) => void
}

/** A fact that Redis did not answer whole, and the segment that may. */
interface Gap {
  readonly at: number
  readonly fact: ViewFact
  readonly kind: RowKind
  readonly serverId: string
  readonly segment: string
}

/**
 * Makes the reader. Null means a store or a content store that did not answer. Throws DamagedValue if the object that a
 * row names is missing, broken or written off.
 */
export function makeSealedReader(deps: SealedReaderDeps): Reader {
  return ((shard, facts) => readAll(deps, shard, facts)) as Reader
}

async function readAll(
  deps: SealedReaderDeps,
  shard: number,
  facts: readonly ViewFact[],
): Promise<readonly FactValue[] | null> {
  for (let tries = 1; ; tries += 1) {
    const values = (await deps.read(shard, facts)) as readonly FactValue[] | null
    const gaps = values === null ? [] : findGaps(facts, values)
    if (values === null || gaps.length === 0) return values
    try {
      return await fill(deps, shard, { values, gaps })
    } catch (error) {
      if (!(error instanceof SegmentFailure)) throw error
      if (error.kind !== 'gone' || tries === TRIES) return withoutAnswer(deps, error)
    }
  }
}

/** Null if a later read may be answered. Throws DamagedValue if the object is missing or broken. */
function withoutAnswer({ done, warn }: SealedReaderDeps, { kind, message }: SegmentFailure): null {
  done(kind)
  warn({ reason: message }, 'A sealed segment was not read')
  if (kind === 'away') return null
  throw damagedValue('sealed')
}

/** Facts about rows that Redis did not answer, or not whole. */
function findGaps(facts: readonly ViewFact[], values: readonly FactValue[]): Gap[] {
  return facts.flatMap((fact, at): Gap[] => {
    if (fact.read !== 'fields' && fact.read !== 'range' && fact.read !== 'newest') return []
    const value = values[at] as readonly unknown[]
    const isWhole = fact.read === 'fields' ? !value.includes(null) : value.length > 0
    const [, kind, serverId, segment] = isWhole ? [] : (ROW_KEY.exec(fact.key) ?? [])
    if (kind === undefined || serverId === undefined || segment === undefined) return []
    return [{ at, fact, kind: kind as RowKind, serverId, segment }]
  })
}

async function fill(
  deps: SealedReaderDeps,
  shard: number,
  { values, gaps }: { values: readonly FactValue[]; gaps: readonly Gap[] },
): Promise<readonly FactValue[] | null> {
  const segments = new Map(gaps.map((gap) => [`${gap.serverId} ${gap.segment}`, gap]))
  const rows = await deps.read(
    shard,
    [...segments.values()].map(({ serverId, segment }): FactOf<'fields'> => {
      return { read: 'fields', key: sealedKey(shard, serverId), fields: [segment] }
    }),
  )
  if (rows === null) return null
  const filled = [...values]
  const sealed = [...segments.keys()].flatMap((name, at) => {
    const row = unpackSealed(rows[at]?.[0] ?? null)
    return row === null || row.generation === 0 ? [] : [{ name, row }]
  })
  if (sealed.length === 0) return values
  for (let start = 0; start < sealed.length; start += AT_ONCE) {
    const some = sealed.slice(start, start + AT_ONCE)
    await Promise.all(
      some.map(async ({ name, row }) => {
        const own = gaps.filter((gap) => `${gap.serverId} ${gap.segment}` === name)
        const source = new SegmentSource(deps, { shard, row, segment: deps.segments.open(shard, row) })
        for (const gap of own) filled[gap.at] = await source.answer(gap, filled[gap.at] as FactValue)
      }),
    )
  }
  deps.done('ok')
  return filled
}

/** Answers facts from one sealed segment; blocks are opened once. */
class SegmentSource {
  readonly #deps: SealedReaderDeps
  readonly #shard: number
  readonly #row: SealedRow
  readonly #segment: SealedSegment
  readonly #blocks = new Map<number, PlacedMessage[]>()

  constructor(deps: SealedReaderDeps, of: { shard: number; row: SealedRow; segment: SealedSegment }) {
    this.#deps = deps
    this.#shard = of.shard
    this.#row = of.row
    this.#segment = of.segment
  }

  async answer(gap: Gap, seen: FactValue): Promise<FactValue> {
    const { fact, kind } = gap
    if (fact.read === 'fields') return this.#fields(kind, fact.fields, seen as readonly (string | null)[])
    const entries = fact as EntriesFact
    const hint = entries.read === 'newest' ? (entries.hint ?? {}) : {}
    const rows = (await this.#mayHold(gap, hint)) ? await this.#between(entries, hint) : []
    return rows.map((row): Entry => ({ id: row.entryId, fields: fieldsOf(kind, row) }))
  }

  async #fields(
    kind: RowKind,
    fields: readonly string[],
    seen: readonly (string | null)[],
  ): Promise<readonly (string | null)[]> {
    const values: (string | null)[] = [...seen]
    for (const [at, field] of fields.entries()) {
      if (values[at] !== null) continue
      const [short = '', recipient = '0'] = field.split('.')
      const row = await this.#message(entryIdOf(idOfShort(short)))
      const text = kind === 'head' ? row?.head : row?.statuses[Number(recipient)]
      values[at] = text ?? null
    }
    return values
  }

  async #message(entryId: string): Promise<PlacedMessage | undefined> {
    const { blocks } = await this.#segment.tail()
    const number = blockAt(blocks, entryId)
    return number < 0 ? undefined : (await this.#block(number)).find((row) => row.entryId === entryId)
  }

  async #block(number: number): Promise<PlacedMessage[]> {
    const known = this.#blocks.get(number)
    if (known !== undefined) return known
    const opened = await this.#segment.block(number)
    this.#blocks.set(number, opened)
    return opened
  }

  /** Whether the segment may have the wanted person, according to the filter. */
  async #mayHold({ serverId, segment }: Gap, { recipient, sender }: EntryHint): Promise<boolean> {
    const { filterBlocks } = this.#row
    if (filterBlocks === 0) return true
    for (const number of [recipient, sender]) {
      if (number === undefined) continue
      const start = placeInFilter(number, filterBlocks).block * FILTER_BLOCK_CHARS
      const key = sealedPersonsKey(this.#shard, serverId, segment)
      const args = [start, start + FILTER_BLOCK_CHARS - 1]
      const seen = await this.#deps.readKeys('getrange', [{ shard: this.#shard, key, args }])
      if (seen === null) throw new SegmentFailure('away', 'The store did not answer')
      if (!mayHold(seen[0] ?? '', number, filterBlocks)) return false
    }
    return true
  }

  /** Messages within the bounds of a fact, in its order, as many as it asks for. */
  async #between({ read, from, to, count }: EntriesFact, hint: EntryHint): Promise<PlacedMessage[]> {
    const { blocks } = await this.#segment.tail()
    const places = await this.#places(hint)
    const bounds = parseBounds(from, to)
    const numbers = [...blocks.keys()].filter((number) => mayReach(blocks, number, bounds))
    const reached = places === null ? numbers : withPlaces(blocks, numbers, places)
    const known = new Set(places)
    const found: PlacedMessage[] = []
    for (const number of read === 'newest' ? reached.reverse() : reached) {
      const opened = await this.#block(number)
      const rows = opened.filter((row) => isWithin(row, bounds) && (places === null || known.has(row.place)))
      found.push(...(read === 'newest' ? rows.reverse() : rows))
      if (found.length >= count) break
    }
    return found.slice(0, count)
  }

  /** Places in every index that the hint names; null if it names none. */
  async #places(hint: EntryHint): Promise<number[] | null> {
    let places: number[] | null = null
    for (const name of INDEXES) {
      const number = hint[name]
      if (number === undefined) continue
      const own = await this.#segment.places(name, number)
      const known: ReadonlySet<number> | null = places === null ? null : new Set<number>(places)
      places = known === null ? own : own.filter((place) => known.has(place))
    }
    return places
  }
}

function fieldsOf(kind: RowKind, { log }: PlacedMessage): string[] {
  if (kind === 'log') return [LOG_FIELD, log]
  const { recipients, tagHash } = unpackLogEntry(log)
  return kind === 'by-tag' ? [TAG_FIELD, tagHash ?? ''] : [PERSON_FIELD, recipients.join(' ')]
}

/** Bounds of a fact as texts that compare like entry ids. */
interface Bounds {
  readonly low: string
  readonly high: string
  readonly isOpenBelow: boolean
  readonly isOpenAbove: boolean
}

/** Reads bounds as XRANGE takes them: `-`, `+`, an id, a time alone, `(` before what is left out. */
function parseBounds(from: string, to: string): Bounds {
  const [isOpenBelow, isOpenAbove] = [from.startsWith('('), to.startsWith('(')]
  const start = isOpenBelow ? from.slice(1) : from
  const end = isOpenAbove ? to.slice(1) : to
  return {
    low: start === '-' ? '' : sortableEntryId(start.includes('-') ? start : `${start}-0`),
    high: end === '+' ? '~' : sortableEntryId(end.includes('-') ? end : `${end}-${LOW_MAX}`),
    isOpenBelow,
    isOpenAbove,
  }
}

function isWithin({ entryId }: PlacedMessage, { low, high, isOpenBelow, isOpenAbove }: Bounds): boolean {
  const id = sortableEntryId(entryId)
  return (isOpenBelow ? id > low : id >= low) && (isOpenAbove ? id < high : id <= high)
}

/** Whether a block may have messages within bounds; it ends at the start of the next one. */
function mayReach(blocks: readonly BlockPlace[], number: number, { low, high }: Bounds): boolean {
  const first = blocks[number]?.[0]
  const next = blocks[number + 1]?.[0]
  if (first === undefined || sortableEntryId(first) > high) return false
  return next === undefined || sortableEntryId(next) > low
}

/** The blocks among some that have a message at one of these places. */
function withPlaces(blocks: readonly BlockPlace[], numbers: readonly number[], places: readonly number[]): number[] {
  const ends: number[] = []
  let end = 0
  for (const [, rows] of blocks) {
    end += rows
    ends.push(end)
  }
  const held = new Set<number>()
  let number = 0
  for (const place of places) {
    while (number < ends.length && place >= (ends[number] as number)) number += 1
    held.add(number)
  }
  return numbers.filter((one) => held.has(one))
}
