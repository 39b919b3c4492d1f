/** retention - the routes that read and change for how long content is kept, over real HTTP, and what messages show. */
import t from 'tap'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService({ INBOUND_DOMAIN: 'in.service.example' })
const { account, liveServer, testServer, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const ACCOUNT = '/v1/account/retention'
const serverPath = (id = liveServer.serverId) => `/v1/servers/${id}/retention`
const streamPath = (id = liveServer.streamId) => `/v1/streams/${id}/retention`
const operatorPath = `/v1/operator/accounts/${account.accountId}/retention`
const ofAccount = (what: string, body?: object) => service.call(what, { token: account.token, ...(body && { body }) })
const ofServer = (what: string, body?: object, token = liveServer.token) =>
  service.call(what, { token, ...(body && { body }) })
const operate = (what: string, body?: object) => service.operate(what, { token: operatorToken, ...(body && { body }) })
const days = (own: number | null, now: number) => ({
  status: 200,
  json: { sentContentDays: own, effective: { sentContentDays: now } },
})
const months = (own: number | null, now: number) => ({
  status: 200,
  json: { logRetentionMonths: own, effective: { logRetentionMonths: now } },
})
const INSTALLATION = '/v1/operator/retention'

t.test('retention: inherited, set and taken away again [retention.settings]', async (t) => {
  for (const called of [
    await ofAccount(`GET ${ACCOUNT}`),
    await ofAccount(`GET ${serverPath()}`),
    await ofServer(`GET ${streamPath()}`),
    await operate(`GET ${operatorPath}`),
  ])
    t.match(called, days(null, 30))
  t.match(await ofServer(`GET ${streamPath(testServer.streamId)}`, undefined, testServer.token), days(null, 7))
  t.match(await operate(`PATCH ${operatorPath}`, { sentContentDays: 20, note: 'asked for' }), days(20, 20))
  t.match(await ofAccount(`PATCH ${ACCOUNT}`, { sentContentDays: 10 }), days(10, 10))
  t.match(await ofAccount(`GET ${ACCOUNT}`), days(10, 10))
  t.match(await ofAccount(`GET ${serverPath()}`), days(null, 10))
  t.match(await ofAccount(`GET ${serverPath(testServer.serverId)}`), days(null, 7))
  t.match(await ofAccount(`PATCH ${serverPath()}`, { sentContentDays: 0 }), days(0, 0))
  t.match(await ofServer(`GET ${streamPath()}`), days(null, 0))
  t.match(await ofServer(`PATCH ${streamPath()}`, { sentContentDays: 30 }), days(30, 30))
  t.match(await ofServer(`PATCH ${streamPath()}`, {}), days(30, 30), 'an empty body changes nothing')
  t.match(await ofServer(`PATCH ${streamPath()}`, { sentContentDays: null }), days(null, 0))
  t.match(await ofAccount(`PATCH ${serverPath()}`, { sentContentDays: null }), days(null, 10))
  const resources = [
    (await ofAccount('GET /v1/account')).json,
    (await ofAccount(`GET /v1/servers/${liveServer.serverId}`)).json,
    (await ofServer(`GET /v1/streams/${liveServer.streamId}`)).json,
  ]
  for (const resource of resources) t.notOk('sentContentDays' in resource, 'the resources keep their fields')
  t.match(await ofAccount(`PATCH ${ACCOUNT}`, { sentContentDays: null }), days(null, 30))
})

t.test('retention: of the months of account and installation the shorter counts [retention.settings]', async (t) => {
  t.match(await ofAccount(`GET ${ACCOUNT}`), months(null, 13))
  t.match(await operate(`GET ${INSTALLATION}`), months(null, 13))
  t.match(await ofAccount(`PATCH ${ACCOUNT}`, { logRetentionMonths: 6 }), months(6, 6))
  t.match(await operate(`PATCH ${INSTALLATION}`, { logRetentionMonths: 3, note: 'policy' }), months(3, 3))
  t.match(await operate(`GET ${INSTALLATION}`), months(3, 3))
  t.match(await operate(`PATCH ${INSTALLATION}`, {}), months(3, 3), 'an empty body changes nothing')
  t.match(await ofAccount(`GET ${ACCOUNT}`), months(6, 3), 'on the account’s shard too')
  t.match(await ofAccount(`PATCH ${ACCOUNT}`, { logRetentionMonths: null }), months(null, 3))
  t.match(await operate(`PATCH ${operatorPath}`, { logRetentionMonths: 1 }), months(1, 1))
  t.match(await operate(`PATCH ${INSTALLATION}`, { logRetentionMonths: null }), months(null, 13))
  t.match(await operate(`PATCH ${operatorPath}`, { logRetentionMonths: null }), months(null, 13))
  const { json } = await operate('GET /v1/operator/audit?limit=100')
  const orders = json.entries.filter(({ act }: { act: string }) => act === 'patchInstallationRetention')
  const [first] = orders.filter(({ note }: { note: string | null }) => note === 'policy')
  t.match(first, { before: { logRetentionMonths: null }, after: { logRetentionMonths: 3 }, targets: {} })
  t.equal(orders.length, 3, 'once for each order, not for each shard')
})

t.test('retention: what is out of range is 400 with its path [retention.settings]', async (t) => {
  for (const sentContentDays of [-1, 31, 1.5, '7', true]) {
    for (const called of [
      await ofAccount(`PATCH ${ACCOUNT}`, { sentContentDays }),
      await ofAccount(`PATCH ${serverPath()}`, { sentContentDays }),
      await ofServer(`PATCH ${streamPath()}`, { sentContentDays }),
      await operate(`PATCH ${operatorPath}`, { sentContentDays }),
    ])
      t.match(called, { status: 400, json: { issues: [{ path: 'sentContentDays' }] } }, String(sentContentDays))
  }
  for (const logRetentionMonths of [0, 14, 1.5, '7']) {
    for (const called of [
      await ofAccount(`PATCH ${ACCOUNT}`, { logRetentionMonths }),
      await operate(`PATCH ${INSTALLATION}`, { logRetentionMonths }),
    ])
      t.match(called, { status: 400, json: { issues: [{ path: 'logRetentionMonths' }] } }, String(logRetentionMonths))
  }
  const inbound = await ofServer('POST /v1/streams', { kind: 'inbound', name: 'In' })
  const called = await ofServer(`PATCH ${streamPath(inbound.json.streamId)}`, { sentContentDays: 3 })
  t.match(called, { status: 400, json: { issues: [{ path: 'sentContentDays' }] } })
})

t.test('retention: refused in order [retention.settings] [refusal.order]', async (t) => {
  t.match(await ofServer(`PATCH ${ACCOUNT}`, { sentContentDays: 3 }), { status: 403 })
  t.match(await ofAccount(`PATCH ${streamPath()}`, { sentContentDays: 3 }), { status: 403 })
  t.match(await ofAccount(`PATCH ${serverPath('none')}`, { sentContentDays: 3 }), { status: 404 })
  t.match(await ofAccount(`GET ${serverPath('none')}`), { status: 404 })
  t.match(await ofServer(`PATCH ${streamPath(testServer.streamId)}`, { sentContentDays: 3 }), { status: 404 })
  t.match(await ofServer(`GET ${streamPath(testServer.streamId)}`), { status: 404 })
  t.match(await operate(`PATCH ${operatorPath.replace(account.accountId, 'none')}`, {}), { status: 404 })
})

t.test('retention: a message shows it at once [retention.settings]', async (t) => {
  const sent = await ofServer(
    'POST /v1/email',
    { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'It works.' },
    testServer.token,
  )
  const { messageId } = sent.json
  const show = async () => {
    const { json } = await ofServer(`GET /v1/messages/${messageId}`, undefined, testServer.token)
    const { submittedAt, contentExpiresAt, contentAvailable, text } = json
    return { days: (Date.parse(contentExpiresAt) - Date.parse(submittedAt)) / 86_400_000, contentAvailable, text }
  }
  const isDelivered = async () =>
    (await ofServer(`GET /v1/messages/${messageId}`, undefined, testServer.token)).json.status === 'delivered'
  while (!(await isDelivered())) await new Promise((done) => setTimeout(done, 20))
  t.match(await show(), { days: 7, contentAvailable: true, text: 'It works.' })
  await ofAccount(`PATCH ${serverPath(testServer.serverId)}`, { sentContentDays: 2 })
  t.match(await show(), { days: 2, contentAvailable: true, text: 'It works.' })
  await ofServer(`PATCH ${streamPath(testServer.streamId)}`, { sentContentDays: 0 }, testServer.token)
  t.match(await show(), { days: 0, contentAvailable: false, text: null })
  const found = await ofServer('POST /v1/messages/search', {}, testServer.token)
  t.match(found.json.messages[0], { messageId, contentAvailable: false, subject: 'Hello' })
})
