/**
 * members - which workers live, judged by this process's own clock.
 *
 * A worker is dead when it has no record, when its record has not changed for ten seconds, or (told once, at the start)
 * when its process on this machine is gone. A worker whose own beats were late judges nobody by silence for ten seconds.
 */
import type { WorkerRecord } from './store.ts'

const SILENT_MS = 10_000
const BEAT_LATE_MS = 6_000

interface Seen {
  record: string
  changedAtMs: number
}

export class Members {
  private readonly me: string
  private readonly processGone: (record: WorkerRecord) => boolean
  private seen = new Map<string, Seen>()
  private punctualSinceMs: number | null = null
  private notedAtMs = 0

  constructor(me: string, processGone: (record: WorkerRecord) => boolean) {
    this.me = me
    this.processGone = processGone
  }

  /** Takes in all records, read at `atMs` (monotonic). */
  note(records: ReadonlyMap<string, string>, atMs: number): void {
    if (this.punctualSinceMs === null || atMs - this.notedAtMs > BEAT_LATE_MS) this.punctualSinceMs = atMs
    this.notedAtMs = atMs
    const seen = new Map<string, Seen>()
    for (const [worker, record] of records) {
      const before = this.seen.get(worker)
      seen.set(worker, before !== undefined && before.record === record ? before : { record, changedAtMs: atMs })
    }
    this.seen = seen
  }

  /** Whether a worker is no more. The empty name is nobody. */
  isDead(worker: string, atMs: number): boolean {
    if (worker === this.me) return false
    const seen = this.seen.get(worker)
    if (seen === undefined) return true
    if (this.processGone(JSON.parse(seen.record) as WorkerRecord)) return true
    const fresh = atMs - this.notedAtMs <= BEAT_LATE_MS // After a pause, timers run before the records are read again.
    const punctual = fresh && this.punctualSinceMs !== null && atMs - this.punctualSinceMs >= SILENT_MS
    return punctual && atMs - seen.changedAtMs >= SILENT_MS
  }

  /** Whether a worker had a record when they were last read. */
  knows(worker: string): boolean {
    return worker === this.me || this.seen.has(worker)
  }

  /** Other workers that are not dead. */
  others(atMs: number): string[] {
    return [...this.seen.keys()].filter((worker) => worker !== this.me && !this.isDead(worker, atMs))
  }

  /** Every worker with a record that is dead. */
  dead(atMs: number): string[] {
    return [...this.seen.keys()].filter((worker) => this.isDead(worker, atMs))
  }
}
