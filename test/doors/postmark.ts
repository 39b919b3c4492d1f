/**
 * postmark - the official client of Postmark against a running service, whose host and token are all that changes
 */

import { Errors, Models, ServerClient } from 'postmark'
import t, { type Test } from 'tap'
import { until } from '../support/machine/until.ts'
import { multipart } from '../support/peers/mime-mail.ts'
import { deliverMail } from '../support/peers/smtp-dialog.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService({ CONTENT_STORE: 'file' })
t.teardown(() => service.stop())
const { account, liveServer, testServer } = service.firstRun
const { token } = testServer
const much = { perMinuteLimit: 100_000, testPerMinuteLimit: 100_000 }
await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
  token: service.firstRun.operatorToken,
  body: much,
})

const clientOf = (key: string) =>
  new ServerClient(key, { requestHost: `127.0.0.1:${service.config.httpPort}`, useHttps: false })
const client = clientOf(token)

const FROM = '"Acme, Inc" <hello@simulator.test>'
const plain = { From: FROM, To: 'delivered@simulator.test', Subject: 'Hello', TextBody: 'Hello' }
const UNKNOWN_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'

type ErrorClass = new (...args: never[]) => Errors.PostmarkError

/** A call fails with an error of a class of the client. */
async function rejects(
  t: Test,
  call: Promise<unknown>,
  [kind, code, words]: readonly [ErrorClass, number, RegExp],
): Promise<Errors.PostmarkError> {
  const error = await call.then(
    () => null,
    (caught: unknown) => caught as Errors.PostmarkError,
  )
  t.equal(error?.constructor, kind, words.source)
  t.match(error, { code, message: words })
  return error as Errors.PostmarkError
}

function ask(what: string, { body, key }: { body?: unknown; key?: string } = {}) {
  const [method = '', path = ''] = what.split(' ')
  const headers = {
    connection: 'close',
    'x-postmark-server-token': token,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(key !== undefined && { 'idempotency-key': key }),
  }
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  return fetch(`http://127.0.0.1:${service.config.httpPort}${path}`, init)
}

const own = (what: string, body?: unknown) => service.call(what, { token, ...(body !== undefined && { body }) })

function untilStatus(id: string, status: string) {
  return until(async () => {
    const { json } = await own(`GET /v1/messages/${id}`)
    return json.status === status ? json : null
  }, 10_000)
}

t.test('postmark: a message is sent and read back', async (t) => {
  const bytes = Buffer.from('%PDF-1.4 ünïcode')
  const message = {
    From: FROM,
    To: '"Łukasz, the 1st" <delivered@simulator.test>, delivered+b@simulator.test',
    Cc: 'delivered+c@simulator.test',
    Bcc: 'delivered+d@simulator.test',
    ReplyTo: '"Help, now" <help@example.com>, other@example.com',
    Subject: 'Grüße',
    HtmlBody: '<img src="cid:logo.png">',
    TextBody: 'Hello',
    Tag: 'welcome',
    Metadata: { order: '42' },
    Headers: [new Models.Header('X-Campaign', '7')],
    TrackOpens: true,
    TrackLinks: Models.LinkTrackingOptions.HtmlAndText,
    MessageStream: 'Outbound',
    Attachments: [
      new Models.Attachment('rechnung-ü.pdf', bytes.toString('base64'), 'application/pdf; charset=utf-8'),
      new Models.Attachment('logo.png', bytes.toString('base64'), 'image/png', 'cid:logo.png'),
    ],
  }
  const sent = await client.sendEmail(message)
  t.match(sent, { To: message.To, Cc: message.Cc, ErrorCode: 0, Message: 'Test job accepted' })
  t.match(await untilStatus(sent.MessageID, 'delivered'), {
    from: { email: 'hello@simulator.test', name: 'Acme, Inc' },
    tag: 'welcome',
    metadata: { order: '42' },
    headers: { 'Reply-To': '"Help, now" <help@example.com>, other@example.com', 'X-Campaign': '7' },
    recipients: [{ name: 'Łukasz, the 1st' }, {}, { kind: 'cc' }, { kind: 'bcc' }],
    attachments: [
      { name: 'rechnung-ü.pdf', contentType: 'application/pdf', size: bytes.length },
      { name: 'logo.png', contentId: 'logo.png' },
    ],
  })
  const details = await client.getOutboundMessageDetails(sent.MessageID)
  t.match(details, {
    MessageID: sent.MessageID,
    To: [{ Email: 'delivered@simulator.test', Name: 'Łukasz, the 1st' }, { Email: 'delivered+b@simulator.test' }],
    From: FROM,
    Status: 'Sent',
    Sandboxed: true,
    MessageStream: 'outbound',
    TextBody: 'Hello',
    Attachments: ['rechnung-ü.pdf', 'logo.png'],
    MessageEvents: [{ Type: 'Delivered' }, {}, {}, {}],
  })
})

