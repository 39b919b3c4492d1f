/**
 * turn - runs behaviours over an in-memory key space, one turn after the other, as the runtime does with a store.
 *
 * It checks on every turn the general rules: bodies, states and counters are plain data that is never changed in
 * place; a turn reads only what it named; at most three `need`s; the rules of `key-space.ts` for every write; and no
 * address is in a reply, which passes through a stream on its way to another process.
 */

import assert from 'node:assert/strict'
import type {
  Command,
  CommandType,
  Context,
  Decision,
  Due,
  Fact,
  Facts,
  HashFields,
  Need,
  Note,
  Op,
  Ref,
  Signal,
  Staged,
  States,
} from '../../../cluster/behaviour.ts'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { type IdMaker, makeIds } from '../../../cluster/id.ts'
import { claimsKey, countersKey, shardTag } from '../../../cluster/keyspace.ts'
import { BEHAVIOURS } from '../../../src/actors/behaviours.ts'
import { KeySpace } from './key-space.ts'

const NEEDS_MAX = 5
/** A claim is valid for this long. */
const HOLD_MS = 15_000
const TIMER_STEPS_MAX = 20_000
/** Commands whose reply goes to an asker. */
const ASKED = new Set(BEHAVIOURS.commands.map(({ name }) => name))

interface Item extends Due {
  /** Claims so far. */
  claims: number
  /** End of the attempt in flight; absent while the item waits. */
  claimedUntilMs?: number
}

/** A claimed item. */
export interface Claimed<Job> {
  readonly lane: string
  readonly item: string
  readonly attempt: number
  readonly job: Job
}

export interface RunOptions {
  readonly blobs?: readonly Uint8Array[]
  readonly cmdId?: string
}

export class World extends KeySpace {
  readonly states = new Map<string, unknown>()
  readonly counters = new Map<string, unknown>()
  /** `<lane> <item>` -> item. */
  readonly items = new Map<string, Item>()
  /** Writes of the last turn. */
  ops: readonly Op[] = []
  /** Signals of the last turn. */
  signals: readonly Signal[] = []
  /** The notes of all turns for the operator. */
  readonly notes: Note[] = []
  /** What need not be kept of the last turn. */
  forgets: readonly HashFields[] = []
  /** Rounds of reading of the last turn, the first included. */
  rounds = 0
  /** The time that passes with each round of reading, as in the runtime. */
  tickMs = 0
  private readonly ids: IdMaker
  private seed = 7

  constructor(nowMs: number, shard = 23) {
    super(nowMs, shard)
    this.ids = makeIds({ shard, last: '', random: () => this.random() })
  }

  /** Runs one command and answers what its asker gets. */
  run<Body, Reply>(type: CommandType<Body, Reply>, body: Body, options: RunOptions = {}): Reply {
    this.expire()
    const plain = freeze(JSON.parse(JSON.stringify(body))) as Body
    const cmdId = options.cmdId ?? newCmdId(this.nowMs, () => this.random())
    const command: Command<Body> = { name: type.name, cmdId, body: plain, blobs: options.blobs ?? [] }
    const context: Context = { nowMs: this.nowMs, shard: this.shard, newId: () => this.ids.next(this.nowMs) }
    const turn = new Turn(this)
    turn.name({ entities: type.entities(plain), counters: type.counters(plain) })
    turn.name({ facts: type.facts(plain, turn.states, context) })
    for (let needs = 0; ; needs += 1) {
      const later = this.tickMs === 0 ? context : { ...context, nowMs: this.nowMs + needs * this.tickMs }
      const decision: Decision<Reply> = type.decide(plain, turn.states, turn.facts, later, command)
      this.rounds = needs + 1
      if (decision.kind === 'need') {
        assert(needs < NEEDS_MAX, `${type.name} needs facts without end`)
        turn.name(decision)
        continue
      }
      this.stage(decision.kind === 'refuse' ? (decision.records ?? {}) : decision)
      const reply = decision.kind === 'refuse' ? decision.answer : decision.reply
      if (ASKED.has(type.name))
        assert(!/@/.test(JSON.stringify(reply) ?? ''), `An address is in a reply of ${type.name}`)
      return reply
    }
  }

