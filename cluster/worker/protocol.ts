/**
 * protocol - the number of what processes say to each other through the store, and what a newcomer does that cannot talk to the
 * living: it waits for them to leave, and then refuses to start.
 *
 * The number rises with every change of what a parcel, a reply, an outcome or a worker's record says that a process of the
 * release before could not read. What the last released number spoke is understood for one release.
 */
import type { Clock } from '../clock.ts'
import type { Protocol, Store, WorkerRecord } from '../store.ts'

/** What this release speaks, and the oldest that it understands. */
export const PROTOCOL: Protocol = { speaks: 1, understands: 1 }
/** Records of releases before there was a number. */
const UNNUMBERED: Protocol = { speaks: 1, understands: 1 }
/** Processes that are told to stop have left by then. */
const WAIT_MS = 30_000
const LOOK_MS = 500
/** A record that has not changed for so long is of nobody who lives. */
const SILENT_MS = 10_000

/** The start is refused: other processes live that this one cannot talk to. */
export class StrangersLive extends Error {
  override readonly name = 'StrangersLive'
}

export interface Newcomer {
  readonly store: Pick<Store, 'look'>
  readonly clock: Pick<Clock, 'monotonicMs' | 'after'>
  readonly protocol?: Protocol | undefined
  processGone?(record: WorkerRecord): boolean
}

/** Whether two processes understand each other. */
export function understandEachOther(one: Protocol, other: Protocol): boolean {
  return one.speaks >= other.understands && other.speaks >= one.understands
}

/**
 * Resolves once every living process can be talked to, or the store does not answer: who starts finds that out next.
 * @throws StrangersLive where one cannot, for half a minute
 */
export async function meetOthers({ store, clock, protocol = PROTOCOL, processGone }: Newcomer): Promise<void> {
  const startedAtMs = clock.monotonicMs()
  const seen = new Map<string, { text: string; atMs: number }>()
  for (;;) {
    const atMs = clock.monotonicMs()
    const strangers: Protocol[] = []
    for (const [worker, text] of (await store.look([]))?.workers ?? []) {
      const before = seen.get(worker)
      const since = before?.text === text ? before : { text, atMs }
      seen.set(worker, since)
      const record = JSON.parse(text) as WorkerRecord
      const theirs = record.protocol ?? UNNUMBERED
      const isAlive = atMs - since.atMs < SILENT_MS && processGone?.(record) !== true
      if (isAlive && !understandEachOther(protocol, theirs)) strangers.push(theirs)
    }
    const [stranger] = strangers
    if (stranger === undefined) return
    if (atMs - startedAtMs >= WAIT_MS) throw new StrangersLive(sentenceOf(protocol, strangers.length, stranger))
    await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve))
  }
}

function sentenceOf(mine: Protocol, count: number, theirs: Protocol): string {
  const who = count === 1 ? 'Another process' : `${count} other processes`
  return `Cannot talk to what runs on this store: ${who} of protocol ${theirs.speaks}, this release speaks ${mine.speaks} and understands ${mine.understands} and later. Stop the others first, or go by way of the release between`
}
