/** suppressions - lists filled by simulated bounces and by hand, searched, read and lifted over HTTP. */
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const UNKNOWN_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'

const service = await startTestService()
t.teardown(() => service.stop())
const { testServer, liveServer, account, operatorToken } = service.firstRun
const token = testServer.token
const send = (to: string[]) =>
  service.call('POST /v1/email', {
    token,
    body: { from: 'shop@simulator.test', to, subject: 'Hello', text: 'Mail' },
  })
const search = (body: object = {}, key = token) => service.call('POST /v1/suppressions/search', { token: key, body })
const read = (id: string, key = token) => service.call(`GET /v1/suppressions/${id}`, { token: key })
const lift = (id: string, key = token) => service.call(`DELETE /v1/suppressions/${id}`, { token: key })

/** Sends, and returns the message once no recipient waits any more. */
async function sent(to: string[]) {
  const { json } = await send(to)
  return until(async () => {
    const message = await service.call(`GET /v1/messages/${json.messageId}`, { token })
    const waits = message.json.recipients.some(({ status }: { status: string }) => /accepted|deferred/.test(status))
    return waits ? null : message.json
  }, 10_000)
}

t.test('suppressions: empty at first, wrong kinds of key are refused', async (t) => {
  t.same((await search()).json, { suppressions: [], next: null })
  t.equal((await search({}, account.token)).json.error, 'wrong_token_kind')
  t.equal((await search({ streamId: UNKNOWN_ID })).json.error, 'stream_not_found')
  t.equal((await search({ limit: 1001 })).json.error, 'invalid_request')
  t.equal((await read(UNKNOWN_ID)).json.error, 'not_found')
  t.equal((await read('nonsense')).json.error, 'not_found')
  t.equal((await lift(UNKNOWN_ID)).json.error, 'not_found')
})

t.test(
  'suppressions: a bounce and a complaint list the address, and mail to it is skipped [send.suppressed]',
  async (t) => {
    const first = await sent(['Bounce+One@simulator.test', 'complaint@simulator.test', 'fine@simulator.test'])
    const { json } = await search()
    t.equal(json.suppressions.length, 2)
    const bounced = json.suppressions.find(({ reason }: { reason: string }) => reason === 'hard_bounce')
    t.match(bounced, {
      // A list is of persons, not of requests.
      recipient: 'bounce+one@simulator.test',
      streamId: first.streamId,
      messageId: first.messageId,
      code: 550,
      response: '550 5.1.1 No such user (test)',
      liftable: true,
    })
    const complained = json.suppressions.find(({ reason }: { reason: string }) => reason === 'spam_complaint')
    t.match(complained, { recipient: 'complaint@simulator.test', code: null, response: null, liftable: false })
    t.type(first.recipients[1].complainedAt, 'string')
    const again = await sent(['bounce+one@simulator.test', 'fine@simulator.test'])
    t.equal(again.status, 'mixed')
    t.match(again.recipients[0], { status: 'suppressed', attempts: 0, nextAttemptAt: null, code: null, response: null })
    t.strictSame(again.events[0].details, {
      code: null,
      response: null,
      classification: 'Suppressed',
      hard: true,
      expired: false,
    })
    t.same((await read(bounced.suppressionId)).json, bounced)
    t.equal((await read(bounced.suppressionId, liveServer.token)).status, 404)
    t.equal((await lift(bounced.suppressionId, liveServer.token)).status, 404)
    t.match((await lift(complained.suppressionId)).json, {
      error: 'suppression_not_liftable',
      reason: 'spam_complaint',
    })
    t.equal((await lift(bounced.suppressionId.toUpperCase())).status, 204)
    t.equal((await lift(bounced.suppressionId)).status, 404)
    t.equal((await read(bounced.suppressionId)).status, 404)
    const free = await sent(['bounce+one@simulator.test'])
    t.equal(free.recipients[0].status, 'bounced', 'it is attempted again')
  },
)

