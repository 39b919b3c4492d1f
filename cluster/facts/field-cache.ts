/**
 * field-cache - fields of hashes that this owner has read or written, so that it need not read them again.
 *
 * The owner of a shard is its only writer, and every commit is fenced by its token, so a value read once, with the
 * writes of every commit confirmed since, is current. A process that lost the shard can decide on it, but not commit.
 * It is bounded for the whole process, except for values that batches in progress use: a value known when a batch
 * begins is kept until it is decided. The oldest values are evicted first, and those of an idle shard after ten
 * minutes.
 *
 * Facts of a finished item are dropped when the next batch begins. Otherwise they would live long, and every major
 * garbage collection would visit them.
 *
 * A hash that was read whole (`wholeMax`) is known in every field, those that are not there among them.
 *
 * A read is taken in with the writes of every commit laid over it that was confirmed since it was sent: it may not have
 * seen them.
 */
import type { Fact, FactValue, HashFields, Op } from '../behaviour.ts'
import type { Overlay } from './overlay.ts'

const IDLE_MS = 600_000

type FieldsFact = Fact & { readonly read: 'fields' }

/** Fields that all shards of a process may hold together. */
export interface FieldBudget {
  left: number
}

/** Known fields of a hash; with `isWhole`, a missing field does not exist. */
interface Held {
  readonly fields: Map<string, string | null>
  isWhole: boolean
}

export class FieldCache {
  private readonly keys = new Map<string, Held>()
  /** The last lookup. A turn asks for several fields of one hash in a row. */
  private last: { readonly key: string; readonly held: Held } | null = null
  private readonly budget: FieldBudget
  private past: HashFields[] = []
  private size = 0
  private usedAtMs = 0

  constructor(budget: FieldBudget) {
    this.budget = budget
  }

  /** A batch begins: values over the budget of the process are evicted now, because nothing uses them. */
  begin(nowMs: number): void {
    this.usedAtMs = nowMs
    this.dropPast()
    if (this.budget.left < 0) this.trim()
  }

  /** Whether every field of a fact is known. */
  has({ key, fields }: FieldsFact): boolean {
    const held = this.find(key)
    if (held === undefined) return false
    if (held.isWhole) return true
    for (const field of fields) if (!held.fields.has(field)) return false
    return true
  }

  /** The value of a field after every confirmed commit; undefined if unknown. */
  field(key: string, field: string): string | null | undefined {
    const held = this.find(key)
    if (held === undefined) return undefined
    const value = held.fields.get(field)
    return value === undefined && held.isWhole ? null : value
  }

  /** Stores the results of a read; `since` are the writes of the commits confirmed since it was sent. */
  take(facts: readonly Fact[], values: readonly FactValue[], since: Overlay | null = null): void {
    facts.forEach((fact, index) => {
      if (fact.read !== 'fields') return
      const value = values[index]
      if (value instanceof Map) {
        this.hold(fact.key, since === null ? value : since.hash(fact.key, value))
        return
      }
      const answers = value as readonly (string | null)[]
      fact.fields.forEach((field, place) => {
        const written = since?.field(fact.key, field)
        this.put(fact.key, field, written === undefined ? (answers[place] ?? null) : written)
      })
    })
  }

  /**
   * A commit with these writes was confirmed; `absent` is the fields known to be missing before them. In a hash that
   * is not known whole, a field that was never read is not cached, because most written fields are never read.
   */
  note(ops: readonly Op[], absent: readonly HashFields[] = []): void {
    for (const { key, fields } of absent) for (const field of fields) this.put(key, field, null)
    for (const { key, write, args } of ops) {
      if (write !== 'HSET' && write !== 'HDEL' && write !== 'UNLINK') continue
      const held = this.keys.get(key)
      if (held !== undefined) this.apply(held, write, args)
    }
  }

  private apply(held: Held, write: 'HSET' | 'HDEL' | 'UNLINK', args: Op['args']): void {
    if (write === 'HSET') for (let i = 0; i < args.length; i += 2) this.write(held, args[i], textOf(args[i + 1]))
    else if (write === 'HDEL') for (const field of args) this.write(held, field, null)
    else for (const field of held.fields.keys()) held.fields.set(field, null)
  }

  /**
   * Fields that are unlikely to be requested again. The current batch may use them, so they are dropped when the next
   * one begins.
   */
  forget(fields: readonly HashFields[]): void {
    for (const one of fields) this.past.push(one)
  }

  /** Forgets everything when nothing was asked for a while. */
  sweep(nowMs: number): void {
    if (nowMs - this.usedAtMs > IDLE_MS) this.clear()
  }

  clear(): void {
    this.keys.clear()
    this.last = null
    this.past = []
    this.budget.left += this.size
    this.size = 0
  }

  private find(key: string): Held | undefined {
    if (this.last?.key === key) return this.last.held
    const held = this.keys.get(key)
    if (held !== undefined) this.last = { key, held }
    return held
  }

  private put(key: string, field: string, value: string | null): void {
    let held = this.keys.get(key)
    if (held === undefined) {
      held = { fields: new Map(), isWhole: false }
      this.keys.set(key, held)
    }
    this.set(held, field, value)
  }

  /** All of a hash. */
  private hold(key: string, all: ReadonlyMap<string, string>): void {
    const held: Held = { fields: new Map(), isWhole: true }
    const before = this.keys.get(key)?.fields.size ?? 0
    this.size -= before
    this.budget.left += before
    this.keys.set(key, held)
    this.last = null
    // An empty one counts too, so that the cache is bounded.
    this.set(held, '', null)
    for (const [field, value] of all) this.set(held, field, value)
  }

  /** Changes a cached field, or any field of a hash that is known whole. Bytes are read as the store answers them. */
  private write(held: Held, field: string | Uint8Array | undefined, value: string | null): void {
    const name = textOf(field)
    if (held.isWhole || held.fields.has(name)) this.set(held, name, value)
  }

  private set({ fields }: Held, field: string, value: string | null): void {
    const before = fields.size
    fields.set(field, value)
    const more = fields.size - before
    this.size += more
    this.budget.left -= more
  }

  private dropPast(): void {
    if (this.past.length === 0) return
    let gone = 0
    for (const { key, fields } of this.past) {
      const held = this.keys.get(key)
      // In a hash that is known whole, an evicted field would count as missing.
      if (held === undefined || held.isWhole) continue
      for (const field of fields) if (held.fields.delete(field)) gone += 1
    }
    this.past = []
    this.size -= gone
    this.budget.left += gone
  }

  /** Evicts the oldest values until the process is within its budget, or nothing is left here. */
  private trim(): void {
    this.last = null
    for (const [key, held] of this.keys) {
      this.keys.delete(key)
      this.size -= held.fields.size
      this.budget.left += held.fields.size
      if (this.budget.left >= 0) return
    }
  }
}

function textOf(value: string | Uint8Array | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined ? '' : Buffer.from(value).toString()
}
