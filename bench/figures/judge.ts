/**
 * judge - the cost of judging received mail: usual mail, the largest, and mail that is designed to be slow
 *
 * SPF, DKIM and DMARC of real mails in the product's thread, with a real DNS server on the loopback. Each mail must
 * have the verdict that it is made for, or the run fails.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { MAIL_BYTES_MAX } from '../../schemas/limits.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { type MailJudge, makeMailJudge } from '../../src/reception/mail-judge.ts'
import { NO_PEAK, watchPeak } from '../../test/support/machine/peak-memory.ts'
import { fillMail, HOSTILE_MAILS, signature } from '../../test/support/peers/hostile-mail.ts'
import { joinMail, publicKeyText, signField } from '../../test/support/peers/sign-mail.ts'
import { startZone, type Zone } from '../../test/support/peers/zone.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'

const USUAL_BYTES = 20_000
const AT_ONCE = 16
const TARGETS = { mailMs: 20_000, lagMs: 50, lookUps: 60, aboveMb: 200 }
const LAG_RESOLUTION_MS = 1
const SENDER = { address: 'bounce@a.example', ip: '192.0.2.1', helo: 'mx.a.example', receiver: 'mx.b.example' }
const DKIM = 'DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=a.example; s=s; h=from:subject; bh={bh}; b={b}'

/** Judges `mails` usual mails, then the largest and the hostile ones, and prints milliseconds. */
export async function benchJudge(mails: number): Promise<void> {
  const zone = await startZone()
  publish(zone)
  const resolver = createResolver({ servers: [zone.server], nowMs: () => performance.now() })
  const room = makeMailJudge({ resolver, nowMs: () => performance.now() })
  try {
    await judge(room, usualMail(), 'pass')
    const rows = [['mail', 'ms', 'a second', 'CPU ms', 'MB above', 'verdict']]
    rows.push(await measureUsual(room, mails))
    const { rows: large, figures } = await measureLarge(room)
    console.log(formatTable([...rows, ...large]))
    const lookUps = await countLookUps(room, zone)
    const verdict = (value: number, target: number) => (value <= target ? 'reached' : 'MISSED')
    const { ms, lagMs, aboveMb } = figures
    console.log(`
slowest ${formatNumber(ms)} ms; target <= ${formatNumber(TARGETS.mailMs)}: ${verdict(ms, TARGETS.mailMs)}
lag of the main loop meanwhile, p99 ${formatNumber(lagMs, 1)} ms; target <= ${TARGETS.lagMs}: ${verdict(lagMs, TARGETS.lagMs)}
most memory ${formatNumber(aboveMb)} MB, the mail itself in it; target <= ${TARGETS.aboveMb}: ${verdict(aboveMb, TARGETS.aboveMb)}
look-ups of a mail whose SPF record wants thousands: ${lookUps}; target <= ${TARGETS.lookUps}: ${verdict(lookUps, TARGETS.lookUps)}`)
  } finally {
    await room.close()
    resolver.close()
    await zone.close()
  }
}

function publish(zone: Zone): void {
  const txt = (data: string) => ({ type: 'TXT', data }) as const
  zone.set('a.example', txt('v=spf1 ip4:192.0.2.1 -all'))
  zone.set('mx.a.example', txt('v=spf1 ip4:192.0.2.1 -all'))
  zone.set('s._domainkey.a.example', txt(`v=DKIM1; p=${publicKeyText('rsa')}`))
  zone.set('_dmarc.a.example', txt('v=DMARC1; p=reject'))
}

/** A mail of 20 KB, signed with RSA of 2,048 bits. */
function usualMail(): Buffer {
  const fields = ['From: Ada <ada@a.example>', 'Subject: Greetings']
  const mail = { fields, body: 'Words and more words of a mail as people write it.\r\n'.repeat(USUAL_BYTES / 52) }
  const names = ['from', 'subject']
  const field = signField(mail, { field: DKIM, names, canon: 'relaxed/relaxed', key: 'rsa' })
  return joinMail({ ...mail, fields: [field, ...fields] })
}

async function judge(room: MailJudge, raw: Uint8Array, dkim: string): Promise<void> {
  const judged = await room.judge({ raw, sender: SENDER, checkedAtMs: Date.now() }).judgement
  const told = judged?.authentication.dkim
  if (told !== dkim) throw new Error(`A mail is ${told}, not ${dkim}`)
}

async function measureUsual(room: MailJudge, mails: number): Promise<string[]> {
  const raw = usualMail()
  const times: number[] = []
  let left = mails
  const startedAtMs = performance.now()
  const work = async () => {
    while (left > 0) {
      left -= 1
      const beganMs = performance.now()
      await judge(room, raw, 'pass')
      times.push(performance.now() - beganMs)
    }
  }
  const { percents } = await shareOfCore([process.pid], () => Promise.all(Array.from({ length: AT_ONCE }, work)))
  const seconds = (performance.now() - startedAtMs) / 1000
  const cpuMs = percents[0] == null ? null : (percents[0] * 10 * seconds) / mails
  const name = `${raw.length} bytes, ${AT_ONCE} at once`
  return [name, formatNumber(median(times), 1), formatNumber(mails / seconds), formatNumber(cpuMs, 2), '-', 'pass']
}

async function measureLarge(
  room: MailJudge,
): Promise<{ rows: string[][]; figures: { ms: number; lagMs: number; aboveMb: number } }> {
  const figures = { ms: 0, lagMs: 0, aboveMb: 0 }
  const rows: string[][] = []
  const lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })
  const usual = ['35 MB of text', `${signature('relaxed/relaxed')}From: a@a.example\r\n`, 'words and words\r\n', 'fail']
  for (const [what, head, piece, verdict] of [usual, ...HOSTILE_MAILS] as (typeof HOSTILE_MAILS)[number][]) {
    const peakMb = NO_PEAK ? () => Number.NaN : watchPeak()
    const raw = fillMail(head, piece)
    lag.enable()
    const beganMs = performance.now()
    await judge(room, raw, verdict ?? 'permerror')
    const ms = performance.now() - beganMs
    lag.disable()
    const aboveMb = peakMb()
    figures.ms = Math.max(figures.ms, ms)
    figures.aboveMb = Math.max(figures.aboveMb, aboveMb)
    rows.push([what, formatNumber(ms), '-', '-', formatNumber(aboveMb), verdict ?? 'permerror'])
  }
  figures.lagMs = lag.percentile(99) / 1e6 - LAG_RESOLUTION_MS
  if (MAIL_BYTES_MAX !== fillMail('', 'x').length) throw new Error('The mails are not the largest')
  return { rows, figures }
}

/** The number of DNS queries for one mail whose sender's record needs an unlimited number. */
async function countLookUps(room: MailJudge, zone: Zone): Promise<number> {
  const mechanisms = Array.from({ length: 10 }, (_, at) => `mx:${at}.b.example`).join(' ')
  zone.set('bomb.example', { type: 'TXT', data: `v=spf1 ${mechanisms} -all` })
  zone.fill((name, type) => {
    if (type === 'A') return [{ type, address: '203.0.113.1' }]
    const names = Array.from({ length: 10 }, (_, at) => `${at}.${name}`)
    return type === 'MX' ? names.map((exchange) => ({ type, exchange, priority: 10 })) : []
  })
  zone.asked.splice(0)
  const sender = { ...SENDER, address: 'a@bomb.example', helo: 'bomb.example' }
  await room.judge({ raw: usualMail(), sender, checkedAtMs: Date.now() }).judgement
  return zone.asked.length
}
