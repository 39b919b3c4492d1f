/**
 * members - which workers live, judged by this process's own clock.
 *
 * A worker is dead if it has no record, if its record has not changed for ten seconds, if it has been silent for three
 * and a half and the store no longer knows its connection, or if its process on this machine is gone. Others then take
 * its shards. A worker whose own heartbeats were late judges no other by silence for ten seconds.
 *
 * A dead worker may only be frozen or disconnected, and then knows the outcomes of its attempts. It counts as gone, and
 * its attempts are repeated, when its process is known to be gone, when it has no record, or after a minute of silence.
 */
import type { WorkerRecord } from '../store.ts'

const SILENT_MS = 10_000
/**
 * After this silence the store is asked for the worker's connection, because a heartbeat may be late, but is sent
 * every three seconds.
 */
const SUSPECT_MS = 3_500
const BEAT_LATE_MS = 6_000
/** Most freezes and partitions end within this time. Attempts of a machine that has vanished wait for it. */
export const CLAIMS_STAND_MS = 60_000

interface Seen {
  readonly text: string
  readonly record: WorkerRecord
  readonly changedAtMs: number
  /** Its process is known to be gone. */
  gone: boolean
  /** The store no longer knew its connection when it had been silent for a while. */
  cutOff: boolean
}

export interface MembersDeps {
  /** Whether the process that a record names is known to be gone (same machine). */
  readonly processGone?: ((record: WorkerRecord) => boolean) | undefined
  /** How long claims of a silent worker last; a minute. */
  readonly claimsStandMs?: number | undefined
}

export class Members {
  private readonly me: string
  private readonly processGone: (record: WorkerRecord) => boolean
  private readonly claimsStandMs: number
  private seen = new Map<string, Seen>()
  private punctualSinceMs: number | null = null
  private notedAtMs = 0
  private takersBefore = ''
  private calmAtMs = Number.POSITIVE_INFINITY

  constructor(me: string, { processGone = () => false, claimsStandMs = CLAIMS_STAND_MS }: MembersDeps = {}) {
    this.me = me
    this.processGone = processGone
    this.claimsStandMs = claimsStandMs
  }

  /** Takes in all records, read at `atMs` (monotonic). */
  note(records: ReadonlyMap<string, string>, atMs: number): void {
    if (this.punctualSinceMs === null || atMs - this.notedAtMs > BEAT_LATE_MS) this.punctualSinceMs = atMs
    this.notedAtMs = atMs
    const seen = new Map<string, Seen>()
    for (const [worker, text] of records) {
      const before = this.seen.get(worker)
      const same = before !== undefined && before.text === text
      const record = same ? before.record : (JSON.parse(text) as WorkerRecord)
      const kept = same ? before : { text, record, changedAtMs: atMs, gone: false, cutOff: false }
      kept.gone ||= worker !== this.me && this.processGone(record)
      seen.set(worker, kept)
    }
    this.seen = seen
    const takers = this.takers(atMs).join()
    if (takers === this.takersBefore) return
    this.takersBefore = takers
    this.calmAtMs = atMs
  }

  /** Connections of workers that have been silent for long enough to be asked for, in the store's run `runId`. */
  suspects(atMs: number, runId: string): number[] {
    return this.silent(atMs, runId).map(({ record }) => record.clientId)
  }

  /** Of the requested connections, the store knows `connected`; a worker without one that is still silent is dead. */
  asked(
    clients: readonly number[],
    connected: ReadonlySet<number>,
    { atMs, runId }: { atMs: number; runId: string },
  ): void {
    for (const seen of this.silent(atMs, runId)) {
      const { clientId } = seen.record
      if (clients.includes(clientId) && !connected.has(clientId)) seen.cutOff = true
    }
  }

  /** Whether a worker is dead. The empty name is no worker. */
  isDead(worker: string, atMs: number): boolean {
    if (worker === this.me) return false
    const seen = this.seen.get(worker)
    return seen === undefined || seen.gone || seen.cutOff || this.isSilent(seen, atMs, SILENT_MS)
  }

  /** Whether claims of a worker may be performed by others. The empty name is no worker. */
  isGone(worker: string, atMs: number): boolean {
    if (worker === this.me) return false
    const seen = this.seen.get(worker)
    return seen === undefined || seen.gone || this.isSilent(seen, atMs, this.claimsStandMs)
  }

  /** Whether a worker reports that it cannot serve its shards. */
  ails(worker: string): boolean {
    return this.seen.get(worker)?.record.ails === true
  }

  /** Whether a worker had a record at the last read. */
  knows(worker: string): boolean {
    return worker === this.me || this.seen.has(worker)
  }

  /** Other workers that are not dead. */
  others(atMs: number): string[] {
    return [...this.seen.keys()].filter((worker) => worker !== this.me && !this.isDead(worker, atMs))
  }

  /** Other workers that live, take shards, are not about to end and do not ail, in the order of their names. */
  takers(atMs: number): string[] {
    return this.others(atMs)
      .filter((worker) => {
        const record = this.seen.get(worker)?.record
        return record?.takesShards === true && !record.isLeaving && record.ails !== true
      })
      .sort()
  }

  /** How many other workers take shards, including those about to end, whose effects still run. */
  sharers(atMs: number): number {
    return this.others(atMs).filter((worker) => this.seen.get(worker)?.record.takesShards === true).length
  }

  /** For how long the same workers have taken shards, ms. */
  calmMs(atMs: number): number {
    return atMs - this.calmAtMs
  }

  /** Every dead worker with a record, and the record as last read. */
  gone(atMs: number): { readonly worker: string; readonly text: string }[] {
    const all = [...this.seen].map(([worker, { text }]) => ({ worker, text }))
    return all.filter(({ worker }) => this.isGone(worker, atMs))
  }

  /** Other workers with valid claims. */
  performing(atMs: number): string[] {
    return [...this.seen.keys()].filter((worker) => worker !== this.me && !this.isGone(worker, atMs))
  }

  /** A record that has not changed for `ms`, looked at by one who was punctual all that time. */
  private isSilent({ changedAtMs }: Seen, atMs: number, ms: number): boolean {
    const fresh = atMs - this.notedAtMs <= BEAT_LATE_MS // After a pause, timers run before the records are read again.
    const punctual = fresh && this.punctualSinceMs !== null && atMs - this.punctualSinceMs >= SILENT_MS
    return punctual && atMs - changedAtMs >= ms
  }

  private silent(atMs: number, runId: string): Seen[] {
    return [...this.seen].flatMap(([worker, seen]) => {
      const mayAsk = worker !== this.me && !seen.gone && !seen.cutOff && atMs - seen.changedAtMs >= SUSPECT_MS
      return mayAsk && seen.record.runId === runId ? [seen] : []
    })
  }
}
