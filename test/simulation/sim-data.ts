/**
 * sim-data - keys and values as Redis holds them: types, expiry, order, effects of writes. In memory, without a clock.
 */
import type { Entry, Op } from '../../cluster/behaviour.ts'
import { sortableEntryId } from '../../cluster/id.ts'

export type Value =
  | { kind: 'hash'; fields: Map<string, string> }
  | { kind: 'stream'; entries: Entry[]; last: string }
  | { kind: 'sorted'; scores: Map<string, number> }
  | { kind: 'text'; text: string }

export type Kind = Value['kind']

/** A key as a checker sees it: fields sorted by name, members by score. */
export interface Dumped {
  readonly kind: Kind
  readonly value: unknown
  /** Last id that the stream has given out; '' for other kinds. */
  readonly last: string
  /** 0: never. */
  readonly expiresAtMs: number
}

interface Kept {
  value: Value
  expiresAtMs: number
}

export class SimData {
  private keys = new Map<string, Kept>()

  /** The value of a key at `nowMs`, or undefined if there is none or it has expired. */
  get(key: string, nowMs: number): Value | undefined {
    const kept = this.keys.get(key)
    if (kept === undefined) return undefined
    if (kept.expiresAtMs === 0 || kept.expiresAtMs > nowMs) return kept.value
    this.keys.delete(key)
    return undefined
  }

  /** The value of a key, created if there is none. The caller has checked the kind. */
  make<K extends Kind>(key: string, kind: K, nowMs: number): Extract<Value, { kind: K }> {
    let value = this.get(key, nowMs)
    if (value === undefined) {
      value = emptyValue(kind)
      this.keys.set(key, { value, expiresAtMs: 0 })
    }
    if (value.kind !== kind) throw new Error(`Key is of another type: ${value.kind}, not ${kind}`)
    return value as Extract<Value, { kind: K }>
  }

  setText(key: string, text: string, expiresAtMs: number): void {
    this.keys.set(key, { value: { kind: 'text', text }, expiresAtMs })
  }

  expireAt(key: string, expiresAtMs: number): void {
    const kept = this.keys.get(key)
    if (kept !== undefined) kept.expiresAtMs = expiresAtMs
  }

  remove(key: string): void {
    this.keys.delete(key)
  }

  /** Includes keys that may have expired. */
  names(): string[] {
    return [...this.keys.keys()]
  }

  /** A deep copy of the named keys, or of all. `undefined` stands for a key that does not exist. */
  copy(names: Iterable<string> = this.keys.keys()): Map<string, Kept | undefined> {
    const copies = new Map<string, Kept | undefined>()
    for (const name of names) copies.set(name, copyOf(this.keys.get(name)))
    return copies
  }

  /** Restores copies: only the named keys, or, with `whole`, the whole store. */
  putBack(copies: ReadonlyMap<string, Kept | undefined>, whole: boolean): void {
    if (whole) this.keys = new Map()
    for (const [name, kept] of copies) {
      const copied = copyOf(kept)
      if (copied === undefined) this.keys.delete(name)
      else this.keys.set(name, copied)
    }
  }

  /** Every key that exists at `nowMs`, in order of its name. */
  dump(nowMs: number): Map<string, Dumped> {
    const dumped = new Map<string, Dumped>()
    for (const name of [...this.keys.keys()].sort()) {
      const value = this.get(name, nowMs)
      if (value === undefined) continue
      const last = value.kind === 'stream' ? value.last : ''
      dumped.set(name, {
        kind: value.kind,
        value: plain(value),
        last,
        expiresAtMs: this.keys.get(name)?.expiresAtMs ?? 0,
      })
    }
    return dumped
  }
}

/** Bytes as text if they are valid UTF-8; otherwise as a text that no other value has. */
export function textOf(arg: string | Uint8Array): string {
  if (typeof arg === 'string') return /[\ud800-\udfff]/.test(arg) ? Buffer.from(arg).toString() : arg
  const bytes = Buffer.from(arg)
  const text = bytes.toString()
  return Buffer.from(text).equals(bytes) ? text : `\u0000bytes ${bytes.toString('latin1')}`
}

/** The bytes that `textOf` made a text of. */
export function bytesOf(text: string): Buffer {
  const mark = '\u0000bytes '
  return text.startsWith(mark) ? Buffer.from(text.slice(mark.length), 'latin1') : Buffer.from(text)
}

