/**
 * store - the interface between the runtime and the store.
 *
 * Two implementations answer alike: `redis/store.ts` and the in-memory store of the simulation; a test feeds both the
 * same random requests. A promise of this interface never rejects for an external failure, which is a value instead.
 */
import type { Fact, FactValue, Op, Signal, Write } from './behaviour.ts'

/** One atomic step of a shard. */
export interface Commit {
  readonly shard: number
  /** The fencing token under which the shard is held, `<epoch>:<nonce>`. */
  readonly token: string
  /** The sequence number before this commit. */
  readonly seq: number
  readonly commitId: string
  readonly nowMs: number
  /** Earliest deadline of the asks inside, ms of the store's clock; 0 for none. */
  readonly deadlineMs: number
  /** Last id given out; '' leaves it. */
  readonly lid: string
  /** Entry id (`sortableEntryId`) of the first new id, which must be above `lid`; '' for none. */
  readonly firstEntryId: string
  /** New cursors of mailbox and outcomes; '' leaves them. */
  readonly cursor: string
  readonly outcomesCursor: string
  /** Only finishes or frees: runs at maxmemory too. */
  readonly frees: boolean
  /** For people, in the journal: counts such as `asks=3 ops=20`. */
  readonly note: string
  readonly ops: readonly Op[]
  /** The same, with keys numbered and neighbours joined (`mergeOps`); computed on demand if absent. */
  readonly merged?: Merged
  /**
   * Replies that the commit publishes for workers (`Ears.replies`) once it cannot be lost, one line for each parcel;
   * delivery is not confirmed. Absent means nothing.
   */
  readonly told?: ReadonlyMap<string, string>
}

export type Verdict =
  /** Committed. `dup` means that an earlier sending of the same commit was. */
  | { readonly kind: 'ok' | 'dup' }
  /** Another token holds the shard. */
  | { readonly kind: 'fenced' }
  /** The store's sequence number is another one. */
  | { readonly kind: 'conflict'; readonly seq: number }
  /** The store's clock has passed `deadlineMs`; nothing written. */
  | { readonly kind: 'late'; readonly nowMs: number }
  /** `nowMs` is over five seconds from the store's clock; nothing written. */
  | { readonly kind: 'clock'; readonly nowMs: number }
  /** A PEXPIREAT names a key that does not exist; nothing written. */
  | { readonly kind: 'missing'; readonly key: string }
  /** An op outside the rules; nothing written. */
  | { readonly kind: 'badop'; readonly reason: string }
  /** The store refused before anything ran: OOM, READONLY, MISCONF, LOADING, NOREPLICAS, CROSSSLOT. */
  | { readonly kind: 'refused'; readonly reason: string }
  /**
   * The shard's keys are being moved, or their node changes its state, so the command did not run, and a retry will
   * succeed soon.
   */
  | { readonly kind: 'away'; readonly reason: string }
  /** Sent, but the connection ended without an answer, so the outcome is unknown. */
  | { readonly kind: 'lost' }
  /** Never handed to the store. */
  | { readonly kind: 'unsent' }
  /** Journal and sequence number disagree, or the answer is unknown, so the shard stops. */
  | { readonly kind: 'torn'; readonly reason: string }

/**
 * Owners with this prefix are not workers. The shard is being moved to another primary, and no process may take it or
 * write to it.
 */
export const MOVE_PREFIX = 'move:'

export interface Meta {
  /** A worker, '' for none, or a move. */
  owner: string
  token: string
  seq: number
  last: string
  lid: string
  cursor: string
  outcomesCursor: string
  tries: number
  /** When its last move between two primaries ended, by their clock; 0 if there was none. */
  freedAtMs: number
}

/** For a shard that was never owned. */
export const NO_META: Meta = {
  owner: '',
  token: '',
  seq: 0,
  last: '',
  lid: '',
  cursor: '',
  outcomesCursor: '',
  tries: 0,
  freedAtMs: 0,
}

export type Acquired =
  | { readonly kind: 'ok'; readonly meta: Meta }
  /** The token that was seen is no longer the one there. */
  | { readonly kind: 'changed'; readonly meta: Meta }
  | { readonly kind: 'failed' }

/** Protocol numbers of a process: the one that it sends, and the oldest that it understands. */
export interface Protocol {
  readonly speaks: number
  readonly understands: number
}

