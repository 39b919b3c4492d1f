/**
 * ghost - the requests of Ghost's newsletters (as Ghost 6.65 makes them) through the official client of Mailgun: a send
 * to 1,000 with variables of each recipient, and polls of its events to the end
 */

import { createRequire } from 'node:module'
import PostalMime from 'postal-mime'
import t, { type Test } from 'tap'
import { until } from '../../support/machine/until.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const delivery = await startDelivery({ BASE_URL: 'https://mail.acme.example' })
t.teardown(() => delivery.stop())
const { service, destination } = delivery
const { account, liveServer } = service.firstRun
const { token } = liveServer
const mx = await destination('list.example', {
  rcpt: (line) => (/^RCPT TO:<gone/i.test(line) ? '550 5.1.1 No such user' : '250 2.1.5 Ok'),
})
const DOMAIN = 'acme.example'
const MEMBERS = 1_000
/** Without those that bounced. */
const OPEN = MEMBERS - MEMBERS / 100
const url = `http://127.0.0.1:${service.config.httpPort}`
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })

interface Page {
  readonly items: readonly Event[]
  readonly pages: { readonly next: { readonly page: string; readonly url: string } }
}
interface Event {
  readonly id: string
  readonly event: string
  readonly severity?: string
  readonly recipient: string
  readonly timestamp: number
  readonly tags: readonly string[]
  readonly message: { readonly headers: { readonly 'message-id': string } }
  readonly 'user-variables': Readonly<Record<string, string>>
  readonly 'delivery-status'?: { readonly code: number; readonly 'enhanced-code'?: string; readonly message: string }
}
interface Client {
  readonly messages: { create(domain: string, data: object): Promise<{ id: string; message: string }> }
  readonly events: { get(domain: string, query: object): Promise<Page> }
}
interface Library {
  new (form: typeof FormData): { client(options: object): Client }
}
const library = createRequire(import.meta.url)('mailgun.js') as Library & { default?: Library }
const Mailgun = library.default ?? library
const mailgun = new Mailgun(FormData).client({ username: 'api', key: token, url })

/** A call fails with an error of the client that holds what is expected. */
async function rejects(t: Test, call: Promise<unknown>, expected: object): Promise<void> {
  const outcome = await call.then(
    () => null,
    (error: unknown) => error,
  )
  t.match(outcome, expected)
}

const addressOf = (place: number) => `${place % 100 === 99 ? 'gone' : 'member'}${place}@list.example`
const recipients = Object.fromEntries(
  Array.from({ length: MEMBERS }, (_, place) => [
    addressOf(place),
    {
      name: `Łukasz O'Shea, the ${place}th <b>`,
      // As Handlebars escapes it.
      name_html: `Łukasz O&#x27;Shea, the ${place}th &lt;b&gt;`,
      unsubscribe_url: `https://blog.example/unsubscribe/?uuid=${place}&newsletter=1`,
      list_unsubscribe: `https://blog.example/unsubscribe/?uuid=${place}`,
      message_id: `65f0c1.${place}@acme.example`,
      unused: 'x',
    },
  ]),
)

/** The form that Ghost makes of a newsletter. */
const newsletter = {
  to: Object.keys(recipients),
  from: '"Blog, Inc" <news@acme.example>',
  'h:Reply-To': 'noreply@acme.example',
  'h:Sender': '"Blog, Inc" <news@acme.example>',
  'h:Auto-Submitted': 'auto-generated',
  'h:X-Auto-Response-Suppress': 'OOF, AutoReply',
  'h:List-Unsubscribe': '<%recipient.list_unsubscribe%>, <%tag_unsubscribe_email%>',
  'h:List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  'h:Message-Id': '<%recipient.message_id%>',
  subject: 'News for {{you}}',
  html: '<style>a{{b}}</style><p>Dear %recipient.name_html%</p><i>%recipient.name%</i><a href="%recipient.unsubscribe_url%">Leave</a>',
  text: 'Dear %recipient.name%, {%recipient.name%}',
  'recipient-variables': JSON.stringify(recipients),
  'v:email-id': '65f0c1',
  'o:tag': ['bulk-email', 'ghost-email'],
  'o:tracking-opens': true,
}

t.test('ghost: a broadcast stream is needed, and only one can be meant', async (t) => {
  const send = () => mailgun.messages.create(DOMAIN, newsletter)
  await rejects(t, send(), { status: 400, details: /broadcast stream/ })
  for (const name of ['News', 'Offers']) await call('POST /v1/streams', { kind: 'broadcast', name })
  await rejects(t, send(), { status: 400, details: /name one of several "mailgun"/ })
  const { json: stream } = await call('POST /v1/streams', { kind: 'broadcast', name: 'Mailgun' })
  await service.operate(`PATCH /v1/operator/streams/${stream.streamId}`, {
    token: service.firstRun.operatorToken,
    body: { pacePerMinute: 60_000 },
  })
  t.ok(account.accountId)
})