t.test('suppressions: search by recipient, reason, stream and time, page by page [suppression.search]', async (t) => {
  const { streamId } = (await search()).json.suppressions[0]
  const recipients = Array.from({ length: 25 }, (_, index) => `person${index}@Example.NET`)
  const body = { streamId, recipients: [...recipients, 'PERSON3@example.net', 'complaint@simulator.test'] }
  const added = await service.call('POST /v1/suppressions', { token, body })
  t.strictSame(added.json, { added: 25, existing: 1 })
  const all = (await search()).json.suppressions
  t.equal(all.length, 27)
  t.same(
    all.map(({ suppressionId }: { suppressionId: string }) => suppressionId),
    all
      .map(({ suppressionId }: { suppressionId: string }) => suppressionId)
      .sort()
      .reverse(),
    'newest first',
  )
  const paged: object[] = []
  let after: string | undefined
  for (let pages = 0; pages < 10; pages += 1) {
    const page: { suppressions: object[]; next: string | null } = (
      await search({ limit: 7, streamId, ...(after !== undefined && { after }) })
    ).json
    paged.push(...page.suppressions)
    if (page.next === null) break
    t.equal(page.suppressions.length, 7)
    after = page.next
  }
  t.same(paged, all)
  const manual = (await search({ reason: 'manual' })).json.suppressions
  t.equal(manual.length, 25)
  t.equal(manual.at(-1).recipient, 'person0@example.net')
  const one = (await search({ recipient: 'Person7@example.net' })).json
  t.match(one, { suppressions: [{ recipient: 'person7@example.net', reason: 'manual', messageId: null }], next: null })
  t.same((await search({ recipient: 'nobody@example.net' })).json.suppressions, [])
  t.same((await search({ recipient: 'person7@example.net', reason: 'spam_complaint' })).json.suppressions, [])
  const { createdAt } = manual[0]
  const later = new Date(Date.parse(createdAt) + 1).toISOString()
  t.equal((await search({ createdFrom: createdAt, createdTo: later })).json.suppressions.length, 25)
  t.same((await search({ createdFrom: later })).json.suppressions, [])
  t.equal((await search({ createdTo: createdAt })).json.suppressions.length, 2)
  const skipped = await sent(['PERSON12@example.net'])
  t.equal(skipped.status, 'suppressed')
})

t.test('suppressions: valid additions [suppression.add]', async (t) => {
  const add = (body: object) => service.call('POST /v1/suppressions', { token, body })
  const { streamId } = (await search()).json.suppressions[0]
  const issues = async (body: object) => (await add(body)).json.issues.map(({ path }: { path: string }) => path)
  t.same(await issues({ streamId, recipients: [] }), ['recipients'])
  t.same(await issues({ streamId, recipients: ['a@b.example', 'no address'] }), ['recipients.1'])
  t.same(await issues({ streamId, recipients: Array.from({ length: 1001 }, () => 'a@b.example') }), ['recipients'])
  t.equal((await add({ streamId: UNKNOWN_ID, recipients: ['a@b.example'] })).json.error, 'stream_not_found')
})

t.test('suppressions: the operator searches a server and lifts any entry, with a note [operator.audit]', async (t) => {
  const operate = (what: string, body: object) => service.operate(what, { token: operatorToken, body })
  const of = testServer.serverId
  const found = await operate('POST /v1/operator/suppressions/search', { serverId: of, reason: 'spam_complaint' })
  t.equal(found.json.suppressions.length, 1)
  const { suppressionId } = found.json.suppressions[0]
  t.equal((await operate('POST /v1/operator/suppressions/search', { serverId: UNKNOWN_ID })).status, 404)
  const path = `DELETE /v1/operator/suppressions/${suppressionId}`
  t.equal((await operate(path, { note: 'Asked for by telephone' })).status, 204)
  t.equal((await operate(path, {})).status, 404)
  t.equal((await operate(`DELETE /v1/operator/suppressions/${UNKNOWN_ID}`, {})).status, 404)
  t.equal((await read(suppressionId)).status, 404)
  const audit = await service.operate('GET /v1/operator/audit', { token: operatorToken })
  t.match(audit.json.entries[0], {
    act: 'operatorLiftSuppression',
    note: 'Asked for by telephone',
    targets: { suppressionId, serverId: of },
    before: { reason: 'spam_complaint' },
  })
  const free = await sent(['complaint@simulator.test'])
  t.equal(free.status, 'delivered')
})
