/**
 * lane-heads - the first items of serial lanes, cached so that the next claim needs no read.
 *
 * The owner of a shard is the only writer of its lanes, so a head read once, with the writes of every commit confirmed
 * since, is current (see `field-cache.ts`, whose budget this shares). A head ends if its read ended: items beyond it
 * are unknown, so a head that has grown short is dropped and read again.
 *
 * A read may be taken in only while no commit was confirmed since it was sent.
 */
import type { Fact, FactValue, Op } from '../behaviour.ts'
import { laneKey } from '../keyspace.ts'
import type { FieldBudget } from './field-cache.ts'
import type { Overlay } from './overlay.ts'

type SortedFact = Fact & { readonly read: 'sorted' }
type Members = readonly (readonly [item: string, score: number])[]

/** Items that a read of a head returns, enough for a dozen attempts. */
const HEAD_READ = 16
/** The finished item may still be first, and another one may be claimed. */
const HEAD_LEAST = 3

export interface LaneHead {
  readonly members: Members
  /** The lane has no further items. */
  readonly isWhole: boolean
}

/** The read of the items of a lane that are due first. */
export function laneHead(shard: number, lane: string): SortedFact {
  return {
    read: 'sorted',
    key: laneKey(shard, lane),
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    count: HEAD_READ,
    isHead: true,
  }
}

export class LaneHeads {
  private readonly heads = new Map<string, LaneHead>()
  private readonly budget: FieldBudget

  constructor(budget: FieldBudget) {
    this.budget = budget
  }

  /** A batch begins: values over the budget of the process are evicted now. */
  begin(): void {
    for (const key of this.heads.keys()) {
      if (this.budget.left >= 0) return
      this.forget(key)
    }
  }

  /** The head of a lane by every commit confirmed so far; undefined when it is not known far enough. */
  head(key: string): LaneHead | undefined {
    return this.heads.get(key)
  }

  /** Stores the results of a read. */
  take(facts: readonly Fact[], values: readonly FactValue[]): void {
    facts.forEach((fact, index) => {
      if (fact.read !== 'sorted' || fact.isHead !== true) return
      const members = values[index] as Members
      this.put(fact.key, { members, isWhole: members.length < fact.count })
    })
  }

  /** A commit with these writes was confirmed. */
  note(ops: readonly Op[], overlay: Overlay): void {
    if (this.heads.size === 0) return
    const touched = new Set<string>()
    for (const op of ops) {
      const head = this.heads.get(op.key)
      if (head === undefined) continue
      if (isBlind(op, head)) this.forget(op.key)
      else touched.add(op.key)
    }
    for (const key of touched) {
      const head = this.heads.get(key)
      if (head !== undefined) this.put(key, layHead(overlay, key, head))
    }
  }

  clear(): void {
    for (const key of this.heads.keys()) this.forget(key)
  }

  /** The head that was written last is evicted last. */
  private put(key: string, { members, isWhole }: LaneHead): void {
    this.forget(key)
    if (members.length === 0 || (!isWhole && members.length < HEAD_LEAST)) return
    const kept = members.length > HEAD_READ ? members.slice(0, HEAD_READ) : members
    this.heads.set(key, { members: kept, isWhole: isWhole && kept === members })
    this.budget.left -= kept.length
  }

  private forget(key: string): void {
    this.budget.left += this.heads.get(key)?.members.length ?? 0
    this.heads.delete(key)
  }
}

/** A head with writes laid over it: items placed beyond its end stay unknown. */
export function layHead(overlay: Overlay, key: string, { members, isWhole }: LaneHead): LaneHead {
  const count = isWhole ? Number.MAX_SAFE_INTEGER : members.length
  return { members: overlay.sorted(key, { min: 0, max: Number.MAX_SAFE_INTEGER, count }, members), isWhole }
}

/** Whether a conditional write moves an item whose presence is unknown. */
function isBlind({ write, args }: Op, { members, isWhole }: LaneHead): boolean {
  if (isWhole || write !== 'ZADD' || !/^[A-Z]/.test(String(args[0]))) return false
  const known = new Set(members.map(([item]) => item))
  return args.some((item, at) => at > 0 && at % 2 === 0 && !known.has(String(item)))
}