  /** Fires every due timer until there is none, and returns the number of steps. */
  fireTimers(): number {
    for (let steps = 0; steps < TIMER_STEPS_MAX; steps += 1) {
      const due = [...this.items.values()].find(({ lane, atMs }) => lane === 'timers' && atMs <= this.nowMs)
      if (due === undefined) return steps
      const timer = BEHAVIOURS.timers[due.item.slice(0, due.item.indexOf(':'))]
      assert(timer !== undefined, `No timer for ${due.item}`)
      this.items.delete(nameOf(due))
      this.run(timer, { item: due.item })
    }
    throw new Error('Timers are due without end')
  }

  /**
   * Claims an item: with the job of the commit that made it due, else with the answer of `prepare`; null when it is
   * finished.
   */
  claim<Job>(prepare: CommandType<{ lane: string; item: string }, Job | null>, due: Due): Claimed<Job> | null {
    const item = this.items.get(nameOf(due))
    if (item === undefined) return null
    const fresh = item.claims === 0 && item.job !== undefined
    const job = fresh ? (item.job as Job) : this.run(prepare, { lane: due.lane, item: due.item })
    if (job === null) {
      this.items.delete(nameOf(due))
      return null
    }
    item.claims += 1
    item.claimedUntilMs = this.nowMs + HOLD_MS
    return { lane: item.lane, item: item.item, attempt: item.claims, job }
  }

  /** Reports an attempt's end; the item leaves unless it is due again. */
  end<Outcome>(
    type: CommandType<
      { lane: string; item: string; attempt: number; current: boolean; outcome: Outcome | null },
      unknown
    >,
    claim: Pick<Claimed<unknown>, 'lane' | 'item' | 'attempt'>,
    outcome: Outcome | null,
  ): void {
    const name = nameOf(claim)
    const before = this.items.get(name)
    const current = before !== undefined && before.claims === claim.attempt
    const { lane, item, attempt } = claim
    this.run(type, { lane, item, attempt, current, outcome })
    if (current && this.items.get(name) === before) this.items.delete(name)
  }

  /** A hash. Claims have a row for each claimed item, and counters are one, as the runtime keeps them. */
  override hash(key: string): ReadonlyMap<string, string> {
    if (key === countersKey(this.shard))
      return new Map([...this.counters].map(([owner, value]) => [owner, JSON.stringify(value)]))
    const stored = super.hash(key)
    if (key !== claimsKey(this.shard)) return stored
    const claimed = [...this.items.values()].filter(({ claims }) => claims > 0)
    const rows = claimed.map(({ item, lane, claims, claimedUntilMs }): [string, string] => {
      const worker = claimedUntilMs === undefined ? '' : 'worker'
      return [item, JSON.stringify([worker, lane, claims, claimedUntilMs ?? 0, claims])]
    })
    return new Map([...rows, ...stored])
  }

  /** A sorted set; that of a lane holds its items, as the runtime keeps them. */
  override sorted(key: string): ReadonlyMap<string, number> {
    const lanes = `${shardTag(this.shard)}:due:`
    if (!key.startsWith(lanes)) return super.sorted(key)
    const lane = key.slice(lanes.length)
    const items = [...this.items.values()].filter((item) => item.lane === lane)
    return new Map(items.map(({ item, atMs }) => [item, atMs]))
  }

  /** Items of lanes other than timers, by name. */
  deliveries(): Item[] {
    return [...this.items.values()].filter(({ lane }) => lane !== 'timers')
  }

  /** Puts an entity's state in place, as earlier commits would have. */
  seedState(ref: Ref, state: unknown): void {
    this.states.set(refName(ref), freeze(JSON.parse(JSON.stringify(state))))
  }

