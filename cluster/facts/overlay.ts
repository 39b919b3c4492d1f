/**
 * overlay - the writes of a commit, laid over the answers of a read that may not have seen them.
 *
 * A read that was sent before a commit was confirmed may have run before it or after it. Writes are absolute, so laying
 * them over either answer gives the one after it. Reads of every kind are covered: hashes, streams, sorted sets, texts.
 */
import type { Entry, Op } from '../behaviour.ts'
import { sortableEntryId } from '../id.ts'
import type { Joined, Merged } from '../store.ts'
import { addWrite, FIRST_PLACE, type MergeSlot } from './merge.ts'

type ScoreWrite = { readonly flag: '' | 'XX' | 'NX' | 'LT' | 'GT'; readonly score: number } | null

interface KeyWrites {
  /** The key was unlinked before the writes below. */
  wiped: boolean
  fields: Map<string, string | null> | null
  added: Entry[] | null
  /** Entries below this sortable id are gone. */
  trimmedBelow: string
  members: Map<string, ScoreWrite[]> | null
  value: string | null | undefined
}

interface Slot extends MergeSlot {
  readonly ops: Op[]
  /** The result of the first `laid` writes; null while not computed. */
  writes: KeyWrites | null
  laid: number
}

/**
 * Writes in order, laid over reads and joined into the commands of a commit. Most keys are written and not read, so the
 * result of their writes is computed on a read.
 */
export class Overlay {
  private readonly slots = new Map<string, Slot>()
  private readonly keys: string[] = []
  private readonly commands: Joined[] = []
  private readonly nowMs: number

  /** `nowMs`: time of the commit that the writes go into. */
  constructor(nowMs = 0) {
    this.nowMs = nowMs
  }

  /** Takes one write in. XADD ids are final here. */
  note(op: Op): void {
    let slot = this.slots.get(op.key)
    if (slot === undefined) {
      slot = { place: this.keys.length + FIRST_PLACE, tail: null, expiry: '', ops: [], writes: null, laid: 0 }
      this.keys.push(op.key)
      this.slots.set(op.key, slot)
    }
    slot.ops.push(op)
    addWrite(this.commands, slot, op, this.nowMs)
  }

  /** All writes as the commit script is sent them. */
  get merged(): Merged {
    return { keys: this.keys, commands: this.commands }
  }

  /** A hash field: undefined when this commit does not touch it. */
  field(key: string, field: string): string | null | undefined {
    const writes = this.writesOf(key)
    if (writes === undefined) return undefined
    const written = writes.fields?.get(field)
    if (written !== undefined) return written
    return writes.wiped ? null : undefined
  }

  hash(key: string, below: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    const writes = this.writesOf(key)
    if (writes === undefined) return below
    const laid = new Map(writes.wiped ? [] : below)
    for (const [field, value] of writes.fields ?? []) {
      if (value === null) laid.delete(field)
      else laid.set(field, value)
    }
    return laid
  }

  /** Entries from `from` to `to` (sortable ids), at most `count`. */
  range(
    key: string,
    { from, to, count }: { from: string; to: string; count: number },
    below: readonly Entry[],
  ): readonly Entry[] {
    const writes = this.writesOf(key)
    if (writes === undefined) return below
    const known = writes.wiped ? [] : below.filter((entry) => sortableEntryId(entry.id) >= writes.trimmedBelow)
    if (!writes.wiped && below.length >= count) return known // The read ended before the stream did.
    const laid = [...known]
    const last = known.length === 0 ? '' : sortableEntryId(known[known.length - 1]!.id)
    for (const entry of writes.added ?? []) {
      const id = sortableEntryId(entry.id)
      if (laid.length < count && id > last && id >= from && id <= to && id >= writes.trimmedBelow) laid.push(entry)
    }
    return laid
  }

  last(key: string, below: readonly Entry[]): readonly Entry[] {
    const writes = this.writesOf(key)
    if (writes === undefined) return below
    const added = writes.added?.at(-1)
    const laid = added !== undefined ? [added] : writes.wiped ? [] : below
    return laid.filter(({ id }) => sortableEntryId(id) >= writes.trimmedBelow)
  }

  score(key: string, member: string, below: number | null): number | null {
    const writes = this.writesOf(key)
    if (writes === undefined) return below
    return layScores(writes.wiped ? null : below, writes.members?.get(member))
  }

