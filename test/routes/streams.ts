/**
 * streams - every route of streams over real HTTP, the effect of their states on sends, and the operator's pause and
 * pace.
 */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { type Called, type CallOptions, startTestService } from '../support/service/service.ts'

const service = await startTestService({ INBOUND_DOMAIN: 'in.service.example' })
const { account, liveServer, testServer, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const SERVER = liveServer.token
const MESSAGE = { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'It works.' }

const create = (body: object, token = SERVER) => service.call('POST /v1/streams', { token, body })
const read = (id: string, token = SERVER) => service.call(`GET /v1/streams/${id}`, { token })
const archive = (id: string, token = SERVER) => service.call(`POST /v1/streams/${id}/archive`, { token })
const patch = (id: string, body: object, token = SERVER) => service.call(`PATCH /v1/streams/${id}`, { token, body })
const send = (body: object) =>
  service.call('POST /v1/email', { token: testServer.token, body: { ...MESSAGE, ...body } })
const operate = (what: string, body: object = {}, options: CallOptions = {}): Promise<Called> =>
  service.operate(what.replace(' ', ' /v1/operator'), { token: operatorToken, body, ...options })

t.test('stream: created, read and archived [stream.create] [stream.read] [stream.archive]', async (t) => {
  for (const kind of ['transactional', 'broadcast'] as const) {
    const made = await create({ kind, name: `A ${kind} one` })
    t.equal(made.status, 201)
    t.match(made.json, { kind, name: `A ${kind} one`, isDefault: false, archivedAt: null, pausedAt: null })
    t.strictSame([made.json.inboundAddress, made.json.contentRetentionDays], [null, null])
    const { streamId } = made.json
    t.strictSame((await read(streamId)).json, made.json)
    t.strictSame((await read(streamId.toUpperCase())).json, made.json)
    const archived = await archive(streamId)
    t.equal(archived.status, 200)
    t.ok(archived.json.archivedAt >= made.json.createdAt)
    t.strictSame((await archive(streamId)).json, archived.json, 'nothing changes')
    t.strictSame((await read(streamId)).json, archived.json)
    const again = await create({ kind, name: `A ${kind} one` })
    t.equal(again.status, 409)
    t.match(again.json, { error: 'stream_exists', streamId }, 'an archived stream keeps its name')
  }
  const usual = await read(liveServer.streamId)
  t.match(usual.json, { kind: 'transactional', name: 'Transactional', isDefault: true })
  t.match((await archive(liveServer.streamId)).json, { error: 'default_stream' })
  t.equal((await create({ kind: 'broadcast', name: 'Transactional' })).json.streamId, liveServer.streamId)
})

t.test('stream: one live inbound stream, with its own address [stream.inbound] [stream.address]', async (t) => {
  const made = await create({ kind: 'inbound', name: 'Support' })
  const { streamId } = made.json
  t.equal(made.json.inboundAddress, `${streamId}@in.service.example`)
  t.match((await create({ kind: 'inbound', name: 'Sales' })).json, { error: 'inbound_stream_exists', streamId })
  t.match((await create({ kind: 'inbound', name: 'Support' })).json, { error: 'stream_exists', streamId })
  const onTest = await create({ kind: 'inbound', name: 'Support' }, testServer.token)
  t.equal(onTest.status, 422)
  t.equal(onTest.json.error, 'stream_kind_not_allowed')
  await archive(streamId)
  const second = await create({ kind: 'inbound', name: 'Sales' })
  t.equal(second.status, 201, 'and another once it is archived')
  t.match((await create({ kind: 'inbound', name: 'More' })).json, { streamId: second.json.streamId })
})

t.test('stream: bounds of a name and of the days [stream.name] [stream.patch]', async (t) => {
  const names: [unknown, number][] = [
    ['', 400],
    ['x', 201],
    ['n'.repeat(99), 201],
    ['é'.repeat(100), 201],
    ['n'.repeat(101), 400],
    ['😀'.repeat(100), 201],
    ['a\u0000b', 400],
    [7, 400],
    [null, 400],
  ]
  for (const [name, status] of names) t.equal((await create({ kind: 'broadcast', name })).status, status, String(name))
  for (const body of [{}, { kind: 'other', name: 'a' }, { kind: 'broadcast' }, { kind: 'inbound', name: 'a', more: 1 }])
    t.equal((await create(body)).json.error, 'invalid_request')
  const { streams } = (await service.call('GET /v1/streams?kind=inbound&archived=false', { token: SERVER })).json
  const { streamId } = streams[0]
  const days: [unknown, number][] = [
    [0, 400],
    [1, 200],
    [30, 200],
    [31, 400],
    [1.5, 400],
    ['7', 400],
    [null, 200],
    [29, 200],
  ]
  for (const [contentRetentionDays, status] of days) {
    const called = await patch(streamId, { contentRetentionDays })
    t.equal(called.status, status, String(contentRetentionDays))
    if (status === 200) t.equal(called.json.contentRetentionDays, contentRetentionDays)
  }
})

t.test('stream: renamed, and the old name is free [stream.patch]', async (t) => {
  const { streamId } = (await create({ kind: 'broadcast', name: 'Old' })).json
  const other = (await create({ kind: 'broadcast', name: 'Taken' })).json.streamId
  t.match((await patch(streamId, { name: 'Taken' })).json, { error: 'stream_exists', streamId: other })
  t.equal((await patch(streamId, { name: 'Old' })).status, 200, 'its own name')
  t.equal((await patch(streamId, { name: 'New' })).json.name, 'New')
  t.equal((await read(streamId)).json.name, 'New')
  t.equal((await create({ kind: 'broadcast', name: 'New' })).json.streamId, streamId)
  t.equal((await create({ kind: 'broadcast', name: 'Old' })).status, 201)
  t.strictSame((await patch(streamId, {})).json, (await read(streamId)).json)
  for (const contentRetentionDays of [7, null]) {
    const called = await patch(streamId, { contentRetentionDays })
    t.equal(called.status, 400)
    t.equal(called.json.issues[0].path, 'contentRetentionDays')
  }
})

t.test('stream: listed newest first, by kind, archived or not, page by page [stream.list]', async (t) => {
  const token = testServer.token
  const made: string[] = []
  for (const [kind, name] of [
    ['broadcast', 'b1'],
    ['transactional', 't1'],
    ['broadcast', 'b2'],
    ['transactional', 't2'],
    ['broadcast', 'b3'],
  ])
    made.unshift((await create({ kind, name }, token)).json.streamId)
  await archive(made[1] as string, token)
  const all = [...made, testServer.streamId]
  const cases: [query: string, ids: readonly (string | undefined)[]][] = [
    ['', all],
    ['kind=broadcast', [made[0], made[2], made[4]]],
    ['archived=true', [made[1]]],
    ['archived=false', all.filter((id) => id !== made[1])],
    ['kind=transactional&archived=false', [made[3], testServer.streamId]],
    ['kind=inbound', []],
    [`after=${made[2]}`, all.slice(3)],
    [`after=${(made[2] as string).toUpperCase()}`, all.slice(3)],
    [`after=ffffffff-ffff-4fff-8fff-ffffffffffff`, all],
    [`after=00000000-0000-4000-8000-000000000000`, []],
  ]
  const list = async (query: string) => (await service.call(`GET /v1/streams?${query}`, { token })).json
  for (const [query, ids] of cases) {
    const { streams, next } = await list(query)
    t.strictSame(
      streams.map((one: { streamId: string }) => one.streamId),
      ids,
      query,
    )
    t.equal(next, null)
  }
  for (const filter of ['', '&kind=broadcast']) {
    const seen: string[] = []
    let after = ''
    for (let page = 0; page < 20; page++) {
      const { streams, next } = await list(`limit=1${filter}${after}`)
      seen.push(...streams.map((one: { streamId: string }) => one.streamId))
      if (next === null) break
      after = `&after=${next}`
    }
    const whole = (await list(filter)).streams.map((one: { streamId: string }) => one.streamId)
    t.strictSame(seen, whole, `one by one${filter}`)
  }
  for (const query of [
    'limit=0',
    'limit=101',
    'after=x',
    'kind=other',
    'archived=yes',
    'page=2',
    'kind=inbound&kind=inbound',
  ])
    t.equal((await service.call(`GET /v1/streams?${query}`, { token })).status, 400, query)
})

t.test('stream: invalid and unknown ids are not found', async (t) => {
  const foreign = '01a1f8d8-8300-7001-8000-0e7faee555a7'
  for (const id of ['x', randomUUID(), foreign, account.accountId, liveServer.serverId, testServer.streamId]) {
    for (const what of [`GET /v1/streams/${id}`, `POST /v1/streams/${id}/archive`])
      t.match((await service.call(what, { token: SERVER })).json, { error: 'not_found' }, what)
    t.match((await patch(id, { name: 'x', contentRetentionDays: 5 })).json, { error: 'not_found' })
  }
  for (const id of ['x', randomUUID(), foreign, liveServer.serverId])
    t.match((await operate(`POST /streams/${id}/pause`)).json, { error: 'not_found' })
  t.match((await read(testServer.streamId, account.token)).json, { error: 'wrong_token_kind', message: /server key/ })
})

t.test('stream: sends go by its kind and its state [send.refusals]', async (t) => {
  const token = testServer.token
  const { streamId } = (await create({ kind: 'broadcast', name: 'News' }, token)).json
  const sent = await send({ streamId })
  const message = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token })
  t.match(message.json, { streamId, broadcastId: null, source: 'api' })
  const paused = await operate(`POST /streams/${streamId}/pause`, { note: 'too many complaints' })
  t.not(paused.json.pausedAt, null)
  t.strictSame((await operate(`POST /streams/${streamId}/pause`)).json, paused.json, 'already so')
  t.equal((await read(streamId, token)).json.pausedAt, paused.json.pausedAt)
  const refused = await send({ streamId })
  t.equal(refused.status, 409)
  t.match(refused.json, { error: 'stream_paused', streamId, pausedAt: paused.json.pausedAt })
  await archive(streamId, token)
  t.match((await send({ streamId })).json, { error: 'stream_archived', streamId }, 'archived comes first')
  t.equal((await operate(`POST /streams/${streamId}/resume`)).json.pausedAt, null)
  t.match((await send({ streamId })).json, { error: 'stream_archived', streamId })
  t.match((await send({ streamId: liveServer.streamId })).json, { error: 'stream_not_found' })
  const inbound = (await service.call('GET /v1/streams?kind=inbound', { token: SERVER })).json.streams[0]
  const onInbound = { ...MESSAGE, streamId: inbound.streamId }
  const kind = await service.call('POST /v1/email', { token: SERVER, body: onInbound })
  t.match(kind.json, { error: 'stream_kind_not_allowed' })
})

t.test('stream: the operator’s pace [operator.stream]', async (t) => {
  const { streamId } = (await create({ kind: 'broadcast', name: 'Paced' })).json
  const cases: [unknown, number][] = [
    [0, 400],
    [1, 200],
    [1_000_000_000, 200],
    [1_000_000_001, 400],
    [null, 200],
    ['5', 400],
  ]
  for (const [pacePerMinute, status] of cases) {
    const called = await operate(`PATCH /streams/${streamId}`, { pacePerMinute })
    t.equal(called.status, status, String(pacePerMinute))
    if (status === 200) t.equal(called.json.pacePerMinute, pacePerMinute)
  }
  t.equal((await operate(`PATCH /streams/${streamId}`)).status, 400)
  t.notOk('pacePerMinute' in (await read(streamId)).json, 'is the operator’s own')
  t.equal((await operate(`PATCH /streams/${streamId}`, { pacePerMinute: 5 }, { token: SERVER })).status, 401)
})
