/**
 * memory - the states of a shard's entities and counters, and the draft that a batch makes over them.
 *
 * States: a memory holds committed state only. A draft holds the state after the turns of one batch; it becomes part
 * of the memory when the commit is confirmed, and is thrown away otherwise. State not requested for ten minutes is
 * dropped and read again when needed.
 */
import type { EntityType, Ref, States } from '../behaviour.ts'
import { assert, Fault } from '../fault.ts'

const IDLE_MS = 600_000

/** An entity's stream keeps about this many of its last states. */
const ENTRIES_KEPT = 16

const NO_ENTRIES: readonly string[] = []

interface Held {
  state: unknown
  usedAtMs: number
  /** Entries written since this memory began, oldest first, at most ENTRIES_KEPT. */
  entryIds: readonly string[]
}

/** Entity types by kind. */
export type EntityTable = ReadonlyMap<string, EntityType>

export class Memory {
  /** By kind. There are few, and the name of a kind is the same string everywhere. */
  private readonly kinds: { readonly kind: string; readonly held: Map<string, Held> }[] = []
  private readonly counters = new Map<string, Held>()

  hasEntity(ref: Ref): boolean {
    return this.find(ref) !== undefined
  }

  hasCounter(owner: string): boolean {
    return this.counters.has(owner)
  }

  /**
   * Stores the result of a read, unless something newer is held already. A Fault is thrown at anyone who asks for it.
   */
  loadEntity(ref: Ref, state: unknown, nowMs: number): void {
    if (!this.hasEntity(ref)) this.hold(ref, { state, usedAtMs: nowMs, entryIds: [] })
  }

  loadCounter(owner: string, value: unknown, nowMs: number): void {
    if (!this.counters.has(owner)) this.counters.set(owner, { state: value, usedAtMs: nowMs, entryIds: [] })
  }

  entity(ref: Ref, nowMs: number): unknown {
    const held = this.find(ref)
    if (held === undefined) throw new Fault('Entity was not named by the command', { kind: ref.kind })
    if (held.state instanceof Fault) throw held.state
    held.usedAtMs = nowMs
    return held.state
  }

  counter(owner: string, nowMs: number): unknown {
    const held = this.counters.get(owner)
    if (held === undefined) throw new Fault('Counter was not named by the command')
    if (held.state instanceof Fault) throw held.state
    held.usedAtMs = nowMs
    return held.state
  }

  /** Makes the state of a draft the committed state. */
  take(draft: Draft, nowMs: number): void {
    for (const { state, ref } of draft.entities.values())
      this.hold(ref, { state, usedAtMs: nowMs, entryIds: this.entriesAfter(ref, draft.entryId) })
    for (const [owner, value] of draft.counters) {
      const held = this.counters.get(owner)
      if (held === undefined) this.counters.set(owner, { state: value, usedAtMs: nowMs, entryIds: NO_ENTRIES })
      else {
        held.state = value
        held.usedAtMs = nowMs
      }
    }
  }

  /** The entries that an entity's stream keeps once `entryId` is added to it. */
  entriesAfter(ref: Ref, entryId: string): readonly string[] {
    return [...(this.find(ref)?.entryIds ?? []), entryId].slice(-ENTRIES_KEPT)
  }

  /** Drops idle states. */
  sweep(nowMs: number): void {
    for (const held of [...this.kinds.map((one) => one.held), this.counters])
      for (const [name, { usedAtMs }] of held) if (nowMs - usedAtMs > IDLE_MS) held.delete(name)
  }

  get size(): number {
    let size = this.counters.size
    for (const { held } of this.kinds) size += held.size
    return size
  }

  private find({ kind, id }: Ref): Held | undefined {
    for (const one of this.kinds) if (one.kind === kind) return one.held.get(id)
    return undefined
  }

  private hold({ kind, id }: Ref, held: Held): void {
    const known = this.kinds.find((one) => one.kind === kind)
    if (known === undefined) this.kinds.push({ kind, held: new Map([[id, held]]) })
    else known.held.set(id, held)
  }
}

/** Changes of an entity during a batch. */
export interface Changed {
  readonly ref: Ref
  state: unknown
  readonly events: unknown[]
  by: string
}

export class Draft implements States {
  readonly entities = new Map<string, Changed>()
  readonly counters = new Map<string, unknown>()
  /** Id of the entries that the commit of this draft writes. */
  readonly entryId: string
  private readonly memory: Memory
  private readonly types: EntityTable
  private readonly nowMs: number

  constructor(memory: Memory, types: EntityTable, { nowMs, entryId }: { nowMs: number; entryId: string }) {
    this.memory = memory
    this.types = types
    this.nowMs = nowMs
    this.entryId = entryId
  }

  get<State>(ref: Ref): State {
    const changed = this.entities.size === 0 ? undefined : this.entities.get(entityName(ref))
    return (changed === undefined ? this.memory.entity(ref, this.nowMs) : changed.state) as State
  }

  has(ref: Ref): boolean {
    return this.memory.hasEntity(ref) || this.entities.has(entityName(ref))
  }

  counter<Counter>(owner: string): Counter | null {
    const value = this.counters.get(owner)
    return (value === undefined ? this.memory.counter(owner, this.nowMs) : value) as Counter | null
  }

  hasCounter(owner: string): boolean {
    return this.counters.has(owner) || this.memory.hasCounter(owner)
  }

  /** Applies the events of one turn, all or (if one throws) none. */
  apply(events: readonly { readonly ref: Ref; readonly event: unknown }[], by: string): void {
    const made = new Map<string, Changed>()
    for (const { ref, event } of events) {
      const type = this.types.get(ref.kind)
      assert(type !== undefined, 'Unknown kind of entity', { kind: ref.kind })
      const name = entityName(ref)
      const before = made.get(name) ?? this.entities.get(name)
      const state = type.apply(before === undefined ? this.stateOrEmpty(ref, type) : before.state, event)
      made.set(name, { ref, state, events: [...(before?.events ?? []), event], by })
    }
    for (const [name, changed] of made) this.entities.set(name, changed)
  }

  private stateOrEmpty(ref: Ref, type: EntityType): unknown {
    return this.memory.hasEntity(ref) ? this.memory.entity(ref, this.nowMs) : type.empty
  }
}

function entityName(ref: Ref): string {
  return `${ref.kind}:${ref.id}`
}
