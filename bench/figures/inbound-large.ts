/**
 * inbound-large - the latency of other requests while mails of 35 MB are received, parsed and judged, one after the
 * other: the p99 of the API's acceptance against quiet, and the peak memory of the process
 *
 * The mails are an attachment in base64, one in quoted-printable, and lines of text, by turns. Everything was warm
 * before: quiet is the second run at that rate.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { MAIL_BYTES_MAX } from '../../schemas/limits.ts'
import { fillMail } from '../../test/support/peers/hostile-mail.ts'
import type { Zone } from '../../test/support/peers/zone.ts'
import { bring, startReceiving } from '../contestants/receiving.ts'
import type { WholeService } from '../contestants/whole-service.ts'
import { pace } from '../load/pace.ts'
import { startStore } from '../store.ts'
import { formatNumber } from '../table.ts'
import { residentBytes } from '../usage.ts'

const RATE = 100
const SECONDS = 20
const TARGETS = { times: 2, aboveMb: 200 }
const MB = 1024 * 1024
const PART = 'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/octet-stream\r\n'
const MAILS = [
  [`${PART}Content-Transfer-Encoding: base64\r\n\r\n`, `${'QUJD'.repeat(19)}\r\n`],
  [`${PART}Content-Transfer-Encoding: quoted-printable\r\n\r\n`, `${'=41bc'.repeat(15)}\r\n`],
  ['\r\n', 'Words and more words of a mail as people write it.\r\n'],
] as const

/** Measures and prints. */
export async function measureLarge(zone: Zone): Promise<void> {
  const store = await startStore()
  const receiving = await startReceiving(store, zone.server)
  const { service } = receiving
  const raws = MAILS.map(([head, line]) => largeMail(head, line))
  try {
    await others(service)
    const quiet = await others(service)
    const idleBytes = residentBytes(service.pid) ?? Number.NaN
    const peakMb = watchPeak(service.pid)
    const running = { isOver: false }
    const beside = others(service).finally(() => (running.isOver = true))
    let mails = 0
    const takenMs: number[] = []
    while (!running.isOver) {
      const beganMs = performance.now()
      await bring(receiving, [{ sender: 'a@mail.example.net', plus: '', raw: raws[mails % raws.length] ?? '' }])
      mails += 1
      await receiving.haveParsed(mails)
      takenMs.push(performance.now() - beganMs)
    }
    const times = (await beside) / quiet
    const aboveMb = peakMb() - idleBytes / MB
    const verdict = (value: number, target: number) => (value <= target ? 'reached' : 'missed')
    console.log(`
${mails} mails of ${formatNumber(MAIL_BYTES_MAX / MB)} MB, one after the other, ${formatNumber(takenMs.reduce((sum, ms) => sum + ms, 0) / mails)} ms each until parsed and judged:
API at ${RATE}/s: p99 ${formatNumber(quiet, 1)} ms quiet, ${formatNumber(await beside, 1)} ms beside them: ${formatNumber(times, 2)}; target <= ${TARGETS.times}: ${verdict(times, TARGETS.times)}
most memory ${formatNumber(aboveMb)} MB above idle (${formatNumber(idleBytes / MB)} MB); target <= ${TARGETS.aboveMb}: ${verdict(aboveMb, TARGETS.aboveMb)}`)
  } finally {
    await service.stop()
    await store.stop()
  }
}

/** A mail of lines, of the maximum size; the final dot is on a line of its own. */
function largeMail(head: string, line: string): Buffer {
  const raw = fillMail(`From: a@mail.example.net\r\nSubject: Large\r\n${head}`, line)
  raw.write('\r\n', raw.length - 2)
  return raw
}

/** p99 of the other senders in that time, ms. */
async function others({ httpPort, test }: WholeService): Promise<number> {
  const target = { port: httpPort, keys: [test], domain: 'simulator.test' }
  const count = RATE * SECONDS
  const measured = await pace(target, { rate: RATE, count })
  if (measured.accepted !== count) throw new Error(`${count - measured.accepted} messages of others were not accepted`)
  return measured.p99Ms
}

/**
 * Begins to watch a process, as Linux counts it (proc(5)). Returns a function that returns its highest megabytes since
 * then.
 */
function watchPeak(pid: number): () => number {
  const reset = `/proc/${pid}/clear_refs`
  if (!existsSync(reset)) return () => Number.NaN
  writeFileSync(reset, '5')
  return () => Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
