/**
 * field-cache - fields of hashes that this owner has read or written, so that it need not read them again.
 *
 * The owner of a shard is the only one who writes it, and every commit is fenced by its token: what was read once, with
 * the writes of every commit confirmed since, is what stands there. Whoever lost the shard can decide on it, but not
 * commit. Bounded for the whole process; what came first goes first, and an idle shard's goes after ten minutes.
 *
 * A read may be taken in only while no commit was confirmed since it was sent (it may not have seen that commit).
 */
import type { AbsentFields, Fact, FactValue, Op } from './behaviour.ts'

const IDLE_MS = 600_000
/** What is written and longer than this is content, not something a turn looks up. */
const WRITTEN_CHARS_MAX = 96

type FieldsFact = Fact & { readonly read: 'fields' }

/** Fields that all shards of a process may hold together. */
export interface FieldBudget {
  left: number
}

export interface Split {
  /** Facts that are answered here, with their values. */
  readonly known: readonly FieldsFact[]
  readonly values: readonly (readonly (string | null)[])[]
  /** Facts that must be read. */
  readonly unknown: readonly Fact[]
}

export class FieldCache {
  private readonly keys = new Map<string, Map<string, string | null>>()
  private readonly budget: FieldBudget
  private size = 0
  private usedAtMs = 0

  constructor(budget: FieldBudget) {
    this.budget = budget
  }

  /** Parts what is known from what must be read. */
  split(facts: readonly Fact[], nowMs: number): Split {
    this.usedAtMs = nowMs
    const known: FieldsFact[] = []
    const values: (readonly (string | null)[])[] = []
    const unknown: Fact[] = []
    for (const fact of facts) {
      const found = fact.read === 'fields' ? this.find(fact) : null
      if (fact.read !== 'fields' || found === null) unknown.push(fact)
      else {
        known.push(fact)
        values.push(found)
      }
    }
    return { known, values, unknown }
  }

  /** Takes in what was read. */
  take(facts: readonly Fact[], values: readonly FactValue[]): void {
    facts.forEach((fact, index) => {
      if (fact.read !== 'fields') return
      const answers = values[index] as readonly (string | null)[]
      fact.fields.forEach((field, place) => {
        this.put(fact.key, field, answers[place] ?? null)
      })
    })
  }

  /** A commit with these writes was confirmed; `absent` is what it knew not to be there before them. */
  note(ops: readonly Op[], absent: readonly AbsentFields[] = []): void {
    for (const { key, fields } of absent) for (const field of fields) this.put(key, field, null)
    for (const { key, write, args } of ops) {
      if (write === 'HSET') {
        for (let i = 0; i < args.length; i += 2) this.written(key, args[i], args[i + 1])
      } else if (write === 'HDEL') for (const field of args) this.drop(key, String(field))
      else if (write === 'UNLINK') this.dropKey(key)
    }
  }

  /** Forgets everything when nothing was asked for a while. */
  sweep(nowMs: number): void {
    if (nowMs - this.usedAtMs > IDLE_MS) this.clear()
  }

  clear(): void {
    this.keys.clear()
    this.budget.left += this.size
    this.size = 0
  }

  private find({ key, fields }: FieldsFact): readonly (string | null)[] | null {
    const held = this.keys.get(key)
    if (held === undefined) return null
    const values: (string | null)[] = []
    for (const field of fields) {
      const value = held.get(field)
      if (value === undefined) return null
      values.push(value)
    }
    return values
  }

  private written(key: string, field: string | Uint8Array | undefined, value: string | Uint8Array | undefined): void {
    if (typeof field === 'string' && typeof value === 'string' && value.length <= WRITTEN_CHARS_MAX)
      this.put(key, field, value)
    else this.drop(key, String(field))
  }

  private put(key: string, field: string, value: string | null): void {
    let held = this.keys.get(key)
    if (held?.has(field) === true) {
      held.set(field, value)
      return
    }
    if (this.budget.left <= 0 && !this.dropOldest()) return
    held = this.keys.get(key)
    if (held === undefined) {
      held = new Map()
      this.keys.set(key, held)
    }
    held.set(field, value)
    this.size += 1
    this.budget.left -= 1
  }

  /** Makes room; false when there is nothing here to drop. */
  private dropOldest(): boolean {
    for (const [key, held] of this.keys) {
      for (const field of held.keys()) {
        this.drop(key, field)
        return true
      }
    }
    return false
  }

  private drop(key: string, field: string): void {
    const held = this.keys.get(key)
    if (held?.delete(field) !== true) return
    this.size -= 1
    this.budget.left += 1
    if (held.size === 0) this.keys.delete(key)
  }

  private dropKey(key: string): void {
    const held = this.keys.get(key)
    if (held === undefined) return
    this.size -= held.size
    this.budget.left += held.size
    this.keys.delete(key)
  }
}