  /**
   * Members with a score from `min` to `max`, at most `count`, the highest first with `newest`. A conditional write
   * (XX, LT) of a member whose score is outside these bounds cannot be applied, so a behaviour that writes with a flag
   * reads the whole set, or the member's score.
   */
  sorted(
    key: string,
    { min, max, count, newest }: { min: number; max: number; count: number; newest?: true },
    below: readonly (readonly [string, number])[],
  ): readonly (readonly [string, number])[] {
    const writes = this.writesOf(key)
    if (writes === undefined) return below
    const order = newest ? byNewest : byScore
    const scores = new Map(writes.wiped ? [] : below)
    const end = !writes.wiped && below.length >= count ? below[below.length - 1] : undefined
    for (const [member, list] of writes.members ?? []) {
      const score = layScores(scores.get(member) ?? null, list)
      const unseen = score !== null && end !== undefined && order([member, score], end) > 0
      if (score === null || score < min || score > max || unseen) scores.delete(member)
      else scores.set(member, score)
    }
    return [...scores].sort(order).slice(0, count)
  }

  value(key: string, below: string | null): string | null {
    const written = this.writesOf(key)?.value
    return written === undefined ? below : written
  }

  private writesOf(key: string): KeyWrites | undefined {
    const slot = this.slots.get(key)
    if (slot === undefined) return undefined
    let writes = slot.writes ?? emptyWrites()
    while (slot.laid < slot.ops.length) {
      writes = layWrite(writes, slot.ops[slot.laid]!)
      slot.laid += 1
    }
    slot.writes = writes
    return writes
  }
}

function emptyWrites(): KeyWrites {
  return { wiped: false, fields: null, added: null, trimmedBelow: '', members: null, value: undefined }
}

/** The result of the writes of a key with one more. */
function layWrite(writes: KeyWrites, op: Op): KeyWrites {
  switch (op.write) {
    case 'HSET':
      writes.fields ??= new Map()
      for (let i = 0; i < op.args.length; i += 2) writes.fields.set(text(op.args[i]), text(op.args[i + 1]))
      return writes
    case 'HDEL':
      writes.fields ??= new Map()
      for (const field of op.args) writes.fields.set(text(field), null)
      return writes
    case 'SET':
      writes.value = typeof op.args[0] === 'string' ? op.args[0] : null
      return writes
    case 'UNLINK':
      return { ...emptyWrites(), wiped: true, value: null }
    case 'XADD':
      writes.added ??= []
      writes.added.push({ id: text(op.args[0]), fields: op.args.slice(1).map(text) })
      return writes
    case 'XTRIM':
      writes.trimmedBelow = sortableEntryId(text(op.args[1]))
      return writes
    case 'ZADD':
      noteScores(writes, op)
      return writes
    case 'ZREM':
      writes.members ??= new Map()
      for (const member of op.args)
        writes.members.set(text(member), [...(writes.members.get(text(member)) ?? []), null])
      return writes
    case 'PEXPIREAT':
      return writes
  }
}

function noteScores(writes: KeyWrites, op: Op): void {
  writes.members ??= new Map()
  const first = text(op.args[0])
  const flag = first === 'XX' || first === 'NX' || first === 'LT' || first === 'GT' ? first : ''
  for (let i = flag === '' ? 0 : 1; i < op.args.length; i += 2) {
    const member = text(op.args[i + 1])
    const write: ScoreWrite = { flag, score: Number(op.args[i]) }
    const list = writes.members.get(member)
    if (list === undefined) writes.members.set(member, [write])
    else list.push(write)
  }
}

function layScores(below: number | null, list: readonly ScoreWrite[] | undefined): number | null {
  let score = below
  for (const write of list ?? []) {
    if (write === null) score = null
    else if (score === null) score = write.flag === 'XX' ? null : write.score
    else if (write.flag === 'NX') continue
    else if (write.flag === 'LT') score = Math.min(score, write.score)
    else if (write.flag === 'GT') score = Math.max(score, write.score)
    else score = write.score
  }
  return score
}

function byScore(a: readonly [string, number], b: readonly [string, number]): number {
  if (a[1] !== b[1]) return a[1] - b[1]
  return a[0] < b[0] ? -1 : 1
}

function byNewest(a: readonly [string, number], b: readonly [string, number]): number {
  return byScore(b, a)
}

function text(value: string | Uint8Array | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined ? '' : Buffer.from(value).toString('latin1')
}