const options = {
  limit: 300,
  event: 'delivered OR opened OR failed OR unsubscribed OR complained',
  tags: 'bulk-email',
  begin: Math.floor(Date.now() / 1_000) - 60,
  end: Math.floor(Date.now() / 1_000) + 3_600,
  ascending: 'yes',
}

/** The loop of Ghost: pages until one is empty. */
async function poll(from?: string): Promise<{ readonly events: readonly Event[]; readonly page: string }> {
  const events: Event[] = []
  let page = await mailgun.events.get(DOMAIN, { ...options, ...(from !== undefined && { page: from }) })
  while (page.items.length > 0) {
    events.push(...page.items)
    page = await mailgun.events.get(DOMAIN, { page: page.pages.next.page, ...options })
  }
  return { events, page: page.pages.next.page }
}

t.test('ghost: a newsletter to 1,000 members, and its events', async (t) => {
  const { id, message } = await mailgun.messages.create(DOMAIN, newsletter)
  t.match(id, /^<[0-9a-f-]{36}@acme\.example>$/)
  t.equal(message, 'Queued. Thank you.')
  const providerId = id.slice(1, -1)
  const seen = new Map<string, Event>()
  let place: string | undefined
  await until(async () => {
    const { events, page } = await poll(place)
    for (const event of events) {
      if (seen.has(event.id)) throw new Error('An event came twice')
      seen.set(event.id, event)
    }
    place = page
    return seen.size >= MEMBERS
  }, 60_000)
  const events = [...seen.values()]
  t.equal(events.length, MEMBERS)
  t.same(new Set(events.map(({ recipient }) => recipient)).size, MEMBERS)
  t.ok(events.every((event) => event.message.headers['message-id'] === providerId))
  t.ok(events.every((event) => event['user-variables']['email-id'] === '65f0c1'))
  t.ok(events.every((event) => event.tags.includes('ghost-email')))
  const failed = events.filter(({ event }) => event === 'failed')
  t.equal(failed.length, MEMBERS / 100)
  t.match(failed[0], {
    severity: 'permanent',
    recipient: /^gone/,
    'delivery-status': { code: 550, 'enhanced-code': '5.1.1', message: /No such user/ },
  })
  t.equal(events.filter(({ event }) => event === 'delivered').length, MEMBERS - MEMBERS / 100)
  const { items } = await mailgun.events.get(DOMAIN, { limit: 5, event: 'failed' })
  t.equal(items.length, 5)
  const ids = items.map((event) => event.id)
  t.same(ids, [...ids].sort().reverse(), 'without an order the newest comes first')
  const next = await mailgun.events.get(DOMAIN, { limit: 5, event: 'failed', tags: 'other' })
  t.equal(next.items.length, 0)
  await rejects(t, mailgun.events.get(DOMAIN, { limit: 301 }), { status: 400 })
  await rejects(t, mailgun.events.get(DOMAIN, { page: 'bm90aGluZw' }), { status: 400 })
  await rejects(t, mailgun.events.get('elsewhere.example', options), { status: 404 })
})

t.test('ghost: each mail has the values of its recipient, and one List-Unsubscribe', async (t) => {
  const mails = mx.sessions.flatMap(({ messages }) => messages)
  const raw = mails.find((mail) => mail.includes('member7@list.example')) ?? ''
  const mail = await PostalMime.parse(raw)
  const valuesOf = (name: string) => mail.headers.filter(({ key }) => key === name).map(({ value }) => value)
  t.same(valuesOf('list-unsubscribe'), ['<https://blog.example/unsubscribe/?uuid=7>'])
  t.same(valuesOf('list-unsubscribe-post'), ['List-Unsubscribe=One-Click'])
  t.same(valuesOf('list-id').length, 1)
  t.same(valuesOf('auto-submitted'), ['auto-generated'])
  t.equal(mail.subject, 'News for {{you}}')
  t.equal(mail.text?.trim(), "Dear Łukasz O'Shea, the 7th <b>, {Łukasz O'Shea, the 7th <b>}")
  const name = 'Łukasz O&#39;Shea, the 7th &lt;b&gt;'
  t.match(mail.html, `<style>a{{b}}</style><p>Dear ${name}</p><i>${name}</i>`, 'escaped once, by the client or by us')
  t.match(valuesOf('message-id'), [/^<[0-9a-f-]{36}@acme\.example>$/], 'with an id of our own')
  t.match(mail.html, 'uuid=7&amp;newsletter=1')
  t.notMatch(raw, 'mail.acme.example/u/')
})

