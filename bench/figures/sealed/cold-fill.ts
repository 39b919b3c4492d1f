/**
 * cold-fill - thirteen months of mail, sent through the product while its clock moves: by weeks at first, by days in
 * the last month, when a webhook gets the events and each message has 20 KB of HTML
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { until } from '../../../test/support/machine/until.ts'
import { verifyDomain } from '../../../test/support/service/crash-live.ts'
import { type Client, makeClient, sendBatches } from '../../load/batches.ts'
import { keysOf, sumOf } from '../../store.ts'
import type { ColdPlace } from './cold-place.ts'

/** Days of mail that a live server keeps, and the last of them, which come day by day. */
const DAYS = 398
const LAST_DAYS = 32
const WEEK = 7
const DOMAIN = 'acme.example'
const HTML_BYTES = 20_000
const WAIT_MS = 1_800_000
const NAMES = ['anna', 'jonas', 'mia', 'luca', 'emma', 'paul', 'lea', 'noah', 'nina', 'finn']
const SURNAMES = ['meyer', 'schmidt', 'weber', 'rossi', 'novak', 'keller', 'brandt', 'larsen', 'costa', 'dubois']
const DOMAINS = ['gmail.com', 'gmx.net', 'mail.example.com', 'outlook.com']
const MUCH = 1_000_000_000
/** Messages that the two persons get of whom a measurement asks. */
export const FEW = 10
export const MANY = 10_000

/** What was filled. */
export interface Filled {
  readonly messages: number
  /** Days by which the clock had moved. */
  readonly day: number
  /** The addresses that got `FEW` and `MANY` messages. */
  readonly few: string
  readonly many: string
}

/** The days on which mail is sent, each with the days since the one before. */
function daysOfMail(): { day: number; length: number }[] {
  const weeks = Array.from({ length: Math.floor((DAYS - LAST_DAYS) / WEEK) }, (_, n) => {
    return { day: n * WEEK, length: WEEK }
  })
  const from = weeks.length * WEEK
  return [...weeks, ...Array.from({ length: DAYS - from }, (_, n) => ({ day: from + n, length: 1 }))]
}

/** How far a directory was filled: steps that are done, messages of them, and the webhook. */
interface Progress {
  readonly steps: number
  readonly sent: number
  readonly webhookId: string | null
}

/** Fills a directory, or goes on after a stop. Each step is done once its mail has reached its end. */
export async function fillPlace(place: ColdPlace, messages: number, say: (line: string) => void): Promise<Filled> {
  const filled = { messages, day: DAYS, few: 'few.letters@gmail.com', many: 'many.letters@gmail.com' }
  const path = join(place.dir, '..', 'progress.json')
  const days = daysOfMail()
  let progress: Progress = existsSync(path)
    ? JSON.parse(readFileSync(path, 'utf8'))
    : { steps: 0, sent: 0, webhookId: null }
  place.clock.moveTo(days[progress.steps]?.day ?? DAYS)
  await place.start()
  await prepare(place, progress)
  progress = { ...progress, webhookId: null }
  const { liveServer, account } = place.firstRun()
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  const bare = makeClient({ port: Number(place.environment.HTTP_PORT), keys: [liveServer.token] }, agent)
  const client: Client = (path, body) => patiently(() => bare(path, body))
  const startedAtMs = performance.now()
  for (const [step, { day, length }] of days.entries()) {
    if (step < progress.steps) continue
    place.clock.moveTo(day)
    await patiently(() => place.call('GET /v1/account', account.token))
    const isLast = day >= DAYS - LAST_DAYS
    const webhookId = isLast ? (progress.webhookId ?? (await makeWebhook(place))) : null
    const first = progress.sent
    const count = Math.round((messages * length) / DAYS)
    await sendBatches(client, count, (n) => mail(first + n, filled, isLast))
    const sent = first + count
    await emptied(place)
    place.receiver.received.length = 0
    progress = { steps: step + 1, sent, webhookId }
    writeFileSync(path, JSON.stringify(progress))
    const minutes = (performance.now() - startedAtMs) / 60_000
    say(`day ${day}: ${sent} messages, ${minutes.toFixed(1)} min`)
  }
  agent.destroy()
  place.clock.moveTo(DAYS)
  await sealedAll(place)
  await place.stop()
  const done = { ...filled, messages: progress.sent }
  writeFileSync(join(place.dir, 'filled.json'), JSON.stringify(done))
  return done
}