  /** A generator of our own (mulberry32), so that every run is the same. */
  random(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  private stage(staged: Staged): void {
    for (const { ref, event } of staged.events ?? []) this.applyEvent(ref, event)
    for (const { owner, value } of staged.counters ?? []) this.counters.set(owner, freeze(toPlain(value)))
    for (const op of staged.ops ?? []) this.apply(op)
    this.ops = staged.ops ?? []
    this.signals = staged.signals ?? []
    this.forgets = staged.forgets ?? []
    this.notes.push(...(staged.notes ?? []))
    for (const done of staged.done ?? []) this.items.delete(nameOf(done))
    for (const due of staged.due ?? []) {
      const claims = due.attempts ?? this.items.get(nameOf(due))?.claims ?? 0
      this.items.set(nameOf(due), { ...due, claims })
    }
  }

  private applyEvent(ref: Ref, event: unknown): void {
    const type = BEHAVIOURS.entities.find(({ kind }) => kind === ref.kind)
    assert(type !== undefined, `No entity ${ref.kind}`)
    const state = type.apply(this.states.get(refName(ref)) ?? type.empty, toPlain(event))
    assert(!JSON.stringify([event, state]).includes('@'), 'An address is in an entity')
    this.states.set(refName(ref), freeze(toPlain(state)))
    // The runtime writes the entry after the decision's own writes, and the write that expires an entity's stream must
    // find it.
    this.apply({
      key: `${shardTag(this.shard)}:${ref.kind}:${ref.id}`,
      write: 'XADD',
      args: [this.entryId(), 'st', ''],
    })
  }

  private entries = 0

  private entryId(): string {
    this.entries += 1
    return `${this.entries}-0`
  }
}

/** What one turn may read: what it named, and nothing else. */
class Turn {
  readonly states: States
  readonly facts: Facts
  private readonly world: World
  private readonly known = new Set<string>()

  constructor(world: World) {
    this.world = world
    this.states = {
      get: (ref) => {
        assert(this.known.has(`entity ${refName(ref)}`), `Entity was not named: ${ref.kind}`)
        const type = BEHAVIOURS.entities.find(({ kind }) => kind === ref.kind)
        return (world.states.get(refName(ref)) ?? type?.empty ?? null) as never
      },
      has: (ref) => this.known.has(`entity ${refName(ref)}`),
      counter: (owner) => {
        assert(this.known.has(`counter ${owner}`), 'Counter was not named')
        return (world.counters.get(owner) ?? null) as never
      },
      hasCounter: (owner) => this.known.has(`counter ${owner}`),
    }
    this.facts = this.makeFacts()
  }

  name({ entities, counters, facts }: Omit<Need, 'kind'>): void {
    for (const ref of entities ?? []) this.known.add(`entity ${refName(ref)}`)
    for (const owner of counters ?? []) this.known.add(`counter ${owner}`)
    for (const fact of facts ?? []) for (const name of factNames(fact)) this.known.add(name)
  }

  private makeFacts(): Facts {
    const { world } = this
    const check = (fact: Fact) => {
      for (const name of factNames(fact)) assert(this.known.has(name), `Fact was not fetched: ${name}`)
    }
    return {
      field: (key, field) => {
        check({ read: 'fields', key, fields: [field] })
        return world.hash(key).get(field) ?? null
      },
      hash: (key) => {
        check({ read: 'hash', key })
        return world.hash(key)
      },
      range: (fact) => {
        check(fact)
        return world.range(fact.key, fact.from, fact.to).slice(0, fact.count)
      },
      sorted: (fact) => {
        check(fact)
        const inside = [...world.sorted(fact.key)]
          .filter(([, score]) => score >= fact.min && score <= fact.max)
          .sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1))
        return (fact.newest ? inside.reverse() : inside).slice(0, fact.count)
      },
      score: (key, member) => {
        check({ read: 'score', key, member })
        return world.sorted(key).get(member) ?? null
      },
      value: (key) => {
        check({ read: 'value', key })
        return world.string(key) as string | null
      },
      has: (fact) => factNames(fact).every((name) => this.known.has(name)),
    }
  }
}

function factNames(fact: Fact): string[] {
  if (fact.read === 'fields') return fact.fields.map((field) => `field ${fact.key} ${field}`)
  return [JSON.stringify(fact)]
}

function refName({ kind, id }: Ref): string {
  return `${kind}:${id}`
}

function nameOf({ lane, item }: { lane: string; item: string }): string {
  return `${lane} ${item}`
}

function toPlain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

function freeze<Whole>(value: Whole): Whole {
  if (typeof value !== 'object' || value === null) return value
  for (const part of Object.values(value)) freeze(part)
  return Object.freeze(value)
}
