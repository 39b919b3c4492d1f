/** work - an entry of a shard's queue: a command with its origin and its waiting caller. */
import type { Command, CommandType, Decision, Staged } from './behaviour.ts'

/** A command whose turn was dropped. */
export interface Failed {
  readonly kind: 'fault'
  readonly isDamaged?: true
}

/**
 * Result of an ask. `unavailable`: nothing was accepted and nothing will be. `silent`: the outcome is unknown; no
 * answer. `fault`: its behaviour threw, or, with `isDamaged`, met a stored value that is not what was written; nothing
 * was accepted. Processes of earlier commits ignore the mark.
 */
export type AskResult =
  | { readonly kind: 'answer'; readonly reply: unknown }
  | { readonly kind: 'unavailable' }
  | Failed
  | { readonly kind: 'silent' }

export type WorkSource = 'local' | 'mailbox' | 'claim' | 'outcome' | 'timer' | 'free' | 'index'

/** The entry of a mailbox that brought commands. */
export interface Origin {
  readonly parcelId: string
  /** The worker that receives the replies; '' for none. */
  readonly replyTo: string
  /** Commands in it. */
  readonly count: number
}

export interface Work {
  readonly source: WorkSource
  readonly type: CommandType
  readonly command: Command
  /** Store time after which the ask may no longer become true; 0 for none. */
  readonly deadlineMs: number
  /** Monotonic time at which it came in. */
  readonly cameAtMs: number
  readonly bytes: number
  /** Rounds of reading that it has asked for. */
  needs: number
  /** The error of its behaviour while it named its facts. */
  broken: Error | null
  /** Mailbox lane: its deadline has passed; it is consumed without being executed. */
  late: boolean
  /** Local lane: the waiting caller; removed once answered. */
  answer: ((result: AskResult) => void) | null
  /** Of a command or outcome that came from another process: its entry, which the commit's cursor passes. */
  readonly entryId: string
  /** Mailbox lane: the parcel that brought it, and its place in the parcel from 0. */
  readonly origin: Origin | null
  readonly place: number
  /** Claim, outcome, timer: the item. */
  readonly lane: string
  readonly item: string
}

/** Asks an actor of a shard. */
export type Ask = (shard: number, command: Command) => Promise<AskResult>

/** Work without an asker: `source` and its subject. */
export function internalWork(
  source: WorkSource,
  type: CommandType,
  { command, lane, item, cameAtMs }: { command: Command; lane: string; item: string; cameAtMs: number },
): Work {
  return {
    source,
    type,
    command,
    deadlineMs: 0,
    cameAtMs,
    bytes: 0,
    needs: 0,
    broken: null,
    late: false,
    answer: null,
    entryId: '',
    origin: null,
    place: 0,
    lane,
    item,
  }
}

/** Work for an ask of this process. */
export function askedWork(
  type: CommandType,
  command: Command,
  { cameAtMs, deadlineMs, bytes, answer }: Pick<Work, 'cameAtMs' | 'deadlineMs' | 'bytes' | 'answer'>,
): Work {
  return {
    source: 'local',
    type,
    command,
    deadlineMs,
    cameAtMs,
    bytes,
    needs: 0,
    broken: null,
    late: false,
    answer,
    entryId: '',
    origin: null,
    place: 0,
    lane: '',
    item: '',
  }
}

/** Answers the asker of a work, once. */
export function answerWork(work: Work, result: AskResult): void {
  const answer = work.answer
  work.answer = null
  answer?.(result)
}

/** Bytes that a command brings along. */
export function bytesOfBlobs({ blobs = [] }: Command): number {
  return blobs.reduce((bytes, { length }) => bytes + length, 0)
}

/** The writes of a decision. */
export function stagedOf(decision: Decision<unknown>): Staged {
  if (decision.kind === 'refuse') return decision.records ?? {}
  return decision.kind === 'done' ? decision : {}
}
