/**
 * facts - the results of a batch's reads, and the view that a turn has.
 *
 * A batch reads in rounds. Each round records the last confirmed sequence number when it was sent. Every later commit
 * is laid over its results, and the writes of earlier turns of the batch over all rounds.
 */
import type { Entry, Fact, Facts, FactValue } from '../behaviour.ts'
import { Fault } from '../fault.ts'
import { sortableEntryId } from '../id.ts'
import { type LaneHead, layHead } from './lane-heads.ts'
import type { Overlay } from './overlay.ts'

/** The overlay of a commit and the sequence number that it made. */
export interface Laid {
  readonly seq: number
  readonly overlay: Overlay
}

interface Round {
  readonly seq: number
  readonly fields: Map<string, ReadonlyMap<string, string | null>>
  /** Hashes that were read whole. */
  readonly wholes: Map<string, ReadonlyMap<string, string>>
  readonly others: Map<string, FactValue>
}

type RangeFact = Fact & { read: 'range' }
type SortedFact = Fact & { read: 'sorted' }

/** Facts asked for, without repeats; reads of fields of one key are one read. */
export class FactList {
  private readonly fields = new Map<string, { readonly names: Set<string>; wholeMax: number }>()
  private readonly others = new Map<string, Fact>()

  add(fact: Fact): void {
    if (fact.read !== 'fields') {
      this.others.set(formatFactName(fact), fact)
      return
    }
    let known = this.fields.get(fact.key)
    if (known === undefined) {
      known = { names: new Set(), wholeMax: 0 }
      this.fields.set(fact.key, known)
    }
    known.wholeMax = Math.max(known.wholeMax, fact.wholeMax ?? 0)
    for (const field of fact.fields) known.names.add(field)
  }

  get empty(): boolean {
    return this.fields.size === 0 && this.others.size === 0
  }

  list(): Fact[] {
    const facts: Fact[] = [...this.others.values()]
    for (const [key, { names, wholeMax }] of this.fields)
      facts.push({ read: 'fields', key, fields: [...names], ...(wholeMax > 0 && { wholeMax }) })
    return facts
  }
}

/** Facts that a batch has read so far. */
export class FactRounds {
  private readonly rounds: Round[] = []

  /** Takes the answers to `facts`, read when `seq` was the confirmed sequence number. */
  add(seq: number, facts: readonly Fact[], values: readonly FactValue[]): void {
    const round: Round = { seq, fields: new Map(), wholes: new Map(), others: new Map() }
    facts.forEach((fact, index) => {
      const value = values[index] ?? null
      if (fact.read !== 'fields') {
        round.others.set(formatFactName(fact), value)
        return
      }
      if (value instanceof Map) {
        round.wholes.set(fact.key, value)
        return
      }
      const answers = value as readonly (string | null)[]
      const fields = new Map<string, string | null>()
      fact.fields.forEach((field, place) => {
        fields.set(field, answers[place] ?? null)
      })
      round.fields.set(fact.key, fields)
    })
    this.rounds.unshift(round)
  }

  /** The lowest sequence number that a round was read at; Infinity without rounds. */
  get oldestSeq(): number {
    return this.rounds.reduce((oldest, round) => Math.min(oldest, round.seq), Number.POSITIVE_INFINITY)
  }

  /** The round that read a field, newest first. */
  fieldRound(key: string, field: string): { seq: number; value: string | null } | null {
    for (const round of this.rounds) {
      const whole = round.wholes.get(key)
      const value = whole === undefined ? round.fields.get(key)?.get(field) : (whole.get(field) ?? null)
      if (value !== undefined) return { seq: round.seq, value }
    }
    return null
  }

  other(fact: Fact): { seq: number; value: FactValue } | null {
    const name = formatFactName(fact)
    for (const round of this.rounds) {
      const value = round.others.get(name)
      if (value !== undefined) return { seq: round.seq, value }
    }
    return null
  }
}

/** Facts that need no read, in their state after commit `seq`. */
export interface KnownFields {
  readonly seq: number
  field(key: string, field: string): string | null | undefined
  head(key: string): LaneHead | undefined
}

/**
 * The facts of one turn: values read, or known without a read. `laid` are commits that a read may not have seen, oldest
 * first; `staged` the batch's own writes.
 */
export class FactView implements Facts {
  private readonly rounds: FactRounds
  private readonly laid: readonly Laid[]
  private readonly staged: Overlay
  private readonly known: KnownFields | null

