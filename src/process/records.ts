/**
 * records - log lines of single events: the outcome of a recipient or a broadcast, a refused request
 *
 * Guarantees: records have only ids, names and numbers, never an address; a limited number of lines a second, then one
 * that counts the others, so that neither a flood of requests nor a burst of mail fills the disk.
 */

/** Writes a line of the log at `info`. */
export type WriteRecord = (facts: object, sentence: string) => void

/** The outcome of a recipient, or returned mail for it later. */
export interface EndedRecipient {
  readonly messageId: string
  /** Place among the recipients, from 0. */
  readonly recipientIndex: number
  /** The site of the attempt; null if no attempt ended it. */
  readonly site: string | null
  readonly result: string
  readonly code: number | null
  readonly class: string | null
  /** Attempts made. */
  readonly attempt: number
  /** Since the message was accepted. */
  readonly ms: number
}

/** A request that was refused, or failed. */
export interface RefusedRequest {
  readonly requestId: string
  readonly method: string
  /** As a template, `none` for an unknown route. */
  readonly route: string
  readonly status: number
  /** Code of the contract; null for a plain-text answer. */
  readonly code: string | null
  /** From its head to its answer. */
  readonly ms: number
}

/** The end of a broadcast, and the outcome of its recipients. */
export interface EndedBroadcast {
  readonly broadcastId: string
  readonly result: string
  readonly released: number
  readonly failed: number
}

/** Records written one line each. */
export interface Records {
  ended(end: EndedRecipient): void
  broadcastEnded(end: EndedBroadcast): void
  refused(request: RefusedRequest): void
}

/** Lines of a kind in any second. */
const REFUSED_A_SECOND = 50
const ENDED_A_SECOND = 1000
const BROADCASTS_A_SECOND = 50
const SECOND_MS = 1000

/** Writes no records, for a log without lines at `info`. */
export const NO_RECORDS: Records = {
  ended: () => undefined,
  broadcastEnded: () => undefined,
  refused: () => undefined,
}

/** Makes the records of a process. Takes a monotonic clock, milliseconds. */
export function makeRecords(write: WriteRecord, nowMs: () => number): Records {
  const refused = new SecondBound(REFUSED_A_SECOND, nowMs, (times) =>
    write({ times }, 'More requests were refused within a second than are logged'),
  )
  const ended = new SecondBound(ENDED_A_SECOND, nowMs, (times) =>
    write({ times }, 'More recipients reached a final state within a second than are logged'),
  )
  const broadcasts = new SecondBound(BROADCASTS_A_SECOND, nowMs, (times) =>
    write({ times }, 'More broadcasts ended within a second than are logged'),
  )
  return {
    ended(end) {
      if (ended.maySay()) write(end, 'Recipient ended')
    },
    broadcastEnded(end) {
      if (broadcasts.maySay()) write(end, 'Broadcast ended')
    },
    refused(request) {
      if (refused.maySay()) write(request, 'Request refused')
    },
  }
}

/** Returns true a limited number of times in a second, and reports at its end how often it returned false. */
export class SecondBound {
  private readonly timesMax: number
  private readonly nowMs: () => number
  private readonly more: (times: number) => void
  private sinceMs = Number.NEGATIVE_INFINITY
  private times = 0

  constructor(timesMax: number, nowMs: () => number, more: (times: number) => void) {
    this.timesMax = timesMax
    this.nowMs = nowMs
    this.more = more
  }

  /** Whether one more can be written now. */
  maySay(): boolean {
    const nowMs = this.nowMs()
    // The second is not over before its count is reported, however late the timer is.
    if (nowMs - this.sinceMs >= SECOND_MS && this.times <= this.timesMax) {
      this.sinceMs = nowMs
      this.times = 0
    }
    this.times += 1
    if (this.times === this.timesMax + 1)
      setTimeout(() => this.tell(), Math.max(0, this.sinceMs + SECOND_MS - nowMs)).unref()
    return this.times <= this.timesMax
  }

  private tell(): void {
    const times = this.times - this.timesMax
    this.times = 0
    this.sinceMs = Number.NEGATIVE_INFINITY
    this.more(times)
  }
}
