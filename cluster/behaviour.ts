/**
 * behaviour - the interface between the runtime and the code that it runs: commands, entities, lanes.
 *
 * A behaviour is pure. It is handed states, facts and a context, and answers with a decision; it never awaits, reads a
 * clock or draws a random number. All its writes are in the decision. They are committed together with all other
 * decisions of the batch, or not at all.
 */

import type { Pass } from './fence.ts'

/** An entity. Its shard is in the id. */
export interface Ref {
  readonly kind: string
  readonly id: string
}

/** Input of an actor. `body` is plain data; a mailbox carries it as JSON, so it has no functions or bytes. */
export interface Command<Body = unknown> {
  readonly name: string
  /** Unique per command; begins with the time in milliseconds, base 36, eight characters. */
  readonly cmdId: string
  readonly body: Body
  /** Bytes that the command brings along (content), named by index in the body. */
  readonly blobs?: readonly Uint8Array[]
}

/** Time and ids of a turn. `nowMs` is the store's clock. */
export interface Context {
  readonly nowMs: number
  readonly shard: number
  /** A new id of this shard, larger than every one before it. */
  newId(): string
}

/** One read that a decision needs. `key` is on the command's shard. */
export type Fact =
  /**
   * HMGET: the named fields of a hash. With `wholeMax`, HGETALL while the hash has no more fields than that, so that
   * its owner knows that every other field is missing.
   */
  | { readonly read: 'fields'; readonly key: string; readonly fields: readonly string[]; readonly wholeMax?: number }
  /** HGETALL of a hash whose size its owner has bounded. */
  | { readonly read: 'hash'; readonly key: string }
  /** XRANGE: entries from `from` to `to` inclusive ('-' and '+' are the ends), at most `count`. */
  | {
      readonly read: 'range'
      readonly key: string
      readonly from: string
      readonly to: string
      readonly count: number
    }
  /** XREVRANGE + - COUNT 1: the last entry of a stream. */
  | { readonly read: 'last'; readonly key: string }
  /**
   * ZRANGEBYSCORE WITHSCORES: members with score from `min` to `max` inclusive, at most `count`; from the highest down
   * (ZREVRANGEBYSCORE) with `newest`.
   */
  | {
      readonly read: 'sorted'
      readonly key: string
      readonly min: number
      readonly max: number
      readonly count: number
      readonly newest?: true
      /** The head of a serial lane before the batch, which its owner keeps. */
      readonly isHead?: true
    }
  /** ZSCORE. */
  | { readonly read: 'score'; readonly key: string; readonly member: string }
  /** GET of a text. */
  | { readonly read: 'value'; readonly key: string }

/** Reads committed state for a caller that only reads. A turn could not apply its own writes over the last one. */
export type ViewFact =
  | Fact
  /** XREVRANGE: entries from `to` down to `from` ('+' and '-' are the ends, `(` excludes), at most `count`. */
  | {
      readonly read: 'newest'
      readonly key: string
      readonly from: string
      readonly to: string
      readonly count: number
      /** The filter of the reader; a source with an index may leave all other entries out. Redis ignores it. */
      readonly hint?: EntryHint
    }

/** Members of the entries that a reader looks for, each by the name of an index. */
export type EntryHint = Readonly<Record<string, number>>

/** A stream entry, with its id and its fields in order, name and value alternating. */
export interface Entry {
  readonly id: string
  readonly fields: readonly string[]
}

/**
 * The value of a fact, by `read`: fields: (string|null)[], or pairs if the hash was read whole; hash: pairs; range,
 * last, newest: Entry[]; sorted: [member, score][]; score: number|null; value: string|null.
 */
export type FactValue =
  | readonly (string | null)[]
  | readonly Entry[]
  | readonly (readonly [string, number])[]
  | ReadonlyMap<string, string>
  | string
  | number
  | null

/** The facts of one kind. */
export type FactOf<Read extends ViewFact['read']> = Extract<ViewFact, { readonly read: Read }>

/** The value of a fact of its kind; a hash requested by fields is not read whole. */
export type ValueOf<One extends ViewFact> =
  One extends FactOf<'fields'>
    ? readonly (string | null)[]
    : One extends FactOf<'hash'>
      ? ReadonlyMap<string, string>
      : One extends FactOf<'range' | 'last' | 'newest'>
        ? readonly Entry[]
        : One extends FactOf<'sorted'>
          ? readonly (readonly [string, number])[]
          : One extends FactOf<'score'>
            ? number | null
            : string | null

/**
 * Fields that the owner keeps after every confirmed commit, a hint about future reads; undefined means none.
 */