/** Calls that are refused: the message, the class of the client's error, its code, and words of its message. */
const REFUSED: readonly [object, ErrorClass, number, RegExp][] = [
  [{ ...plain, From: 'nobody' }, Errors.InvalidEmailRequestError, 300, /'From'/],
  [{ ...plain, From: 'a@elsewhere.example' }, Errors.ApiInputError, 400, /elsewhere\.example.* not verified/],
  [{ ...plain, To: 'no address' }, Errors.InvalidEmailRequestError, 300, /'To'/],
  [{ ...plain, To: undefined }, Errors.InvalidEmailRequestError, 300, /'To'.*Required/],
  [{ ...plain, Subject: '' }, Errors.InvalidEmailRequestError, 300, /'Subject'.*Required/],
  [{ ...plain, TextBody: '' }, Errors.InvalidEmailRequestError, 300, /'TextBody'/],
  [{ ...plain, TemplateId: 1 }, Errors.InvalidEmailRequestError, 300, /Templates are not offered/],
  [{ ...plain, MessageStream: 'no such' }, Errors.ApiInputError, 1235, /no stream with that name/],
  [{ ...plain, ReplyTo: 'nobody' }, Errors.InvalidEmailRequestError, 300, /'ReplyTo'/],
  [{ ...plain, Headers: [{ Name: 'Bcc', Value: 'a@b.example' }] }, Errors.InvalidEmailRequestError, 300, /'Headers/],
  [{ ...plain, Metadata: { a: 1 } }, Errors.InvalidEmailRequestError, 300, /'Metadata/],
  [
    { ...plain, Attachments: [{ Name: 'a', Content: '***', ContentType: 'text/plain' }] },
    Errors.InvalidEmailRequestError,
    300,
    /'Attachments\.0\.Content'/,
  ],
  [{ ...plain, Sender: 'x' }, Errors.InvalidEmailRequestError, 300, /'Sender'.*Unknown field/],
]

t.test('postmark: refusals are errors of the client', async (t) => {
  for (const [message, ...expected] of REFUSED) await rejects(t, client.sendEmail(message as typeof plain), expected)
  const wrong: [ErrorClass, number, RegExp] = [Errors.InvalidAPIKeyError, 10, /token/]
  await rejects(t, clientOf('no-such-token').sendEmail(plain), wrong)
  await rejects(t, clientOf(account.token).sendEmail(plain), [Errors.InvalidAPIKeyError, 10, /key/])
  const template = { ...plain, TemplateAlias: 'welcome', TemplateModel: {} }
  const untold: [ErrorClass, number, RegExp] = [Errors.ApiInputError, 1101, /Templates are not offered/]
  await rejects(t, client.sendEmailWithTemplate(template), untold)
  await rejects(t, client.sendEmailBatchWithTemplates([template]), untold)
  await rejects(t, client.getTemplates(), untold)
  await rejects(t, client.createTemplate({ Name: 'a', Subject: 'b' } as never), untold)
  await rejects(t, client.getOutboundMessageDetails(UNKNOWN_ID), [Errors.PostmarkError, 701, /Not found/])
  await rejects(t, client.getMessageOpens(), [Errors.PostmarkError, 701, /Opens are not tracked/])
  await rejects(t, client.getWebhooks(), [Errors.PostmarkError, 701, /\/v1\/webhooks/])
  await rejects(t, client.sendBulkEmail({} as never), [Errors.PostmarkError, 701, /\/v1\/broadcasts/])
  t.match(await (await ask('POST /email', { body: '{' })).json(), { ErrorCode: 402 })
  const both = { 'x-postmark-server-token': token, authorization: `Bearer ${token}`, connection: 'close' }
  t.equal((await fetch(`http://127.0.0.1:${service.config.httpPort}/server`, { headers: both })).status, 401)
})

t.test('postmark: a batch of 500 with 17 bad messages, each with an answer of its own', async (t) => {
  const isBad = (place: number) => place % 30 === 29 || place === 499
  const bad = [
    { ...plain, To: 'nobody' },
    { ...plain, From: 'a@elsewhere.example' },
    { ...plain, MessageStream: 'no such' },
  ]
  const messages = Array.from({ length: 500 }, (_, place) => {
    return isBad(place) ? (bad[place % 3] as typeof plain) : { ...plain, To: `delivered+${place}@simulator.test` }
  })
  const sent = await client.sendEmailBatch(messages)
  t.equal(sent.length, 500)
  const failed = sent.flatMap(({ ErrorCode }, place) => (ErrorCode === 0 ? [] : [place]))
  t.same(
    failed,
    Array.from({ length: 500 }, (_, place) => place).filter((place) => isBad(place)),
  )
  t.equal(failed.length, 17)
  t.match(sent[29], { ErrorCode: 1235 })
  t.match(sent[499], { ErrorCode: 400, Message: /not verified/ })
  t.match(sent[100], { To: 'delivered+100@simulator.test', ErrorCode: 0 })
  const tooMany = Array.from({ length: 501 }, () => plain)
  await rejects(t, client.sendEmailBatch(tooMany), [Errors.ApiInputError, 410, /at most 500/])
  await rejects(t, client.sendEmailBatch([]), [Errors.ApiInputError, 402, /list/])
})

t.test('postmark: one Idempotency-Key is one message, 64 times at once, and one batch', async (t) => {
  const once = { ...plain, Subject: 'Once', To: 'delivered+once@simulator.test' }
  const answers = await Promise.all(
    Array.from({ length: 64 }, async () => (await ask('POST /email', { body: once, key: 'once' })).json()),
  )
  t.equal(new Set(answers.map((one) => (one as { MessageID: string }).MessageID)).size, 1)
  t.match(await (await ask('POST /email', { body: plain, key: 'once' })).json(), { ErrorCode: 300, Message: /already/ })
  const batch = Array.from({ length: 150 }, () => ({ ...plain, Tag: 'replayed' }))
  const first = await (await ask('POST /email/batch', { body: batch, key: 'batch' })).json()
  t.same(await (await ask('POST /email/batch', { body: batch, key: 'batch' })).json(), first)
  const found = await client.getOutboundMessages({ tag: 'replayed', count: 500 })
  t.equal(found.Messages.length, 150)
})

t.test('postmark: recipients on the suppression list', async (t) => {
  const gone = 'gone@simulator.test'
  const added = await client.createSuppressions('outbound', {
    Suppressions: [{ EmailAddress: gone }, { EmailAddress: 'nobody' }],
  })
  t.match(added.Suppressions, [
    { EmailAddress: gone, Status: 'Suppressed' },
    { Status: 'Failed', Message: /address/ },
  ])
  const all: [ErrorClass, number, RegExp] = [Errors.InactiveRecipientsError, 406, /inactive/]
  const error = await rejects(t, client.sendEmail({ ...plain, To: `Gone <${gone}>` }), all)
  t.same((error as Errors.InactiveRecipientsError).recipients, [gone])
  const some = await client.sendEmail({ ...plain, Cc: gone })
  t.match(some, { ErrorCode: 0, Message: `Message OK, but will not deliver to these inactive addresses: ${gone}` })
  const batch = await client.sendEmailBatch([plain, { ...plain, To: gone }])
  t.match(batch, [{ ErrorCode: 0 }, { ErrorCode: 406, Message: /inactive addresses: gone@/ }])
  const body = { ...plain, To: gone }
  for (const _ of [1, 2]) t.match(await (await ask('POST /email', { body, key: 'gone' })).json(), { ErrorCode: 406 })
  const dump = await client.getSuppressions('outbound')
  t.match(dump.Suppressions, [
    { EmailAddress: gone, SuppressionReason: 'ManualSuppression', Origin: 'Customer', CreatedAt: /Z$/ },
  ])
  const filter = { suppressionReason: Models.SuppressionReason.HardBounce }
  t.equal((await client.getSuppressions('outbound', filter)).Suppressions.length, 0)
  const deleted = await client.deleteSuppressions('outbound', { Suppressions: [{ EmailAddress: gone }] })
  t.match(deleted.Suppressions, [{ EmailAddress: gone, Status: 'Deleted' }])
  t.equal((await client.getSuppressions('outbound', { emailAddress: gone })).Suppressions.length, 0)
  await rejects(t, client.getSuppressions('no-such'), [Errors.PostmarkError, 1226, /not found/])
})

t.test('postmark: bounces are listed, read, activated and counted', async (t) => {
  const sent = await client.sendEmailBatch(
    ['bounce', 'complaint', 'softbounce'].map((name) => ({
      ...plain,
      To: `${name}+pm@simulator.test`,
      Subject: `To ${name}`,
      Tag: 'bounces',
    })),
  )
  const [hard, complained] = sent.map(({ MessageID }) => MessageID) as [string, string]
  await untilStatus(hard, 'bounced')
  const { Bounces } = await until(async () => {
    const listed = await client.getBounces({ tag: 'bounces' })
    return listed.Bounces.some(({ Type }) => Type === 'SpamComplaint') ? listed : null
  }, 10_000)
  const bounce = Bounces.find(({ MessageID }) => MessageID === hard)
  t.match(bounce, {
    RecordType: 'Bounce',
    Type: 'HardBounce',
    TypeCode: 1,
    Email: 'bounce+pm@simulator.test',
    From: 'hello@simulator.test',
    Subject: 'To bounce',
    Tag: 'bounces',
    Inactive: true,
    CanActivate: true,
    MessageStream: 'outbound',
  })
  const { ID = 0 } = bounce ?? {}
  t.same(await client.getBounce(ID), bounce)
  t.match((await client.getBounces({ messageID: hard })).Bounces, [{ ID }])
  t.match((await client.getBounces({ emailFilter: 'BOUNCE+PM@', inactive: true, count: 1 })).Bounces, [{ ID }])
  t.match((await client.getBounces({ type: Models.BounceType.SpamComplaint })).Bounces, [{ MessageID: complained }])
  const details = await client.getOutboundMessageDetails(hard)
  t.match(details.MessageEvents, [{ Type: 'Bounced', Details: { BounceID: String(ID) } }])
  t.match(await client.activateBounce(ID), { Message: 'OK', Bounce: { ID, Inactive: false } })
  const { json: lists } = await own('POST /v1/suppressions/search', { recipient: 'bounce+pm@simulator.test' })
  t.same(lists.suppressions, [])
  const complaint = Bounces.find(({ Type }) => Type === 'SpamComplaint')
  t.match(complaint, { TypeCode: 100_001, CanActivate: false })
  await rejects(t, client.activateBounce(complaint?.ID ?? 0), [Errors.ApiInputError, 1003, /operator/])
  await rejects(t, client.getBounce(7), [Errors.PostmarkError, 1001, /not found/])
  await rejects(t, client.getBounces({ count: 501 }), [Errors.InvalidEmailRequestError, 300, /count/])
  const figures = await client.getDeliveryStatistics()
  t.match(figures.Bounces[0], { Name: 'All' })
  t.match(
    figures.Bounces.find(({ Type }) => Type === 'HardBounce'),
    { Count: 1 },
  )
  t.match(
    figures.Bounces.find(({ Type }) => Type === 'ManuallyDeactivated'),
    { Count: 4 },
  )
  t.equal(figures.InactiveMails, 3)
})

t.test('postmark: messages are searched', async (t) => {
  const { MessageID } = await client.sendEmail({ ...plain, Subject: 'Found by subject', Metadata: { order: '77' } })
  const search = async (filter: object) =>
    (await client.getOutboundMessages(filter)).Messages.map((one) => one.MessageID)
  t.same(await search({ subject: 'found BY' }), [MessageID])
  t.same(await search({ metadata_order: '77' }), [MessageID])
  t.ok((await search({ recipient: 'delivered@simulator.test', count: 1 })).includes(MessageID))
  t.same(await search({ toDate: '2020-01-01' }), [])
  const today = new Date().toISOString().slice(0, 10)
  t.equal((await search({ fromDate: today, toDate: today, count: 2, offset: 1 })).length, 2)
  t.same(await search({ fromEmail: 'other@simulator.test' }), [])
  await rejects(t, client.getOutboundMessages({ fromDate: 'soon' }), [Errors.InvalidEmailRequestError, 300, /fromdate/])
  await rejects(t, client.getOutboundMessages({ nothing: 'x' }), [Errors.InvalidEmailRequestError, 300, /nothing/])
})

t.test('postmark: message streams', async (t) => {
  const made = await client.createMessageStream({
    ID: 'newsletters',
    Name: 'Newsletters',
    MessageStreamType: 'Broadcasts',
  })
  t.match(made, { ID: 'newsletters', MessageStreamType: 'Broadcasts', ArchivedAt: null })
  const listed = await client.getMessageStreams()
  t.same(listed.MessageStreams.map(({ ID }) => ID).sort(), ['newsletters', 'outbound'])
  t.match(await client.getMessageStream('Newsletters'), { ID: 'newsletters' })
  const sent = await client.sendEmail({ ...plain, MessageStream: 'NEWSLETTERS' })
  t.match(await client.getOutboundMessageDetails(sent.MessageID), { MessageStream: 'newsletters' })
  t.match(await client.archiveMessageStream('newsletters'), { ID: 'newsletters' })
  t.equal((await client.getMessageStreams()).TotalCount, 1)
  t.equal((await client.getMessageStreams({ includeArchivedStreams: true })).TotalCount, 2)
  await rejects(t, client.sendEmail({ ...plain, MessageStream: 'newsletters' }), [
    Errors.ApiInputError,
    1236,
    /archived/,
  ])
  await rejects(t, client.unarchiveMessageStream('newsletters'), [Errors.PostmarkError, 701, /create a new one/])
  await rejects(t, client.getMessageStream('nothing'), [Errors.PostmarkError, 1226, /not found/])
})

t.test('postmark: the server and its statistics', async (t) => {
  t.match(await client.getServer(), { Name: 'Test', DeliveryType: 'Sandbox', ApiTokens: [], TrackOpens: false })
  const overview = await client.getOutboundOverview()
  t.ok(overview.Sent >= 500)
  t.match(overview, { Bounced: Number, SpamComplaints: 1, Opens: 0 })
  const sends = await client.getSentCounts()
  t.equal(sends.Sent, overview.Sent)
  t.match(sends.Days, [{ Date: /^\d{4}-\d{2}-\d{2}$/ }])
  t.equal((await client.getBounceCounts()).HardBounce, 1)
  t.equal((await client.getSpamComplaintsCounts()).SpamComplaint, 1)
  await rejects(t, client.getSentCounts({ tag: 'x' }), [Errors.InvalidEmailRequestError, 300, /tag/])
  await rejects(t, client.getClickCounts(), [Errors.PostmarkError, 701, /not tracked/])
})

t.test('postmark: received mail', async (t) => {
  const live = clientOf(liveServer.token)
  const body = { kind: 'inbound', name: 'Mail' }
  const { json: stream } = await service.call('POST /v1/streams', { token: liveServer.token, body })
  const parts = ['Content-Type: text/plain\n\nHello', 'Content-Type: text/csv; name=a.csv\n\na,b']
  const mail = `From: Ada, Countess <ada@example.net>\nTo: desk@example.org\nSubject: Hi\n${multipart('x', parts)}`
  t.match(await deliverMail(service.config.mxPort, stream.inboundAddress, mail), /^250/)
  const [listed] = await until(async () => {
    const { InboundMessages } = await live.getInboundMessages({ subject: 'hi' })
    return InboundMessages.length > 0 ? InboundMessages : null
  }, 10_000)
  const { MessageID = '' } = listed ?? {}
  t.match(listed, { Subject: 'Hi', OriginalRecipient: stream.inboundAddress, Status: 'Processed' })
  const details = await live.getInboundMessageDetails(MessageID)
  t.match(details, { Subject: 'Hi', To: 'desk@example.org', TextBody: /Hello/, Attachments: [{ Name: 'a.csv' }] })
  t.match((await live.getServer()).InboundAddress, stream.inboundAddress)
  await rejects(t, live.retryInboundHookForMessage(MessageID), [Errors.PostmarkError, 701, /webhooks/])
})
