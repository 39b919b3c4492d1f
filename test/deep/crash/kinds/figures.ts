/**
 * Two processes deliver to six providers and are ended with SIGKILL by turns, and their Redis with them. Afterwards
 * every figure of GET /v1/stats equals a count over the events of all messages: by site, class, stream and tag, with
 * the percentiles of the times to hand-over. `MESSAGES=50000 KILLS=20` asks for more, `SEED=n` for other choices.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import type { Stats, StatsGroupBy } from '../../../../schemas/stats.ts'
import { makeChance } from '../../../simulation/prng.ts'
import { countOutcomes, type LoggedMessage, sumOf } from '../../../support/clients/count-outcomes.ts'
import { sendAll } from '../../../support/clients/ledger.ts'
import { settle } from '../../../support/clients/settle.ts'
import { freePort } from '../../../support/machine/port.ts'
import { until } from '../../../support/machine/until.ts'
import { deliverMail } from '../../../support/peers/smtp-dialog.ts'
import { startZone } from '../../../support/peers/zone.ts'
import { verifyDomain } from '../../../support/service/crash-live.ts'
import { startFleet, type Vessel } from '../../../support/service/fleet.ts'
import { startHost } from '../../../support/service/host.ts'
import { kindOf, startProviders } from '../../../support/service/providers.ts'

const MESSAGES = Number(process.env.MESSAGES ?? 2_000)
const KILLS = Number(process.env.KILLS ?? 3)
const SEED = Number(process.env.SEED ?? 1)
/** One kill in so many is of Redis. */
const REDIS_IN = 3
const CLIENTS = 16
const DOMAIN = 'acme.example'
/** More groups than the running counter holds, so that rows move while processes die. */
const TAGS = 45
/** The kinds of a hundred recipients. */
const KINDS_OF_100 = ['dead', 'dead', 'dead', 'full', 'full', 'spam', 'spam', 'late', 'late', 'late', 'late', 'gone']
/** One message in so many is one after which the recipient complains or, on the broadcast stream, leaves. */
const ACTS_IN = 3 * Math.ceil(MESSAGES / 72) + 1
const RETRY_EVERY_MS = 1_000
const WAIT_MS = 600_000
const LIMITS = { connectionsStart: 20, connections: 40, messagesPerSecond: 10_000, connectionsPerMinute: 10_000 }
const SITES = ['default', 'google.com', 'outlook.com', 'yahoodns.net', 'icloud.com']