export type Known = (key: string, field: string) => string | null | undefined

/**
 * The facts of a turn, with every write of earlier turns laid over them. Asking for one that was not fetched is a
 * Fault.
 */
export interface Facts {
  field(key: string, field: string): string | null
  hash(key: string): ReadonlyMap<string, string>
  range(fact: Fact & { read: 'range' }): readonly Entry[]
  sorted(fact: Fact & { read: 'sorted' }): readonly (readonly [string, number])[]
  score(key: string, member: string): number | null
  value(key: string): string | null
  /** Whether the fact was fetched, so that a decision can ask for it with `need`. */
  has(fact: Fact): boolean
}

/** The states of a turn: committed ones with the earlier turns of the batch applied. */
export interface States {
  /**
   * The state of an entity that was named in `entities` (or `need`); or the type's `empty` if there is no such entity.
   */
  get<State>(ref: Ref): State
  has(ref: Ref): boolean
  /**
   * An owner's counters, as last written; or null. Owners are fetched with the entities, see `counters`.
   */
  counter<Counter>(owner: string): Counter | null
  hasCounter(owner: string): boolean
}

/** The writes a decision may order. Absolute values only: there is no INCR. */
export type Write = 'XADD' | 'XTRIM' | 'HSET' | 'HDEL' | 'SET' | 'UNLINK' | 'ZADD' | 'ZREM' | 'PEXPIREAT'

/**
 * One write. `args` follow the key as Redis takes them: XADD id field value..., XTRIM MINID id, HSET field value...,
 * HDEL field..., SET value PXAT ms, UNLINK, ZADD [XX|NX|LT|GT] score member..., ZREM member..., PEXPIREAT ms. XADD ids
 * are explicit and rise per key; the runtime replaces `*seq` by `<seq>-<k>`, for streams without their own ids.
 * PEXPIREAT requires an existing key (otherwise the commit is refused as MISSING).
 */
export interface Op {
  readonly key: string
  readonly write: Write
  readonly args: readonly (string | Uint8Array)[]
}

/** An item to do in a lane at a time. With `job`, it may be claimed by the same commit when a performer is free. */
export interface Due {
  readonly lane: string
  readonly item: string
  readonly atMs: number
  /** Input of `perform` if the commit itself claims the item (its first attempt). */
  readonly job?: unknown
  /** Its earlier attempts, if it returns from outside of the lanes, so that the next claim continues the count. */
  readonly attempts?: number
}

/** Fields of a hash, by name. */
export interface HashFields {
  readonly key: string
  readonly fields: readonly string[]
}

/**
 * A notification to current listeners, sent once the commit is confirmed. It can be lost, and contains no personal
 * data.
 */
export interface Signal {
  readonly topic: string
  readonly text: string
}

/**
 * A notification to the operator of the committing process, sent once the commit is confirmed. It contains no personal
 * data and is lost with the process.
 */
export type Note = Readonly<Record<string, unknown>>

/** The writes of a turn. */
export interface Staged {
  readonly events?: readonly { readonly ref: Ref; readonly event: unknown }[]
  /** New absolute counters of an owner; plain JSON. Null removes them. */
  readonly counters?: readonly { readonly owner: string; readonly value: unknown }[]
  readonly ops?: readonly Op[]
  /**
   * Fields known to be missing, because their names contain an id made by this turn: they need no read.
   */
  readonly absent?: readonly HashFields[]
  /** Fields that are unlikely to be requested again, whose cached values are dropped. */
  readonly forgets?: readonly HashFields[]
  readonly due?: readonly Due[]
  /** Items that leave their lane. */
  readonly done?: readonly { readonly lane: string; readonly item: string }[]
  readonly signals?: readonly Signal[]
  readonly notes?: readonly Note[]
}

export interface Refusal<Reply> {
  readonly kind: 'refuse'
  readonly answer: Reply
  /** The records of the refusal itself; all other writes of the turn are dropped. */
  readonly records?: Staged
}

/** More reads, at most eight times in a turn. */
export interface Need {
  readonly kind: 'need'
  readonly entities?: readonly Ref[]
  readonly counters?: readonly string[]
  readonly facts?: readonly Fact[]
}

export interface Done<Reply> extends Staged {
  readonly kind: 'done'
  readonly reply: Reply
}

export type Decision<Reply> = Refusal<Reply> | Need | Done<Reply>

/**
 * The form in which a command's body and reply travel between processes, if it is shorter than JSON. Packing never
 * throws.
 */