/** A worker's record for others, stored as JSON under its id. */
export interface WorkerRecord {
  beats: number
  host: string
  bootId: string
  pidNamespace: string
  pid: number
  startTime: string
  /** Id of the connection of its commits, in the run of the store that `runId` names. */
  clientId: number
  runId: string
  /** Whether it takes shards. */
  takesShards: boolean
  /** It gives its shards back and is about to end. */
  isLeaving: boolean
  /** It has not begun: it looks whom it would meet. Absent once it has, and in records of earlier releases. */
  isComing?: boolean
  /**
   * It cannot reach a part of the store: healthy workers take its shards. Absent in records of earlier releases.
   */
  ails?: boolean
  /** The protocol that it sends. Absent in records of earlier releases. */
  protocol?: Protocol
  /** Its version, for people. */
  roles: readonly string[]
  /**
   * Version of the keys of the service that it has loaded, and values that distinguish the secrets that it has. Absent
   * in records of earlier releases.
   */
  keys?: { version: number; secrets: readonly string[] }
  /** Where it serves HTTP: to clients, and to operators. Absent if it does not, and in records of earlier releases. */
  urls?: { baseUrl: string; operatorUrl: string }
}

/** For how long a connection has owed an answer, ms; 0 when it owes none. */
export interface Lag {
  readonly connection: string
  /** One of several stores, to which it is sent. */
  readonly store?: string
  readonly ms: number
}

export type Beat =
  | { readonly kind: 'ok'; readonly nowMs: number; readonly workers: ReadonlyMap<string, string> }
  | { readonly kind: 'failed' }

/** The two streams through which a shard receives messages of other processes. */
export type Inbox = 'mailbox' | 'outcomes'

/** Commands of one turn of a process for one shard, on their way there. */
export interface Parcel {
  readonly shard: number
  readonly parcelId: string
  /** Commands in it. */
  readonly count: number
  /** Their content (`packParcel`), kept under `staged` for a minute. */
  readonly said: Uint8Array
}

/** Parcels of one turn of a process. */
export interface Enqueue {
  /** The worker that receives the replies. */
  readonly replyTo: string
  /** A mailbox that holds as many commands takes no parcel. */
  readonly commandsMax: number
  readonly parcels: readonly Parcel[]
}

/**
 * Result for a parcel. `busy` means that the mailbox is full. `lost`: sent, no answer. `unsent`: it was not stored.
 */
export type Enqueued = 'ok' | 'busy' | 'lost' | 'unsent'

/** An entry of a mailbox, or of outcomes. */
export interface InboxEntry {
  readonly id: string
  /** Name of its content; for an outcome, the id of its command. */
  readonly parcelId: string
  readonly replyTo: string
  /** Null: it is no longer kept. */
  readonly body: Uint8Array | null
}

/** Something came into the mailbox or the outcomes of a shard. */
export interface Bell {
  readonly shard: number
  /** The new entry of the mailbox; null if it must be read. */
  readonly entry: InboxEntry | null
  /** The entry before it. */
  readonly before: string
}

/** Selects entries of one stream of a shard: from an id on, or after it with `(`, up to a maximum number. */
export interface EntriesRequest {
  readonly shard: number
  readonly of: Inbox
  readonly from: string
  readonly count: number
}

/** The parcel whose replies are read, and their slice (`mailbox/replies.ts`). */
export interface RepliesRequest {
  readonly shard: number
  readonly parcelId: string
  readonly slice: number
}

/** The fields of `replies` of a parcel from place 0 on, and the clock of the store that holds them. */
export interface Replies {
  readonly nowMs: number
  readonly fields: readonly string[]
}

/** The read positions of a shard's owner: the last entries read, `0-0` for none. */
export interface Cursors {
  readonly shard: number
  readonly mailbox: string
  readonly outcomes: string
}

/** Notifications of other processes. Any of them can be lost, so subscribers also poll. */
export interface Receivers {
  /** Something came for shards that this worker owned when it came. */
  bells(bells: readonly Bell[]): void
  /** Replies to this worker's asks, published by commits. The same can come again. */
  replies(text: string): void
  /** A shard was released. */
  released(shard: number): void
  /** A worker has come, or is about to end. */
  joined(): void
}

