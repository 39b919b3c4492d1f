/**
 * field-cache - fields of hashes that this owner has read or written, so that it need not read them again.
 *
 * The owner of a shard is the only one who writes it, and every commit is fenced by its token: what was read once, with
 * the writes of every commit confirmed since, is what stands there. Whoever lost the shard can decide on it, but not
 * commit. Bounded for the whole process, but for what the batches under way rest on: what is known when a batch begins
 * stays known until it is decided. What came first goes first, and an idle shard's goes after ten minutes.
 *
 * A read may be taken in only while no commit was confirmed since it was sent (it may not have seen that commit).
 */
import type { AbsentFields, Fact, FactValue, Op } from './behaviour.ts'

const IDLE_MS = 600_000

type FieldsFact = Fact & { readonly read: 'fields' }

/** Fields that all shards of a process may hold together. */
export interface FieldBudget {
  left: number
}

export class FieldCache {
  private readonly keys = new Map<string, Map<string, string | null>>()
  private readonly budget: FieldBudget
  private size = 0
  private usedAtMs = 0

  constructor(budget: FieldBudget) {
    this.budget = budget
  }

  /** A batch begins: what is more than the process may hold goes now, because nothing rests on it. */
  begin(nowMs: number): void {
    this.usedAtMs = nowMs
    if (this.budget.left < 0) this.trim()
  }

  /** Whether every field of a fact is known. */
  has({ key, fields }: FieldsFact): boolean {
    const held = this.keys.get(key)
    if (held === undefined) return false
    for (const field of fields) if (!held.has(field)) return false
    return true
  }

  /** What stands in a field by every commit confirmed so far; undefined when it is not known. */
  field(key: string, field: string): string | null | undefined {
    return this.keys.get(key)?.get(field)
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

  /**
   * A commit with these writes was confirmed; `absent` is what it knew not to be there before them. A field that nobody
   * has asked for is not taken in: most of what is written is never looked up.
   */
  note(ops: readonly Op[], absent: readonly AbsentFields[] = []): void {
    for (const { key, fields } of absent) for (const field of fields) this.put(key, field, null)
    for (const { key, write, args } of ops) {
      if (write !== 'HSET' && write !== 'HDEL' && write !== 'UNLINK') continue
      const held = this.keys.get(key)
      if (held === undefined) continue
      if (write === 'HSET') for (let i = 0; i < args.length; i += 2) setHeld(held, args[i], args[i + 1])
      else if (write === 'HDEL') for (const field of args) setHeld(held, field, null)
      else for (const field of held.keys()) held.set(field, null)
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

  private put(key: string, field: string, value: string | null): void {
    let held = this.keys.get(key)
    if (held === undefined) {
      held = new Map()
      this.keys.set(key, held)
    }
    if (!held.has(field)) {
      this.size += 1
      this.budget.left -= 1
    }
    held.set(field, value)
  }

  /** Drops what came first until the process holds no more than it may, or nothing is left here. */
  private trim(): void {
    for (const [key, held] of this.keys) {
      this.keys.delete(key)
      this.size -= held.size
      this.budget.left += held.size
      if (this.budget.left >= 0) return
    }
  }
}

/** Changes a field that is held; another one stays unknown. Bytes are read as the store answers them. */
function setHeld(
  held: Map<string, string | null>,
  field: string | Uint8Array | undefined,
  value: string | Uint8Array | null | undefined,
): void {
  const name = textOf(field)
  if (held.has(name)) held.set(name, value === null ? null : textOf(value))
}

function textOf(value: string | Uint8Array | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined ? '' : Buffer.from(value).toString()
}
