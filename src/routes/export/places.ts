/**
 * places - how many exports a process has open, and how fast each reads the store
 *
 * An export reads for minutes what a search may read in seconds, so it has a pace of its own: the searches of its
 * account keep all their rows, and exports of all accounts keep the store no busier than a few searches. A process
 * counts for itself.
 *
 * Spec export.bounds
 */

import type { FactValue } from '../../../cluster/behaviour.ts'
import { ACCOUNT_EXPORTS_MAX, EXPORTS_MAX } from '../../../schemas/limits.ts'
import { countRows } from '../../http/scans.ts'
import type { Reader } from '../../views/key.ts'

/** Rows of the store that an export reads in a second, and that it may read at once. */
const ROWS_PER_SECOND = 30_000
const ROWS_AT_ONCE = 30_000

/** The place of one export. */
export interface ExportPlace {
  /** A reader at the pace of exports. */
  paced(read: Reader): Reader
  /** Releases the place; further calls do nothing. */
  leave(): void
}

/** The places of a process. */
export class ExportPlaces {
  readonly #accounts = new Map<string, number>()
  #all = 0
  readonly #nowMs: () => number

  /** @param nowMs monotonic clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Exports that are open. */
  get open(): number {
    return this.#all
  }

  /** Takes a place for an account. Returns the maximum instead if all are taken. */
  enter(accountId: string): ExportPlace | number {
    const mine = this.#accounts.get(accountId) ?? 0
    if (mine >= ACCOUNT_EXPORTS_MAX) return ACCOUNT_EXPORTS_MAX
    if (this.#all >= EXPORTS_MAX) return EXPORTS_MAX
    this.#accounts.set(accountId, mine + 1)
    this.#all += 1
    let hasLeft = false
    const leave = (): void => {
      if (hasLeft) return
      hasLeft = true
      this.#all -= 1
      const left = (this.#accounts.get(accountId) ?? 1) - 1
      if (left > 0) this.#accounts.set(accountId, left)
      else this.#accounts.delete(accountId)
    }
    return { leave, paced: (read) => paceReads(read, this.#nowMs) }
  }
}

function paceReads(read: Reader, nowMs: () => number): Reader {
  let rows = ROWS_AT_ONCE
  let filledAtMs = nowMs()
  return (async (shard, facts) => {
    const now = nowMs()
    rows = Math.min(ROWS_AT_ONCE, rows + ((now - filledAtMs) * ROWS_PER_SECOND) / 1_000)
    filledAtMs = now
    if (rows <= 0) await new Promise((resolve) => setTimeout(resolve, (-rows / ROWS_PER_SECOND) * 1_000))
    const seen = await read(shard, facts)
    rows -= countRows(seen as readonly FactValue[] | null)
    return seen
  }) as Reader
}
