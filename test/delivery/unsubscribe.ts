/**
 * unsubscribe - mail on a broadcast stream as a mail server gets it, and its links as people, providers and scanners
 * use them
 */
import { Redis } from 'ioredis'
import PostalMime from 'postal-mime'
import t from 'tap'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../support/machine/moved-clock.ts'
import { until } from '../support/machine/until.ts'
import { startDelivery } from '../support/service/delivery.ts'
import { dumpRedis } from '../support/store/redis-dump.ts'

const PUBLIC = 'https://mail.acme.example/post'
const MINUTE_DAYS = 61 / 86_400

const clock = MOVED_CLOCK_SKIP === false ? makeMovedClock() : null
const start = () => startDelivery({ BASE_URL: PUBLIC })
const delivery = await (clock === null ? start() : clock.around(start))
const { service, destination, send, message, messageWhen } = delivery
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await delivery.stop()
})
const { token } = service.firstRun.liveServer
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })
const made = await call('POST /v1/streams', { kind: 'broadcast', name: 'Wöchentlich' })
const { streamId } = made.json
const mx = await destination('list.example')

/** A request to a link, as it stands in a mail, at the listener that the proxy would pass it to. */
async function open(url: string, init: RequestInit = {}) {
  const own = url.replace(PUBLIC, `http://127.0.0.1:${service.config.httpPort}`)
  const response = await fetch(own, { redirect: 'manual', ...init })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const post = (url: string, init: RequestInit = {}) => open(url, { method: 'POST', ...init })

/** The mails with a subject as the server has them. */
const received = (subject: string) =>
  Promise.all(
    mx.sessions
      .flatMap(({ messages }) => messages)
      .filter((text) => text.includes(`Subject: ${subject}`))
      .map((text) => PostalMime.parse(text)),
  )

/** Sends and answers each recipient's link. */
async function linksOf(
  subject: string,
  to: string[],
  body: object = {},
): Promise<{ id: string; links: Map<string, string> }> {
  const id = await send(to, { subject, streamId, ...body })
  await messageWhen(id, ({ recipients }) => recipients.every(({ status }) => status === 'delivered'))
  const links = new Map<string, string>()
  for (const session of mx.sessions)
    for (const [index, text] of session.messages.entries()) {
      if (!text.includes(`Subject: ${subject}`)) continue
      const rcpt = session.commands.filter((line) => /^RCPT/i.test(line))[index] ?? ''
      links.set(/<([^>]+)>/.exec(rcpt)?.[1] ?? '', /List-Unsubscribe: <([^>]+)>/.exec(text)?.[1] ?? '')
    }
  return { id, links }
}

/** What waits in the lanes of timers, as text. */
const timers = async () => JSON.stringify([...(await dumpRedis(redis, '*:due:timers'))], replaceMaps)

const replaceMaps = (_: string, value: unknown) => (value instanceof Map ? [...value] : value)

const suppressed = async (recipient: string) =>
  (await call('POST /v1/suppressions/search', { recipient })).json.suppressions as { reason: string }[]

t.test(
  'unsubscribe: each recipient gets a link of its own, signed, and no field of the client beside it [unsubscribe.fields]',
  async (t) => {
    const headers = { 'List-Unsubscribe': '<mailto:old@acme.example>', 'X-Own': '1' }
    const { links } = await linksOf('Two', ['ada@list.example', 'bob@list.example'], { headers })
    t.equal(links.size, 2)
    t.equal(new Set(links.values()).size, 2, 'no link stands in two mails')
    for (const link of links.values()) t.match(link, /^https:\/\/mail\.acme\.example\/post\/u\/[a-z2-7]{128}$/)
    for (const mail of await received('Two')) {
      const of = (name: string) => mail.headers.filter(({ key }) => key === name).map(({ value }) => value)
      t.same(of('list-unsubscribe-post'), ['List-Unsubscribe=One-Click'])
      t.same(of('list-unsubscribe').length, 1)
      t.match(of('list-id')[0], new RegExp(`<${streamId.slice(-8)}\\.list\\.acme\\.example>$`))
      t.same(of('x-own'), ['1'])
      t.equal(of('feedback-id').length, 1)
      const signed = of('dkim-signature')[0]?.replace(/\s/g, '') ?? ''
      for (const name of ['list-unsubscribe', 'list-unsubscribe-post', 'list-id', 'feedback-id'])
        t.match(signed, new RegExp(`[:=]${name}[:;]`))
    }
  },
)

t.test(
  'unsubscribe: the page of a broadcast names its sender, and what all share is in each mail [unsubscribe.page]',
  async (t) => {
    const people = ['yan', 'zoe'].map((name) => ({ to: `${name}@list.example`, substitutions: { name } }))
    const { status, json } = await call('POST /v1/broadcasts', {
      streamId,
      from: { email: 'Shop@acme.example', name: 'Acme <Shop>' },
      subject: 'Broadcast {{name}}',
      text: 'Dear {{name}}',
      headers: { 'List-Id': '<own.example>', 'X-Own': '1' },
      attachments: [{ name: 'a.txt', content: Buffer.from('shared').toString('base64') }],
      messages: people,
    })
    t.equal(status, 202)
    await until(async () => ((await received('Broadcast')).length === people.length ? true : null), 20_000)
    t.equal((await call(`GET /v1/broadcasts/${json.broadcastId}`)).json.released, people.length)
    for (const { to, substitutions } of people) {
      const [mail] = await received(`Broadcast ${substitutions.name}`)
      t.match(mail, { to: [{ address: to }], from: { name: 'Acme <Shop>' }, attachments: [{ filename: 'a.txt' }] })
      const link = /Unsubscribe: (\S+)/.exec(mail?.text ?? '')?.[1] ?? ''
      t.match(mail?.headers.find(({ key }) => key === 'list-unsubscribe')?.value, `<${link}>`)
      const page = await open(link)
      t.equal(page.status, 200)
      t.match(page.text, '<bdi>Acme &lt;Shop&gt;</bdi> (<bdi>Shop@acme.example</bdi>)')
    }
  },
)

t.test('unsubscribe: mail on other streams has none of it [unsubscribe.fields]', async (t) => {
  const id = await send(['ada@list.example'], {
    subject: 'Receipt',
    headers: { 'List-Unsubscribe': '<https://own.example/>' },
  })
  await messageWhen(id, ({ recipients }) => recipients[0]?.status === 'delivered')
  const [mail] = await received('Receipt')
  const names = mail?.headers.map(({ key }) => key) ?? []
  t.ok(names.includes('list-unsubscribe'), "a client's own field stands")
  t.notOk(names.includes('list-id') || names.includes('list-unsubscribe-post'))
})

t.test('unsubscribe: GET and HEAD change nothing, whatever a scanner adds [unsubscribe.page]', async (t) => {
  const { id, links } = await linksOf('Scanned', ['cam@list.example'])
  const link = links.get('cam@list.example') as string
  for (const url of [
    link,
    `${link}?utm_source=a&utm_source=b&x`,
    link.replace(/[a-z2-7]{128}$/, (own) => own.toUpperCase()),
  ]) {
    const page = await open(url, { headers: { 'accept-language': 'fr-CA, de;q=0.9' } })
    t.equal(page.status, 200)
    t.match(page.headers.get('content-type'), /^text\/html; charset=utf-8$/)
    t.match(page.text, /<html lang="fr">/)
    t.match(page.text, /shop@acme\.example/)
    t.notMatch(page.text, /cam@|W..?chentlich|<script/i)
    t.match(
      page.headers.get('content-security-policy'),
      /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
    )
    t.equal(page.headers.get('referrer-policy'), 'no-referrer')
    t.equal(page.headers.get('cache-control'), 'no-store')
    t.equal(page.headers.get('x-robots-tag'), 'noindex')
    t.equal(page.headers.get('set-cookie'), null)
    const head = await open(url, { method: 'HEAD' })
    t.equal(head.status, 200)
    t.equal(head.text, '')
  }
  t.equal((await open(`${link}/confirm`)).status, 200, 'a browser that opens its last page again')
  t.equal((await open(`${link}/undo`)).status, 200)
  t.notMatch(await timers(), /unsubscribe:/)
  t.equal((await message(id)).recipients[0]?.unsubscribedAt, null)
})

t.test(
  'unsubscribe: one-click as providers post it, a click with its undo, and what they come to [unsubscribe.one-click] [unsubscribe.minute] [unsubscribe.once]',
  { skip: MOVED_CLOCK_SKIP },
  async (t) => {
    const people = ['dot', 'eli', 'fay', 'gus'].map((name) => `${name}@list.example`)
    const { id, links } = await linksOf('Four', people)
    const [dot = '', eli = '', fay = '', gus = ''] = people.map((address) => links.get(address) as string)
    const urlencoded = {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'List-Unsubscribe=One-Click',
    }
    const form = new FormData()
    form.set('List-Unsubscribe', 'One-Click')
    for (const answer of [await post(dot, urlencoded), await post(eli, { body: form }), await post(dot)]) {
      t.equal(answer.status, 200)
      t.equal(answer.text, '')
      t.equal(answer.headers.get('location'), null)
      t.equal(answer.headers.get('set-cookie'), null)
    }
    const clicked = await post(`${fay}/confirm`)
    t.match(clicked.text, /action="undo"/)
    await post(`${gus}/confirm`)
    const undone = await post(`${gus}/undo`)
    t.equal(undone.status, 200)
    t.match(undone.text, /action="confirm"/)
    t.match(await timers(), /unsubscribe:o\./)
    t.same(await suppressed(people[0] as string), [], 'nothing counts yet')
    clock?.moveTo(MINUTE_DAYS)
    const seen = await messageWhen(
      id,
      ({ recipients }) => recipients.filter((one) => one.unsubscribedAt !== null).length >= 3,
    )
    t.same(
      seen.recipients.map(({ unsubscribedAt }) => unsubscribedAt !== null),
      [true, true, true, false],
    )
    t.same(
      seen.events
        .filter(({ event }) => event === 'unsubscribed')
        .map((one) => one.details.source)
        .sort(),
      ['link', 'one_click', 'one_click'],
    )
    for (const [index, reasons] of [['unsubscribe'], ['unsubscribe'], ['unsubscribe'], []].entries())
      t.same(
        (await suppressed(people[index] as string)).map(({ reason }) => reason),
        reasons,
      )
    t.equal((await post(dot)).status, 200, 'again')
    t.notMatch((await post(`${fay}/confirm`)).text, /<form/)
    t.match((await post(`${fay}/undo`)).text, /too late/)
    const next = await send(people, { subject: 'Next', streamId })
    const after = await messageWhen(next, ({ recipients }) => recipients[3]?.status === 'delivered')
    t.same(
      after.recipients.map(({ status }) => status),
      ['suppressed', 'suppressed', 'suppressed', 'delivered'],
    )
    const other = await send([people[0] as string], { subject: 'Receipt two' })
    await messageWhen(other, ({ recipients }) => recipients[0]?.status === 'delivered')
  },
)

t.test(
  'unsubscribe: a link that names nobody is 404, to everyone [unsubscribe.page] [unsubscribe.token]',
  async (t) => {
    const { links } = await linksOf('Forged', ['hal@list.example'])
    const link = links.get('hal@list.example') as string
    const forged = link.slice(0, -1) + (link.endsWith('a') ? 'b' : 'a')
    for (const url of [
      forged,
      `${PUBLIC}/u/nonsense`,
      `${PUBLIC}/u/%3Cscript%3E`,
      `${link}a`,
      `${PUBLIC}/u/${'é'.repeat(48)}`,
    ]) {
      t.equal((await open(url)).status, 404)
      t.equal((await post(url)).status, 404)
      t.equal((await post(`${url}/confirm`)).status, 404)
      t.notMatch((await open(url)).text, /<script|<form/)
    }
    t.equal((await open(link, { method: 'PUT' })).status, 405)
    t.equal((await post(link, { body: 'x'.repeat(70_000) })).status, 413)
  },
)

t.test('unsubscribe: what was asked is counted, without who asked', async (t) => {
  const { text } = await service.operate('GET /metrics', {})
  t.match(text, /sendwright_unsubscribe_requests_total\{act="view",result="ask"\} \d+/)
  t.match(text, /sendwright_unsubscribe_requests_total\{act="one_click",result="forged"\} \d+/)
  t.notMatch(text, /list\.example/)
})

t.test('unsubscribe: with the store away people are told to come back', async (t) => {
  const { links } = await linksOf('Away', ['ida@list.example'])
  const link = links.get('ida@list.example') as string
  process.kill(service.redis.pid, 'SIGSTOP')
  try {
    const page = await until(async () => {
      const seen = await open(link)
      return seen.status === 503 ? seen : null
    }, 30_000)
    t.match(page.headers.get('content-type'), /html/)
    t.match(page.headers.get('retry-after'), /^\d+$/)
    t.ok([503, 404].includes((await post(link).catch(() => ({ status: 404 }))).status))
  } finally {
    process.kill(service.redis.pid, 'SIGCONT')
  }
})
