/**
 * received-parser - the thread in which received mail is parsed (`mail/mime/`), within 20 seconds and a bound of
 * memory.
 *
 * Guarantees: each mail has a result. If parsing was ended, it has the top fields reported by then and the issue.
 *
 * Spec inbound.parse
 */

import { failMail, type ReceivedMail } from '../mail/mime/received-mail.ts'
import { WorkerPool } from '../process/worker-pool.ts'
import { type ParsedMail, packMail } from './parsed-mail.ts'

/** Spec inbound.parse: limits of one mail. */
const PARSE_MS_MAX = 20_000
const HEAP_MB_MAX = 256

export interface ReceivedParser {
  /** Parses a mail; null if it has not begun because too many are waiting or the pool is closed. Never rejects. */
  parse(raw: Uint8Array): Promise<ParsedMail | null>
  close(): Promise<void>
}

/** Makes the pool. `parseMsMax` is the time limit of one mail. */
export function makeReceivedParser(parseMsMax: number = PARSE_MS_MAX): ReceivedParser {
  const pool = new WorkerPool<Uint8Array, ParsedMail, ReceivedMail>({
    body: new URL('./received-parser-worker.js', import.meta.url),
    jobMsMax: parseMsMax,
    heapMbMax: HEAP_MB_MAX,
  })
  return {
    async parse(raw) {
      const run = await pool.run(raw)
      if (run.how === 'done') return run.result
      if (run.how === 'busy') return null
      const issue = run.how === 'timeout' ? 'parse_timeout' : 'parser_error'
      return packMail(failMail(run.told, { issue, sizeBytes: raw.length }))
    },
    close: () => pool.close(),
  }
}