const REFUSED: readonly [object, RegExp][] = [
  [{ 'recipient-variables': '[1]' }, /recipient-variables: Must be JSON/],
  [{ 'recipient-variables': '{"a@list.example":{}}' }, /recipient-variables: Required/],
  [{ cc: 'a@list.example' }, /cc: Must not be given/],
  [{ to: Array.from({ length: 1_001 }, (_, n) => `m${n}@list.example`) }, /to: Must have at most 1000/],
  [
    { 'h:List-Unsubscribe': '<ftp://%recipient.list_unsubscribe%>' },
    /recipient-variables: List-Unsubscribe must hold an https or mailto URL/,
  ],
  [{ 'h:List-Unsubscribe': undefined, 'h:X-Name': '%recipient.name%' }, /h:X-Name: Variables are filled/],
]

t.test('ghost: a newsletter at a time is a scheduled broadcast, which can be cancelled', async (t) => {
  const at = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 3_600_000)
  const { id } = await mailgun.messages.create(DOMAIN, { ...newsletter, 'o:deliverytime': at.toUTCString() })
  const [, broadcastId] = /^<([0-9a-f-]{36})@/.exec(id) ?? []
  const read = await call(`GET /v1/broadcasts/${broadcastId}`)
  t.match(read.json, {
    status: 'accepted',
    sendAt: at.toISOString(),
    released: 0,
    total: OPEN,
    suppressed: MEMBERS - OPEN,
  })
  t.match((await call(`POST /v1/broadcasts/${broadcastId}/cancel`)).json, { status: 'cancelled', failed: OPEN })
  const late = { ...newsletter, 'o:deliverytime': new Date(Date.now() + 40 * 86_400_000).toUTCString() }
  await rejects(t, mailgun.messages.create(DOMAIN, late), { status: 400, details: /o:deliverytime: .*27 days/ })
})

t.test('ghost: refusals name the field of the form', async (t) => {
  for (const [changes, details] of REFUSED) {
    const form = Object.fromEntries(Object.entries({ ...newsletter, ...changes }).filter(([, value]) => value != null))
    await rejects(t, mailgun.messages.create(DOMAIN, form), { status: 400, details })
  }
})

t.test('ghost: variables and braces that would cost more than they say are refused', async (t) => {
  const many = (length: number, text: (place: number) => string) => Array.from({ length }, (_, at) => text(at)).join('')
  const startMs = performance.now()
  const html = many(100_000, (at) => `%recipient.a${at}%`)
  await rejects(t, mailgun.messages.create(DOMAIN, { ...newsletter, html }), { status: 400, details: /20 variables/ })
  t.ok(performance.now() - startMs < 5_000, `${performance.now() - startMs} ms`)
  const braces = mailgun.messages.create(DOMAIN, { ...newsletter, html: '{{'.repeat(1_000_000) })
  await rejects(t, braces, { status: 400, details: /more than 10000 times/ })
})

t.test('broadcast: unsubscribe is for headers with a way out [broadcast.unsubscribe]', async (t) => {
  const { json } = await call('GET /v1/streams?kind=broadcast')
  const body = {
    streamId: json.streams[0].streamId,
    from: 'news@acme.example',
    subject: 'News',
    text: 'Hello',
    unsubscribe: 'sender',
    messages: [{ to: 'a@list.example', substitutions: { link: 'https://blog.example/1' } }],
  }
  const issuesOf = async (headers: object) => (await call('POST /v1/broadcasts', { ...body, headers })).json.issues
  t.match(await issuesOf({}), [{ path: 'unsubscribe' }])
  t.match(await issuesOf({ 'List-Unsubscribe': '<{{link}' }), [{ path: 'headers.List-Unsubscribe' }])
  t.match(await issuesOf({ 'List-Unsubscribe': '<{{unsubscribeUrl}}>' }), [{ path: 'headers.List-Unsubscribe' }])
  t.match(await issuesOf({ 'List-Unsubscribe': '{{link}}' }), [{ path: 'messages.0.substitutions' }])
  t.match(await issuesOf({ 'List-Unsubscribe': '<{{link}}>', 'X-A': 'a{{link}}'.repeat(60) }), [
    { path: 'messages.0.substitutions', message: /^X-A must have/ },
  ])
  const preview = { ...body, headers: { 'List-Unsubscribe': '<{{link}}>' } }
  t.equal((await call('POST /v1/broadcasts/preview', preview)).json.text, 'Hello', 'no footer is added')
  t.equal((await call('POST /v1/broadcasts', preview)).status, 202)
})
