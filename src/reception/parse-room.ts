/**
 * parse-room - the thread in which returned mail is taken apart, started with the first one.
 *
 * Guarantees: a mail that cannot be parsed in time costs nobody else more than that time; what waits is bounded.
 */

import type { ReportMail } from '../mail/report/report-mail.ts'
import { ThreadRoom } from '../process/thread-room.ts'

/** A mail of any size that is taken parses in milliseconds. */
const PARSE_MS_MAX = 20_000
/** Memory of the thread: a mail is far smaller, whatever it unpacks to. */
const HEAP_MB_MAX = 256

/** `unreadable`: no parser makes anything of it, or not in time. `busy`: too much is waiting. */
export type Parsed = ReportMail | 'unreadable' | 'busy'

export interface ParseRoom {
  /** Takes one mail apart. Never rejects. */
  parse(bytes: Uint8Array): Promise<Parsed>
  /** Ends the thread; what waits is `busy`. */
  close(): Promise<void>
}

/** Makes the room. `parseMsMax` is what one mail may take. */
export function makeParseRoom(parseMsMax: number = PARSE_MS_MAX): ParseRoom {
  const room = new ThreadRoom<Uint8Array, ReportMail>({
    body: new URL('./parse-thread.js', import.meta.url),
    jobMsMax: parseMsMax,
    heapMbMax: HEAP_MB_MAX,
  })
  return {
    async parse(bytes) {
      const run = await room.run(bytes)
      if (run.how === 'done') return run.result
      return run.how === 'busy' ? 'busy' : 'unreadable'
    },
    close: () => room.close(),
  }
}
