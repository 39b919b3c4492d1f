/**
 * reports - the time to parse bounces and complaints: usual ones, and some designed to be slow
 *
 * The product's threads parse them. One that takes a second is not read, so that the slowest has to be far below.
 */

import { makeReturnedParser, type ReturnedParser } from '../../src/reception/returned/returned-parser.ts'
import { HOSTILE_REPORTS } from '../../test/support/service/hostile-reports.ts'
import { formatNumber, formatTable, median } from '../table.ts'

const AT_ONCE = 16
const CLIENTS = 8
const SLOWEST_MS_MAX = 200
const BOUNCE = `From: MAILER-DAEMON@mx.example
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Final-Recipient: rfc822; person@example.com
Action: failed
Status: 5.1.1

--b
Content-Type: message/rfc822

Subject: Hello

${'A line of the message that came back.\n'.repeat(50)}
--b--
`

/** Parses so many usual reports and each of the slow ones, and prints milliseconds. */
export async function benchReports(reports: number): Promise<void> {
  const room = makeReturnedParser()
  try {
    await parse(room, BOUNCE, 'warm-up')
    const startedAtMs = performance.now()
    const times = await parseMany(room, reports)
    const seconds = (performance.now() - startedAtMs) / 1000
    const rows = [
      ['report', 'bytes', 'ms', 'a second'],
      ['usual', formatNumber(BOUNCE.length), formatNumber(median(times), 1), formatNumber(reports / seconds)],
    ]
    let slowestMs = 0
    for (const [name, report] of Object.entries(HOSTILE_REPORTS)) {
      const ms = await parse(room, report, name)
      slowestMs = Math.max(slowestMs, ms)
      rows.push([name, formatNumber(report.length), formatNumber(ms, 1), '-'])
    }
    console.log(formatTable(rows))
    const verdict = slowestMs <= SLOWEST_MS_MAX ? 'reached' : 'MISSED'
    console.log(`\nslowest ${formatNumber(slowestMs)} ms; target <= ${SLOWEST_MS_MAX}: ${verdict}`)
  } finally {
    await room.close()
  }
}

async function parseMany(room: ReturnedParser, reports: number): Promise<number[]> {
  const times: number[] = []
  let left = reports
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      times.push(await parse(room, BOUNCE, `client ${left % CLIENTS}`))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return times
}

async function parse(room: ReturnedParser, report: string, client: string): Promise<number> {
  const beganMs = performance.now()
  const parsed = await room.parse(Buffer.from(report.replaceAll('\n', '\r\n')), client)
  if (typeof parsed === 'string') throw new Error(`A report is ${parsed}`)
  return performance.now() - beganMs
}
