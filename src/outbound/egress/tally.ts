/**
 * tally - results of attempts by source and site, summed in memory and added to the store every few seconds
 *
 * Outside of any commit: a crash loses the last seconds.
 */

import { dayName } from '../../state/calendar.ts'
import type { MailOutcome } from '../thread/thread-job.ts'

/** Results of sources at sites between two writes; those beyond share the site `other`. */
const ROWS_MAX = 2_000
const OTHER = 'other'

export interface ResultSink {
  count(day: string, results: readonly Row[]): Promise<void>
}

interface Row {
  readonly result: string
  readonly source: string
  readonly site: string
  attempts: number
}

export interface TallyDeps {
  readonly sink: ResultSink
  readonly nowMs: () => number
  readonly counted: (source: string, result: string) => void
}

export class Tally {
  private readonly deps: TallyDeps
  private rows = new Map<string, Row>()

  constructor(deps: TallyDeps) {
    this.deps = deps
  }

  /** An attempt ended. One that was not made counts for nothing. */
  note(source: string, site: string, { result }: Pick<MailOutcome, 'result'>): void {
    if (result === 'returned') return
    this.deps.counted(source, result)
    const key = `${result}|${source}|${site}`
    const known = this.rows.get(key)
    if (known !== undefined) known.attempts += 1
    else if (this.rows.size < ROWS_MAX || site === OTHER) this.rows.set(key, { result, source, site, attempts: 1 })
    else this.add(`${result}|${source}|${OTHER}`, { result, source, site: OTHER, attempts: 1 })
  }

  /** Writes the sums. Those that the store does not take are lost. */
  async flush(): Promise<void> {
    const rows = [...this.rows.values()]
    this.rows = new Map()
    if (rows.length > 0) await this.deps.sink.count(dayName(this.deps.nowMs()), rows).catch(() => undefined)
  }

  private add(key: string, row: Row): void {
    const known = this.rows.get(key)
    if (known === undefined) this.rows.set(key, row)
    else known.attempts += row.attempts
  }
}