/** A text as a reader of texts sees it, in which different invalid bytes look the same. */
export function readable(text: string): string {
  const mark = '\u0000bytes '
  return text.startsWith(mark) ? Buffer.from(text.slice(mark.length), 'latin1').toString() : text
}

/** The order of members with the same score: by their bytes. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** Members by score, then bytes. */
export function sortScores(scores: Iterable<[string, number]>): [string, number][] {
  return [...scores].sort((a, b) => a[1] - b[1] || compareText(a[0], b[0]))
}

/** Does one op that passed every check. */
export function applyOp(data: SimData, { key, write, args: raw }: Op, nowMs: number): void {
  const args = raw.map(textOf)
  const first = args[0] ?? ''
  switch (write) {
    case 'HSET': {
      const { fields } = data.make(key, 'hash', nowMs)
      for (let i = 0; i < args.length; i += 2) fields.set(args[i]!, args[i + 1]!)
      return
    }
    case 'HDEL':
      removeFrom(data, { key, kind: 'hash', args, nowMs })
      return
    case 'ZREM':
      removeFrom(data, { key, kind: 'sorted', args, nowMs })
      return
    case 'ZADD':
      addScores(data, { key, args, nowMs })
      return
    case 'SET':
      data.setText(key, first, Number(args[2]))
      return
    case 'UNLINK':
      data.remove(key)
      return
    case 'PEXPIREAT':
      if (data.get(key, nowMs) !== undefined) data.expireAt(key, Number(first))
      return
    case 'XADD': {
      const stream = data.make(key, 'stream', nowMs)
      stream.entries.push({ id: first, fields: args.slice(1) })
      stream.last = first
      return
    }
    case 'XTRIM': {
      const stream = data.get(key, nowMs)
      if (stream?.kind !== 'stream') return
      const least = sortableEntryId(args[1]!)
      stream.entries = stream.entries.filter(({ id }) => sortableEntryId(id) >= least)
    }
  }
}

function removeFrom(
  data: SimData,
  { key, kind, args, nowMs }: { key: string; kind: 'hash' | 'sorted'; args: readonly string[]; nowMs: number },
): void {
  if (data.get(key, nowMs) === undefined) return
  const value = data.make(key, kind, nowMs)
  const map: Map<string, unknown> = value.kind === 'hash' ? value.fields : value.scores
  for (const name of args) map.delete(name)
  if (map.size === 0) data.remove(key)
}

function addScores(data: SimData, { key, args, nowMs }: { key: string; args: readonly string[]; nowMs: number }): void {
  const flag = ['XX', 'NX', 'LT', 'GT'].includes(args[0] ?? '') ? args[0] : ''
  if (flag === 'XX' && data.get(key, nowMs) === undefined) return
  const { scores } = data.make(key, 'sorted', nowMs)
  for (let i = flag === '' ? 0 : 1; i < args.length; i += 2) {
    const score = Number(args[i]) + 0
    const member = args[i + 1]!
    const before = scores.get(member)
    const kept =
      before === undefined
        ? flag === 'XX'
        : flag === 'NX' || (flag === 'LT' && score >= before) || (flag === 'GT' && score <= before)
    if (!kept) scores.set(member, score)
  }
}

function emptyValue(kind: Kind): Value {
  switch (kind) {
    case 'hash':
      return { kind, fields: new Map() }
    case 'stream':
      return { kind, entries: [], last: '0-0' }
    case 'sorted':
      return { kind, scores: new Map() }
    case 'text':
      return { kind, text: '' }
  }
}

function copyOf(kept: Kept | undefined): Kept | undefined {
  if (kept === undefined) return undefined
  const { value, expiresAtMs } = kept
  switch (value.kind) {
    case 'hash':
      return { value: { kind: 'hash', fields: new Map(value.fields) }, expiresAtMs }
    case 'stream':
      return { value: { ...value, entries: [...value.entries] }, expiresAtMs }
    case 'sorted':
      return { value: { kind: 'sorted', scores: new Map(value.scores) }, expiresAtMs }
    case 'text':
      return { value, expiresAtMs }
  }
}

function plain(value: Value): unknown {
  switch (value.kind) {
    case 'hash':
      return [...value.fields].sort((a, b) => compareText(a[0], b[0]))
    case 'stream':
      return value.entries.map(({ id, fields }) => [id, fields])
    case 'sorted':
      return sortScores(value.scores)
    case 'text':
      return value.text
  }
}
