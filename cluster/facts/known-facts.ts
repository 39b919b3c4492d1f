/**
 * known-facts - values that the owner of a shard knows without a read: fields of hashes and the heads of serial lanes.
 *
 * Both depend on the owner being the only writer of the shard, with every commit fenced.
 */
import type { Fact, FactValue, HashFields, Op } from '../behaviour.ts'
import { type FieldBudget, FieldCache } from './field-cache.ts'
import { type LaneHead, LaneHeads } from './lane-heads.ts'
import type { Overlay } from './overlay.ts'

export class KnownFacts {
  private readonly fields: FieldCache
  private readonly heads: LaneHeads

  constructor(budget: FieldBudget) {
    this.fields = new FieldCache(budget)
    this.heads = new LaneHeads(budget)
  }

  /** A batch begins: values over the budget of the process are evicted now, because nothing uses them. */
  begin(nowMs: number): void {
    this.heads.begin()
    this.fields.begin(nowMs)
  }

  /** Whether a fact need not be read. */
  has(fact: Fact): boolean {
    if (fact.read === 'fields') return this.fields.has(fact)
    return fact.read === 'sorted' && fact.isHead === true && this.heads.head(fact.key) !== undefined
  }

  field(key: string, field: string): string | null | undefined {
    return this.fields.field(key, field)
  }

  head(key: string): LaneHead | undefined {
    return this.heads.head(key)
  }

  /** Stores the results of a read; `since` are the writes of the commits confirmed since it was sent. */
  take(facts: readonly Fact[], values: readonly FactValue[], since: Overlay | null = null): void {
    this.fields.take(facts, values, since)
    if (since === null) this.heads.take(facts, values)
  }

  /** A commit with these writes was confirmed; `absent` lists the fields that it knew to be missing before them. */
  note({ ops, absent, forgets, overlay }: Noted): void {
    this.fields.note(ops, absent)
    this.fields.forget(forgets)
    this.heads.note(ops, overlay)
  }

  /** Evicts facts that were not requested for a while. */
  sweep(nowMs: number): void {
    this.fields.sweep(nowMs)
    this.heads.clear()
  }

  /** The shard is no longer here, and its share of the budget is free. */
  clear(): void {
    this.fields.clear()
    this.heads.clear()
  }
}

interface Noted {
  readonly ops: readonly Op[]
  readonly absent: readonly HashFields[]
  readonly forgets: readonly HashFields[]
  readonly overlay: Overlay
}
