/**
 * protocol - the version of the messages between processes, and the reaction of a new process that is incompatible with
 * the running ones: it waits for them to leave, and then refuses to start.
 *
 * A new process writes its record before it reads the others, so that of two that start together one sees the other;
 * the earlier one, or a running one, continues. A starting process takes no shards.
 *
 * The number rises with every change of a parcel, a reply, an outcome, a worker's record or a stored row that a process
 * of the release before could not read. The messages of the last released number are understood for one release.
 *
 * 2: stored rows end with a checksum (`sum.ts`). Rows without one are read, but processes that speak 1 read no others.
 */
import type { Clock } from '../clock.ts'
import { assert } from '../fault.ts'
import type { Protocol, Store, WorkerRecord } from '../store.ts'
import type { Identity } from './options.ts'

/** The protocol that this release sends, and the oldest that it understands. */
export const PROTOCOL: Protocol = { speaks: 2, understands: 2 }
/** Records of releases before there was a number. */
const UNNUMBERED: Protocol = { speaks: 1, understands: 1 }
/** Stopping processes have left by then, and a starting store has answered. */
const WAIT_MS = 30_000
const LOOK_MS = 500
/** After a heartbeat without an answer. */
const AGAIN_MS = 50
/** A record that has not changed for this long belongs to no living process. */
const SILENT_MS = 10_000

/** The start is refused: other processes live that this one cannot talk to. */
export class StrangersLive extends Error {
  override readonly name = 'StrangersLive'
}

export interface Newcomer {
  readonly worker: string
  readonly store: Pick<Store, 'heartbeat' | 'retire'>
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>
  readonly identity: () => Identity
  readonly protocol?: Protocol | undefined
  processGone?(record: WorkerRecord): boolean
}

/** Whether two processes understand each other. */
export function understandEachOther(one: Protocol, other: Protocol): boolean {
  return one.speaks >= other.understands && other.speaks >= one.understands
}

/** The protocol in a worker's record. */
export function protocolOf({ protocol }: WorkerRecord): Protocol {
  return protocol ?? UNNUMBERED
}

/**
 * Resolves once every living process can be talked to.
 * @throws StrangersLive if one is incompatible for half a minute; Fault if the store does not answer for as long
 */
export async function meetOthers(newcomer: Newcomer): Promise<void> {
  const { worker, store, clock, protocol = PROTOCOL } = newcomer
  const startedAtMs = clock.monotonicMs()
  const others = new Others(newcomer)
  for (let beats = 1; ; beats += 1) {
    const record = { ...newcomer.identity(), protocol, beats, takesShards: false, isLeaving: false, isComing: true }
    const sentAtMs = clock.monotonicMs()
    const beat = await store.heartbeat({ worker, record })
    const atMs = clock.monotonicMs()
    const isOver = atMs - startedAtMs >= WAIT_MS
    const strangers = beat.kind === 'ok' ? others.strangers(beat.workers, { sentAtMs, atMs }) : null
    const [stranger] = strangers ?? []
    if (strangers !== null && stranger === undefined) return
    assert(strangers !== null || !isOver, 'The store does not answer')
    if (stranger !== undefined && isOver) {
      await store.retire(worker)
      throw new StrangersLive(formatMismatch(protocol, strangers?.length ?? 1, stranger))
    }
    await new Promise<void>((resolve) => clock.after(strangers === null ? AGAIN_MS : LOOK_MS, resolve))
  }
}

/** Those that lived or were coming when the newcomer first looked, and those that run since. */
class Others {
  private readonly newcomer: Newcomer
  private readonly seen = new Map<string, { text: string; atMs: number }>()
  private first: ReadonlySet<string> | null = null

  constructor(newcomer: Newcomer) {
    this.newcomer = newcomer
  }

  /** The protocols of incompatible processes. Takes all records, read between two times (monotonic). */
  strangers(records: ReadonlyMap<string, string>, { sentAtMs, atMs }: { sentAtMs: number; atMs: number }): Protocol[] {
    const { worker: me, protocol = PROTOCOL, processGone } = this.newcomer
    this.first ??= new Set(records.keys())
    const strangers: Protocol[] = []
    for (const [worker, text] of records) {
      const before = this.seen.get(worker)
      const since = before?.text === text ? before : { text, atMs }
      this.seen.set(worker, since)
      const record = JSON.parse(text) as WorkerRecord
      const yields = record.isComing === true && !this.first.has(worker)
      const isAlive = sentAtMs - since.atMs < SILENT_MS && processGone?.(record) !== true
      const counts = worker !== me && isAlive && !yields
      if (counts && !understandEachOther(protocol, protocolOf(record))) strangers.push(protocolOf(record))
    }
    return strangers
  }
}

function formatMismatch(mine: Protocol, count: number, theirs: Protocol): string {
  const who = count === 1 ? 'Another process' : `${count} other processes`
  return `Incompatible with the processes on this store: ${who} with protocol ${theirs.speaks}, this release uses ${mine.speaks} and understands ${mine.understands} and later. Stop the others first, or upgrade through the release between`
}