/** Listens until it is closed. */
export interface Listening {
  close(): void
}

export interface Store {
  /** Reads all facts of one shard in one atomic step; null when the store did not answer. */
  read(shard: number, facts: readonly Fact[]): Promise<readonly FactValue[] | null>
  commit(commit: Commit): Promise<Verdict>
  /**
   * Takes a shard: changes nothing unless its token is `sawToken` ('' for none yet) and it is not moved. Counts
   * `tries`, leaves `fenced`.
   */
  acquire(request: { shard: number; sawToken: string; newToken: string; worker: string }): Promise<Acquired>
  /** Releases a shard, whose owner becomes '', and notifies others. Does nothing for a different token. */
  release(request: { shard: number; token: string }): Promise<boolean>
  /**
   * The state found by the next owner when it took the shard from `token`; null if there is none (or the store did not
   * answer).
   */
  fenced(request: { shard: number; token: string }): Promise<{ seq: number; last: string } | null>
  /** Meta of many shards, null if missing, undefined if unknown because its store did not answer. */
  metas(shards: readonly number[]): Promise<readonly (Meta | null | undefined)[] | null>
  /** Writes a worker's record and reads the clock and all records. Goes over the commit connection. */
  heartbeat(request: { worker: string; record: WorkerRecord }): Promise<Beat>
  /** Removes a worker's record; with `seen`, only if the record is still that text: its worker may beat again. */
  retire(worker: string, seen?: string): Promise<void>
  /** All records, and which of `clients` are still connected; null when the store did not answer. */
  look(clients: readonly number[]): Promise<{ workers: ReadonlyMap<string, string>; connected: Set<number> } | null>
  /** Puts parcels into mailboxes, in their order, and notifies their owners. Returns the result of each. */
  enqueue(request: Enqueue): Promise<readonly Enqueued[]>
  /** Notifies the current subscribers; delivery is not confirmed. */
  signal(signals: readonly Signal[]): void
  /** Hands in an outcome for the next owner of the shard. False: no answer, so it may be stored or not. */
  handIn(request: { shard: number; cmdId: string; body: Uint8Array }): Promise<boolean>
  /**
   * Entries, oldest first, with their content; not all if it is large. Null when the store did not answer.
   */
  entries(request: EntriesRequest): Promise<readonly InboxEntry[] | null>
  /** The shards with entries in their mailbox or outcomes after the cursors; null when the store did not answer. */
  waiting(cursors: readonly Cursors[]): Promise<readonly number[] | null>
  /** Receives notifications of other processes for `worker`. */
  listen(worker: string, ears: Receivers): Listening
  /** The replies of each parcel and the store's clock, in one step; null if the store did not answer. */
  replies(parcels: readonly RepliesRequest[]): Promise<readonly (Replies | null)[]>
}

/** Every request of a store, for `changeStore`. */
const REQUESTS: Readonly<Record<keyof Store, true>> = {
  read: true,
  commit: true,
  acquire: true,
  release: true,
  fenced: true,
  metas: true,
  heartbeat: true,
  retire: true,
  look: true,
  enqueue: true,
  handIn: true,
  entries: true,
  waiting: true,
  listen: true,
  replies: true,
  signal: true,
}

/** One argument of a command of the store. */
export type Arg = string | Uint8Array

/** One command: the arguments of `parts` one after the other, `count` in all. */
export interface Joined {
  readonly write: Write
  /** Number of its key, as scripts count: KEYS[place]. */
  readonly place: number
  readonly parts: (readonly Arg[])[]
  count: number
}

/** Numbered keys and the commands over them. Keys 1 and 2 are the caller's. */
export interface Merged {
  readonly keys: readonly string[]
  readonly commands: readonly Joined[]
}

/** A commit's clock may differ from the store's by this much. */
export const CLOCK_OFF_MS = 5_000

/** The same store, with the methods in `changes` replaced. */
export function changeStore(store: Store, changes: Partial<Store>): Store {
  const bound: Partial<Record<keyof Store, unknown>> = {}
  for (const name of Object.keys(REQUESTS) as (keyof Store)[]) {
    const own = store[name] as (...args: unknown[]) => unknown
    bound[name] = (...args: unknown[]) => own.apply(store, args)
  }
  return { ...(bound as unknown as Store), ...changes }
}