/** Limits, and the domain with its records. */
async function prepare(place: ColdPlace, { steps, webhookId }: Progress): Promise<void> {
  const { account, liveServer, operatorToken } = place.firstRun()
  const limits = { perMinuteLimit: MUCH, highestCap: MUCH, monthlyCap: MUCH }
  await patiently(() => place.call(`PATCH /v1/operator/accounts/${account.accountId}`, operatorToken, limits))
  if (steps === 0) {
    const port = Number(place.environment.HTTP_PORT)
    await verifyDomain(port, place.firstRun(), { zone: place.zone, domain: DOMAIN })
  }
  type Named = { readonly host: string; readonly value: string }
  const { domains } = await place.call<{ domains: { returnPath: Named; dkim: Named }[] }>(
    'GET /v1/domains',
    account.token,
  )
  for (const { returnPath, dkim } of domains) {
    place.zone.set(returnPath.host, { type: 'CNAME', domain: returnPath.value })
    place.zone.set(dkim.host, { type: 'TXT', data: dkim.value.match(/.{1,255}/g) as string[] })
  }
  // The receiver has another port now.
  if (webhookId !== null) await place.call(`DELETE /v1/webhooks/${webhookId}`, liveServer.token)
}

async function makeWebhook(place: ColdPlace): Promise<string> {
  const body = { url: `${place.receiver.url}/hook`, events: ['delivered', 'bounced', 'deferred', 'spam_complaint'] }
  const { token } = place.firstRun().liveServer
  return (await patiently(() => place.call<{ webhookId: string }>('POST /v1/webhooks', token, body))).webhookId
}

/** A jump of the clock lets the first requests wait for the store. */
async function patiently<Answer>(act: () => Promise<Answer>): Promise<Answer> {
  return until(
    () => act().catch((error: Error) => (/: 503 |ECONNRESET|EPIPE/.test(error.message) ? null : Promise.reject(error))),
    WAIT_MS,
  )
}

/** Waits until no recipient is open and no webhook waits. */
async function emptied(place: ColdPlace): Promise<void> {
  const redis = place.redis()
  await until(async () => {
    const lanes = (await keysOf(redis, '{s*}:due:*')).filter((key) => /:due:(?:out|relay|webhook|mail|to)/.test(key))
    const due = await sumOf(redis, lanes, (pipeline, key) => pipeline.zcard(key))
    return due + (await sumOf(redis, await keysOf(redis, '{s*}:claims'), (pipeline, key) => pipeline.hlen(key))) === 0
  }, WAIT_MS)
}

/** Waits until the lanes of the content store have nothing that is due. */
export async function sealedAll(place: ColdPlace): Promise<void> {
  const redis = place.redis()
  await until(async () => {
    const [seconds = 0] = await redis.time()
    const lanes = await keysOf(redis, '{s*}:due:cold/*')
    const due = await sumOf(redis, lanes, (pipeline, key) => pipeline.zcount(key, 0, Number(seconds) * 1000 + 60_000))
    return due === 0
  }, WAIT_MS)
}

function mail(n: number, { messages, few, many }: Filled, isLarge: boolean): object {
  const isFew = n % Math.ceil(messages / FEW) === 1
  const to = isFew ? few : n % Math.ceil(messages / MANY) === 2 ? many : addressOf(n)
  return {
    from: `shop@${DOMAIN}`,
    to: [to],
    subject: `Your order ${100_000 + n} is on its way`,
    ...(isLarge ? { html: htmlOf(n) } : { text: `Your order ${n} is on its way.` }),
    tag: `tag-${n % 7}`,
    metadata: { order: String(100_000 + n) },
  }
}

/** An address for each message, of usual length. */
export function addressOf(n: number): string {
  const name = NAMES[n % NAMES.length]
  const surname = SURNAMES[(n >> 3) % SURNAMES.length]
  return `${name}.${surname}${n}@${DOMAINS[(n >> 5) % DOMAINS.length]}`
}

const WORDS =
  'order shipped parcel thank you arrives between Monday and Friday size blue large refund account total tax address'

/** A typical receipt, as `sizing` has it. */
function htmlOf(n: number): string {
  const words = WORDS.split(' ')
  let html = '<!doctype html><html><body style="margin:0;font-family:Helvetica,Arial,sans-serif;color:#222222">'
  for (let row = 0; html.length < HTML_BYTES; row += 1) {
    const text = Array.from(
      { length: 12 },
      (_, at) => words[(n * 7 + row * 13 + at * at * (n % 11)) % words.length],
    ).join(' ')
    html += `<tr><td style="padding:8px 16px;border-bottom:1px solid #dddddd">${text}</td><td align="right">${(n * 31 + row * 977) % 100_000}</td></tr>`
  }
  return html
}