export interface Wire<Body = unknown, Reply = unknown> {
  pack(body: Body): unknown
  /** The body of a value made by `pack`, after its way as JSON. Throws if it is malformed. */
  unpack(packed: unknown): unknown
  packReply(reply: Reply): unknown
  /** The reply of a value made by `packReply`. Throws if it is malformed. */
  unpackReply(packed: unknown): unknown
}

/** One row of the table of commands. */
export interface CommandType<Body = unknown, Reply = unknown> {
  readonly name: string
  entities(body: Body): readonly Ref[]
  /** Owners of counters that the decision looks at. */
  counters(body: Body): readonly string[]
  facts(body: Body, states: States, context: Context, known?: Known): readonly Fact[]
  decide(body: Body, states: States, facts: Facts, context: Context, command: Command<Body>): Decision<Reply>
  /** Whether the command only finishes or frees (outcomes, trims): it may then commit while the store is full. */
  readonly frees?: boolean
  readonly wire?: Wire<Body, Reply>
}

export interface EntityType<State = unknown, Event = unknown> {
  readonly kind: string
  /** Version of the state's shape, written on every entry. */
  readonly version: number
  readonly empty: State
  apply(state: State, event: Event): State
}

/** Body of the command of a timer item. */
export interface TimerBody {
  readonly item: string
}

/** Body of a `prepare` command, with the due item. */
export interface PrepareBody {
  readonly lane: string
  readonly item: string
}

/** Body of an `outcome` command. */
export interface OutcomeBody<Outcome = unknown> {
  readonly lane: string
  readonly item: string
  readonly attempt: number
  /**
   * Whether this is the item's latest attempt, without any later claim. An outcome that is not final counts only then.
   */
  readonly current: boolean
  /** Null when the item is abandoned: five claims without an outcome, or a behaviour that threw. */
  readonly outcome: Outcome | null
}

/**
 * A family of lanes. `prepare` answers the job of an item (reply null: it is finished, the runtime removes it).
 * `outcome` decides what an attempt's end means: the item is due again (`due` names it), or leaves its lane (`done`
 * names it, or neither does and the attempt is the current one); an outcome that is neither final nor current changes
 * nothing.
 */
export interface LaneType<Job = unknown, Outcome = unknown> {
  /** Lanes are called `<prefix>` or `<prefix>/<name>`. */
  readonly prefix: string
  /** Length of an attempt in milliseconds, for which a claim lasts. */
  readonly holdMs: number
  /** Whether the claims of a dead worker last until their end (true), or are due at once (false). */
  readonly claimsStand: boolean
  /**
   * Whether a lane has one attempt at a time, started in due order. The commit that ends one claims the next, and a
   * valid claim of another worker holds its whole lane. `prepare` then names the same entities for all items of a lane.
   */
  readonly serial?: boolean
  /**
   * Due items are read as soon as a commit has put an item into the lane or ended an attempt of it, which costs a
   * read. Otherwise they are read at the next tick, four times a second, so that a lane performs at most four times
   * its room in a second.
   */
  readonly prompt?: boolean
  /**
   * Time for an attempt when its process stops, in milliseconds from the beginning of the stop; the whole remaining
   * time.
   */
  readonly stopMs?: number
  readonly prepare: CommandType<PrepareBody, Job | null>
  readonly outcome: CommandType<OutcomeBody<Outcome>, unknown>
  /**
   * Performers of a lane that `perform` has not taken yet; 0 holds its items. The runtime subtracts what it has staged.
   */
  room(lane: string): number
  perform(job: Job, claim: PerformedClaim): Promise<Outcome>
  /** The outcome of an effect that does not wait and takes microseconds; undefined means that `perform` runs it. */
  performAtOnce?(job: Job, claim: Omit<PerformedClaim, 'signal' | 'pass'>): Outcome | undefined
}

/** The claim of an attempt. */
export interface PerformedClaim {
  readonly item: string
  readonly lane: string
  readonly attempt: number
  readonly signal: AbortSignal
  /** Input of the fence, checked before the step that cannot be undone. */
  readonly pass: Pass
  /** The probable next items of a serial lane, so that their facts can be read ahead. They may never come. */
  readonly following?: string | null
}

/**
 * Everything that a worker runs. Timers: an item `<name>:<rest>` in the lane `timers` runs the command type
 * `timers[name]`.
 */
export interface Behaviours {
  readonly entities: readonly EntityType[]
  readonly commands: readonly CommandType[]
  readonly timers: Readonly<Record<string, CommandType<TimerBody, unknown>>>
  readonly lanes: readonly LaneType[]
}
