/** erasures - one person erased over HTTP: the answers, the shown mail and lists, and later mail. */
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { account, testServer } = service.firstRun
t.teardown(() => service.stop())

const UNKNOWN_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'
const ADA = 'delivered+Ada@simulator.test'
const { token } = account
const server = testServer.token

async function erase(address: string) {
  const ordered = await service.call('POST /v1/erasures', { token, body: { address } })
  t.match(ordered, {
    status: 202,
    json: { status: 'pending', completedAt: null, pseudonym: null, messages: null, receivedMessages: null },
  })
  const id = ordered.json.erasureId as string
  const done = await until(async () => {
    const { json } = await service.call(`GET /v1/erasures/${id}`, { token })
    return json.status === 'done' ? json : null
  }, 60_000)
  t.match(done, { erasureId: id, createdAt: ordered.json.createdAt, completedAt: /Z$/ })
  return done
}

async function send(to: string | string[], more: object = {}) {
  const body = {
    from: 'hello@simulator.test',
    to: [to].flat(),
    subject: 'Hello',
    text: 'Dear Ada',
    tag: 'greeting',
    metadata: { who: 'ada' },
    ...more,
  }
  const sent = await service.call('POST /v1/email', { token: server, body })
  t.equal(sent.status, 200)
  const id = sent.json.messageId as string
  return { id, read: async () => (await service.call(`GET /v1/messages/${id}`, { token: server })).json }
}

/** Waits until nothing of a message waits. */
const ended = async (message: { read(): Promise<{ status: string }> }) =>
  until(async () => ((await message.read()).status === 'accepted' ? null : true), 60_000)

t.test(
  'erasure: content goes, the address becomes the pseudonym, the log stays [erasure.create] [erasure.read]',
  async (t) => {
    const sent = await send([ADA, 'delivered+bob@simulator.test'])
    await ended(sent)
    const done = await erase(ADA.toUpperCase())
    t.match(done, { messages: 1, receivedMessages: 0, pseudonym: /^erased-[a-z2-7]{12}@erased\.invalid$/ })
    const message = await sent.read()
    t.match(message, {
      subject: null,
      text: null,
      html: null,
      tag: null,
      headers: {},
      contentAvailable: false,
      status: 'delivered',
    })
    t.strictSame(message.metadata, {})
    t.match(message.recipients, [
      { recipient: done.pseudonym, response: null, code: 250 },
      { recipient: 'delivered+bob@simulator.test', response: '250 2.0.0 OK (test)' },
    ])
    t.notMatch(JSON.stringify(message).toLowerCase(), /\+ada|dear/)
    const found = await service.call('POST /v1/messages/search', { token: server, body: { recipient: ADA } })
    t.same(found.json.messages, [])
  },
)

t.test(
  'erasure: a second one changes nothing more, later mail is delivered and found [erasure.pseudonym] [erasure.cut]',
  async (t) => {
    const first = await erase(ADA)
    const later = await send(ADA)
    await ended(later)
    t.match(await later.read(), { subject: 'Hello', recipients: [{ recipient: ADA, status: 'delivered' }] })
    const found = await service.call('POST /v1/messages/search', { token: server, body: { recipient: ADA } })
    t.same(
      found.json.messages.map(({ messageId }: { messageId: string }) => messageId),
      [later.id],
    )
    const second = await erase(ADA)
    t.match(second, { messages: 1, pseudonym: first.pseudonym })
    t.not(second.erasureId, first.erasureId)
    t.match(await erase(ADA), { messages: 0, pseudonym: first.pseudonym })
  },
)

t.test(
  'erasure: a suppression stays, under the pseudonym, is found by the address and lifted [erasure.suppressions]',
  async (t) => {
    const address = 'hardbounce+carl@simulator.test'
    await ended(await send(address))
    const done = await erase(address)
    const search = () => service.call('POST /v1/suppressions/search', { token: server, body: { recipient: address } })
    const { json } = await search()
    t.match(json.suppressions, [{ recipient: done.pseudonym, reason: 'hard_bounce', code: 550, response: null }])
    const again = await send(address)
    t.match(
      await again.read(),
      { status: 'suppressed', recipients: [{ recipient: address }] },
      'it blocks as before, and later mail is somebody new',
    )
    const lifted = await service.call(`DELETE /v1/suppressions/${json.suppressions[0].suppressionId}`, {
      token: server,
    })
    t.equal(lifted.status, 204)
    t.same((await search()).json.suppressions, [])
  },
)

t.test('erasure: the refusals, in order [refusal.order]', async (t) => {
  const post = (options: object) => service.call('POST /v1/erasures', options)
  t.match(await post({ body: { address: ADA } }), { status: 401, json: { error: 'unauthorized' } })
  t.match(await post({ token: server, body: { address: ADA } }), { status: 403, json: { error: 'wrong_token_kind' } })
  t.match(await post({ token, body: { address: 'no address', more: 1 } }), {
    status: 400,
    json: { error: 'invalid_request', issues: [{ path: 'address' }, { path: 'more' }] },
  })
  t.match(await service.call(`GET /v1/erasures/${UNKNOWN_ID}`, { token }), {
    status: 404,
    json: { error: 'not_found' },
  })
  t.match(await service.call('GET /v1/erasures/none', { token }), { status: 404 })
  t.match(await service.call(`GET /v1/erasures/${account.accountId}`, { token }), { status: 404 })
  t.match(await service.call(`GET /v1/erasures/${UNKNOWN_ID}`, { token: server }), { status: 403 })
})

t.test('erasure: the order is in the audit log without the address, and in the figures', async (t) => {
  const audit = await service.operate('GET /v1/operator/audit', { token: service.firstRun.operatorToken })
  const [entry] = audit.json.entries
  t.match(entry, {
    act: 'createErasure',
    targets: { accountId: account.accountId, erasureId: /-/ },
    actor: /-/,
    note: null,
    before: null,
    after: { status: 'pending' },
  })
  t.notMatch(JSON.stringify(audit.json), /simulator/)
  await until(async () => {
    const { text } = await service.operateActors('GET /metrics')
    return /^sendwright_erasures_done_total 5$/m.test(text) && /^sendwright_erasures_pending 0$/m.test(text)
      ? text
      : null
  }, 20_000)
  t.match((await service.operateActors('GET /metrics')).text, /^sendwright_erased_messages_total 3$/m)
})