const random = makeChance(SEED).next
const zone = await startZone()
const world = await startProviders({ zone, random, keeps: (recipient) => recipient.startsWith('ok.kept') })
const folder = mkdtempSync(join(tmpdir(), 'sendwright-figures-'))
// As fast as the machine is: the limits of providers are tested elsewhere.
const siteLimits = join(folder, 'sites.json')
writeFileSync(siteLimits, JSON.stringify(Object.fromEntries(SITES.map((one) => [one, LIMITS]))))
const fleet = await startFleet(['all', 'all'], {
  settings: {
    ...{ DNS_SERVERS: zone.server, DELIVERY_PORT: String(world.port), PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' },
    ...{ SERVICE_DOMAIN: 'service.example', SITE_LIMITS: siteLimits, MX_PORT: '0', CONTENT_STORE: 'file' },
  },
})
const { firstRun, vessels } = fleet
const { account, liveServer, operatorToken } = firstRun
const { token } = liveServer
const [first, second] = vessels as [Vessel, Vessel]
const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
const store = new Redis(fleet.redis.socketPath)
// It is killed with the others, and connected to again.
store.on('error', () => undefined)
t.teardown(async () => {
  agent.destroy()
  store.disconnect()
  await fleet.end()
  world.close()
  await zone.close()
  rmSync(folder, { recursive: true, force: true })
})

t.test(
  `crash: ${KILLS} kills among ${MESSAGES} messages: figures equal the log [stats.count] [stats.groups]`,
  async (t) => {
    t.comment(`SEED=${SEED}`)
    await verifyDomain(first.httpPort, firstRun, { zone, domain: DOMAIN })
    await operate(`PATCH /v1/operator/accounts/${account.accountId}`, { monthlyCap: 100_000 })
    const streams = [liveServer.streamId]
    for (const kind of ['transactional', 'broadcast'])
      streams.push((await ask('POST /v1/streams', { kind, name: kind })).streamId)
    const startedMs = performance.now()
    const took = () => Math.round((performance.now() - startedMs) / 1_000)
    const { ledger, kills } = await sendWhileKilling(streams)
    t.comment(`${took()} s: ${ledger.told.size} accepted, ${world.accepted()} handed over`)
    await drain()
    t.comment(`${took()} s: delivered and bounced`)
    await actAsRecipients()
    const { accountId } = account
    const found = await settle(fleet.redis.socketPath, { serverId: liveServer.serverId, accountId, ledger, live: true })
    t.match(found, { doubled: 0, lost: 0, miscounted: 0, torn: 0, open: 0 })
    t.equal(found.logged, found.told, 'every message is in the log once')
    const ids = [...ledger.told.values()].flatMap((told) => [...told])
    const messages = await readMessages(ids)
    const expected = countOutcomes(messages, {
      site: (recipient) => providerOf(recipient).site,
      deferral: (recipient) => providerOf(recipient).replies.get(kindOf(recipient))?.classification ?? 'unexpected',
    })
    for (const groupBy of Object.keys(expected) as StatsGroupBy[]) {
      const want = [...expected[groupBy]].map(([group, one]) => ({ group, other: false, ...sumOf(one) }))
      const told = ((await ask(`GET /v1/stats?groupBy=${groupBy}&by=total`)) as Stats).groups
      t.same(byName(told.map(({ at: _, ...group }) => group)), byName(want), groupBy)
      const hours = ((await ask(`GET /v1/stats?groupBy=${groupBy}&by=hour`)) as Stats).groups
      t.same(countsOf(hours), countsOf(want), `${groupBy}, hours added up`)
    }
    const sums = [...expected.site.values()].map(({ counts }) => counts)
    t.same(
      countsOf(((await ask('GET /v1/stats')) as Stats).stats),
      { ...countsOf(sums), accepted: ids.length },
      'all streams',
    )
    checkWorld(t, messages)
    const percentiles = [...expected.site].map(([site, one]) => `${site} ${JSON.stringify(sumOf(one).handOver)}`)
    t.comment(
      JSON.stringify({
        seconds: took(),
        kills,
        logged: found.logged,
        abandoned: found.abandoned,
        percentiles,
        statuses: [...ledger.statuses],
      }),
    )
  },
)

/** Sends everything while processes, and Redis, are ended and started again. */
async function sendWhileKilling(streams: readonly string[]) {
  const people = Array.from({ length: MESSAGES + CLIENTS }, (_, n) => personOf(n))
  let begun = 0
  const load = sendAll({
    port: [first.httpPort, second.httpPort],
    token,
    clients: CLIENTS,
    from: `shop@${DOMAIN}`,
    recipient: (n) => people[n] as string,
    // Messages without a tag are in no group of tags.
    fields: (n) => ({ streamId: streams[n % streams.length], ...(n % 7 > 0 && { tag: `tag-${n % TAGS}` }) }),
    goOn: (sent) => {
      begun = sent
      return sent < MESSAGES
    },
  })
  const kills = { process: 0, redis: 0 }
  const killing = async () => {
    for (let n = 1; n <= KILLS; n += 1) {
      await until(() => begun >= (MESSAGES * n) / (KILLS + 1), WAIT_MS)
      await pause(random() * 300)
      if (n % REDIS_IN === 0) {
        kills.redis += 1
        await fleet.redis.kill('SIGKILL')
        await fleet.redis.restart()
      } else {
        kills.process += 1
        const victim = vessels[n % vessels.length] as Vessel
        await victim.host.kill('SIGKILL')
        await fleet.start(victim)
      }
    }
  }
  const [ledger] = await Promise.all([load, killing()])
  return { ledger, kills }
}

function personOf(n: number): string {
  // More at the first provider than at the last, as in life.
  const { domain } = world.all[Math.floor(random() ** 2 * world.all.length)] as { domain: string }
  const kind = KINDS_OF_100[Math.floor(random() * 100)] ?? 'ok'
  return n % ACTS_IN === 0 ? `ok.kept.${n}@${domain}` : `${kind}.${n}@${domain}`
}

function providerOf(recipient: string) {
  const found = world.all.find(({ domain }) => recipient.endsWith(`@${domain}`))
  if (found === undefined) throw new Error(`${recipient} is at no provider`)
  return found
}

/** Orders an attempt for deferred recipients until none waits. */
async function drain(): Promise<void> {
  await until(async () => {
    const lanes = await store.keys('*:due:deliver/*')
    const claims = await store.keys('*:claims')
    if (lanes.length + claims.length === 0) return true
    for (const { domain } of world.all) await operate('POST /v1/operator/queue/retry', { domain })
    await pause(RETRY_EVERY_MS)
    return false
  }, WAIT_MS)
}

/** Complaints by mail and one-click requests, which count a minute later. */
async function actAsRecipients(): Promise<void> {
  const mxPort = await freePort()
  await first.host.kill('SIGTERM')
  first.host = await startHost({ ...first.settings, MX_PORT: String(mxPort) })
  const acts = { complained: 0, unsubscribed: 0 }
  for (const { returnPath, text } of world.kept.values()) {
    const link = /^List-Unsubscribe: <(?:https?:\/\/[^/]+)(\/u\/[^>]+)>/m.exec(text)?.[1]
    if (link === undefined) {
      acts.complained += 1
      const reply = await deliverMail(mxPort, returnPath, complaintOf(returnPath))
      if (!reply.startsWith('250')) throw new Error(reply)
    } else {
      acts.unsubscribed += 1
      const form = { 'content-type': 'application/x-www-form-urlencoded' }
      const body = 'List-Unsubscribe=One-Click'
      const answer = await fetch(`http://127.0.0.1:${first.httpPort}${link}`, { method: 'POST', headers: form, body })
      if (!answer.ok) throw new Error(`${answer.status}`)
    }
  }
  await until(async () => {
    const { stats } = (await ask('GET /v1/stats')) as Stats
    const { complained, unsubscribed } = countsOf(stats)
    return complained === acts.complained && unsubscribed === acts.unsubscribed
  }, WAIT_MS)
  t.ok(acts.complained > 0 && acts.unsubscribed > 0)
}

const complaintOf = (returnPath: string) => `From: staff@provider.example
Subject: FW: Hello
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Loop/1.0
Version: 1

--b
Content-Type: message/rfc822

Return-Path: <${returnPath}>
Subject: Hello

Mail
--b--
`

async function readMessages(ids: readonly string[]): Promise<LoggedMessage[]> {
  const messages: LoggedMessage[] = []
  let next = 0
  const reader = async () => {
    for (let at = next++; at < ids.length; at = next++) messages.push(await ask(`GET /v1/messages/${ids[at]}`))
  }
  await Promise.all(Array.from({ length: CLIENTS }, reader))
  return messages
}

/** The log has for each recipient the outcome of the provider. */
function checkWorld(t: Test, messages: readonly LoggedMessage[]): void {
  const wrong: string[] = []
  for (const { recipients, events } of messages) {
    const { recipient = '', status = '' } = recipients[0] ?? {}
    const kind = kindOf(recipient)
    const { replies } = providerOf(recipient)
    const isTaken = kind === 'ok' || kind === 'late'
    const want = isTaken ? undefined : replies.get(kind === 'gone' ? 'dead' : kind)?.classification
    const end = events.find(({ event }) => event === 'bounced')
    const isDelivered = events.filter(({ event }) => event === 'delivered').length === 1
    const isDeferred = events.some(({ event }) => event === 'deferred')
    if (isDelivered !== isTaken || end?.details.classification !== want) wrong.push(`${recipient}: ${status}`)
    if (isDeferred && !world.deferred.has(recipient)) wrong.push(`${recipient}: never deferred`)
  }
  t.same(wrong.slice(0, 5), [], 'outcomes of the providers')
}

type Counted = Readonly<Record<string, unknown>>

/** The counts of all rows added up. */
function countsOf(rows: readonly object[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const row of rows as readonly Counted[])
    for (const [name, value] of Object.entries(row))
      if (typeof value === 'number' && value > 0) sums[name] = (sums[name] ?? 0) + value
  return sums
}

function byName<Row extends { group: string | null }>(rows: readonly Row[]): Row[] {
  return [...rows].sort((one, other) => String(one.group).localeCompare(String(other.group)))
}

const ask = (what: string, body?: object) => call({ port: first.httpPort, key: token }, what, body)
const operate = (what: string, body: object) => call({ port: first.operatorPort, key: operatorToken }, what, body)

/** A request that must succeed. */
async function call(
  { port, key }: { readonly port: number; readonly key: string },
  what: string,
  body?: object,
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
): Promise<any> {
  const [method = 'GET', path = '/'] = what.split(' ')
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = {
    authorization: `Bearer ${key}`,
    ...(text !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  }
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, agent, headers }, async (answer) => {
      const pieces: Buffer[] = []
      for await (const piece of answer) pieces.push(piece as Buffer)
      const said = Buffer.concat(pieces).toString()
      if (answer.statusCode !== undefined && answer.statusCode < 300) resolve(JSON.parse(said))
      else reject(new Error(`${what}: ${answer.statusCode} ${said}`))
    })
    sent.on('error', reject)
    sent.end(text)
  })
}