  constructor(rounds: FactRounds, laid: readonly Laid[], staged: Overlay, known: KnownFields | null = null) {
    this.rounds = rounds
    this.laid = laid
    this.staged = staged
    this.known = known
  }

  has(fact: Fact): boolean {
    if (fact.read !== 'fields') return this.rounds.other(fact) !== null || this.knownHead(fact) !== undefined
    const { key, fields } = fact
    return fields.every(
      (field) => this.rounds.fieldRound(key, field) !== null || this.knownField(key, field) !== undefined,
    )
  }

  field(key: string, field: string): string | null {
    const read = this.rounds.fieldRound(key, field)
    const known = read === null ? this.knownField(key, field) : undefined
    if (read === null && known === undefined) throw new Fault('Field was not fetched', { key })
    const staged = this.staged.field(key, field)
    if (staged !== undefined) return staged
    const seq = read === null ? this.known!.seq : read.seq
    for (let i = this.laid.length - 1; i >= 0; i -= 1) {
      const { seq: laidSeq, overlay } = this.laid[i]!
      if (laidSeq <= seq) break
      const written = overlay.field(key, field)
      if (written !== undefined) return written
    }
    return read === null ? (known ?? null) : read.value
  }

  hash(key: string): ReadonlyMap<string, string> {
    return this.lay<ReadonlyMap<string, string>>({ read: 'hash', key }, (overlay, below) => overlay.hash(key, below))
  }

  range(fact: RangeFact): readonly Entry[] {
    const bounds = { from: lowEnd(fact.from), to: highEnd(fact.to), count: fact.count }
    return this.lay<readonly Entry[]>(fact, (overlay, below) => overlay.range(fact.key, bounds, below))
  }

  sorted(fact: SortedFact): readonly (readonly [string, number])[] {
    if (fact.isHead === true) return this.head(fact)
    return this.lay<readonly (readonly [string, number])[]>(fact, (overlay, below) =>
      overlay.sorted(fact.key, fact, below),
    )
  }

  score(key: string, member: string): number | null {
    return this.lay<number | null>({ read: 'score', key, member }, (overlay, below) =>
      overlay.score(key, member, below),
    )
  }

  value(key: string): string | null {
    return this.lay<string | null>({ read: 'value', key }, (overlay, below) => overlay.value(key, below))
  }

  /**
   * The head of a lane before this batch. Items that the batch itself places are not in it: when the batch is decided
   * again, because something had to be read, it has another name.
   */
  private head(fact: SortedFact): readonly (readonly [string, number])[] {
    const read = this.rounds.other(fact)
    const head = (read === null ? this.knownHead(fact) : undefined) ?? this.headRead(fact)
    const before = new Set(head.members.map(([item]) => item))
    return layHead(this.staged, fact.key, head).members.filter(([item]) => before.has(item))
  }

  private headRead(fact: SortedFact): LaneHead {
    const members = this.lay<LaneHead['members']>(fact, (overlay, below) =>
      overlay === this.staged ? below : overlay.sorted(fact.key, fact, below),
    )
    return { members, isWhole: members.length < fact.count }
  }

  private knownHead(fact: Fact): LaneHead | undefined {
    return fact.read === 'sorted' && fact.isHead === true ? this.known?.head(fact.key) : undefined
  }

  private knownField(key: string, field: string): string | null | undefined {
    return this.known === null ? undefined : this.known.field(key, field)
  }

  private lay<Value>(fact: Fact, over: (overlay: Overlay, below: Value) => Value): Value {
    const read = this.rounds.other(fact)
    if (read === null) throw new Fault('Fact was not fetched', { read: fact.read, key: fact.key })
    let value = read.value as Value
    for (const { seq, overlay } of this.laid) if (seq > read.seq) value = over(overlay, value)
    return over(this.staged, value)
  }
}

function formatFactName(fact: Fact): string {
  switch (fact.read) {
    case 'range':
      return `range ${fact.key} ${fact.from} ${fact.to} ${fact.count}`
    case 'sorted':
      return `sorted ${fact.key} ${fact.min} ${fact.max} ${fact.count}${fact.newest ? ' newest' : ''}`
    case 'score':
      return `score ${fact.key} ${fact.member}`
    default:
      return `${fact.read} ${fact.key}`
  }
}

function lowEnd(from: string): string {
  return from === '-' ? '' : sortableEntryId(from.includes('-') ? from : `${from}-0`)
}

function highEnd(to: string): string {
  return to === '+' ? '~' : sortableEntryId(to.includes('-') ? to : `${to}-18446744073709551615`)
}
