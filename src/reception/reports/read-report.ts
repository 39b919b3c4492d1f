/**
 * read-report - an aggregate report as it is counted: the rows about one domain, added up
 *
 * It runs in a thread with limits of time and memory (`report-reader.ts`).
 *
 * Spec reports.formats, reports.rows, reports.other-domain
 */

import { REPORT_BYTES_MAX, REPORT_PACKED_BYTES_MAX, REPORT_ROWS_MAX } from '../../../schemas/limits.ts'
import { type DmarcHead, ReportFault, type ReportIssue, type TlsHead } from '../../mail/aggregate/report.ts'
import { readReportMail } from '../../mail/aggregate/report-file.ts'
import { type Fold, makeFold } from '../../state/report/fold.ts'
import { type DayRows, DMARC_ROWS, dmarcNames, packPolicy, TLS_ROWS, tlsNames } from '../../state/report/report-days.ts'

export interface ReportJob {
  /** The mail, in memory that threads share. */
  readonly raw: Uint8Array
  /** The domain that the report has to be about. */
  readonly domain: string
  /** Domain of the reporter. */
  readonly reporter: string
}

/** A report; `rows` and `messages` count what it has about the domain before it is added up. */
export interface CountedReport {
  readonly head: DmarcHead | TlsHead
  readonly added: DayRows
  readonly rows: number
  readonly messages: number
}

export type ReadReport = CountedReport | { readonly issue: ReportIssue | 'other_domain' }

/** Counts of a report above this are no counts of mail, and sums of such reports stay exact. */
const MESSAGES_MAX = 1_000_000_000_000

const BOUNDS = { packedBytesMax: REPORT_PACKED_BYTES_MAX, bytesMax: REPORT_BYTES_MAX, rowsMax: REPORT_ROWS_MAX }

/** Reads the report in a mail. Rejects only on a fault. */
export async function readReport({ raw, domain, reporter }: ReportJob): Promise<ReadReport> {
  const dmarc = new Sum(makeFold(DMARC_ROWS))
  const tls = new Sum(makeFold(TLS_ROWS))
  try {
    const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
    const head = await readReportMail(bytes, BOUNDS, {
      dmarc: (record) => dmarc.add(record.messages, dmarcNames(record, domain)),
      tls: (record) => {
        if (record.domain === domain) tls.add(record.sessions, tlsNames(record, reporter))
      },
    })
    if (head.kind === 'tls') return tls.rows === 0 ? { issue: 'other_domain' } : tls.report(head)
    // A receiver may name the domain of the mail instead of the domain that has the record.
    if (head.domain !== domain && !head.domain.endsWith(`.${domain}`)) return { issue: 'other_domain' }
    return dmarc.report(head)
  } catch (error) {
    if (error instanceof ReportFault) return { issue: error.issue }
    throw error
  }
}

/** Rows added up, and how many there were. */
class Sum {
  rows = 0
  #messages = 0
  readonly #fold: Fold

  constructor(fold: Fold) {
    this.#fold = fold
  }

  add(count: number, names: readonly string[]): void {
    this.rows += 1
    this.#messages += count
    if (this.#messages > MESSAGES_MAX) throw new ReportFault('malformed', 'its counts are no counts of mail')
    if (count > 0) this.#fold.add(count, names)
  }

  report(head: DmarcHead | TlsHead): CountedReport {
    const policy = head.kind === 'dmarc' ? packPolicy(head.policy) : 0
    return { head, added: { policy, rows: this.#fold.rows() }, rows: this.rows, messages: this.#messages }
  }
}
