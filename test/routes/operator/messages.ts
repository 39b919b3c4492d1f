/** messages - a message found by its id alone: live and of a test server, waiting, held, ended, and revealed. */
import { Redis } from 'ioredis'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

/** Performers of the simulator; 0 holds what waits there. */
const held = { room: 256 }
const service = await startTestService({}, { room: (lane) => (lane === 'simulate' ? held.room : 0) })
const { account, testServer, operatorToken: token } = service.firstRun
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})

const find = (id: string) => service.operate(`GET /v1/operator/messages/${id}`, { token })
const TO = ['ann@simulator.test', 'bounce@simulator.test']

async function send(to: readonly string[] = TO): Promise<string> {
  const body = { from: 'shop@simulator.test', to, subject: 'Secret subject', text: 'Secret text' }
  const { json } = await service.call('POST /v1/email', { token: testServer.token, body })
  return json.messageId
}

const ended = (id: string) =>
  until(async () => {
    const { json } = await find(id)
    return json.status === 'accepted' || json.status === 'deferred' ? null : json
  }, 30_000)

t.test('messages: the course of a message, without its contents and recipients [operator.message]', async (t) => {
  const id = await send()
  const json = await until(async () => {
    const found = await ended(id)
    return found.recipients.every(({ status }: { status: string }) => status !== 'accepted') ? found : null
  }, 30_000)
  t.match(json, {
    messageId: id,
    shard: 0,
    accountId: account.accountId,
    serverId: testServer.serverId,
    streamId: testServer.streamId,
    source: 'api',
    status: 'mixed',
    test: true,
    recipients: [
      { index: 0, status: 'delivered', attempts: 1, code: 250, lane: null, dueAt: null, worker: null, heldBy: null },
      { index: 1, status: 'bounced', code: 550, events: [{ event: 'bounced', classification: 'InvalidRecipient' }] },
    ],
    revealed: null,
  })
  t.notMatch(JSON.stringify(json), /Secret|ann|@/)
  t.same((await find(id.toUpperCase())).json, json, 'in any case of letters')
  for (const read of json.reads as string[]) {
    const [command = '', ...args] = read.split(' ')
    await t.resolves(redis.call(command, ...args), read)
  }
  const status = json.reads.find((read: string) => read.includes(':status:'))
  const [command = '', ...args] = status.split(' ')
  t.match(await redis.call(command, ...args), [/250/, /550/], 'what was read is there to be read by hand')
})

t.test('messages: the place of the pending work, and what holds it [operator.message]', async (t) => {
  held.room = 0
  const id = await send(['ann@simulator.test'])
  const [waiting] = (await find(id)).json.recipients
  t.match(waiting, { status: 'accepted', attempts: 0, lane: 'simulate', dueAt: /^20/, worker: null, heldBy: null })
  t.ok(await redis.zscore(`{s000}:due:${waiting.lane}`, waiting.item), 'the item is in its lane')
  const pause = (act: string) =>
    service.operate(`POST /v1/operator/accounts/${account.accountId}/${act}`, { token, body: {} })
  t.equal((await pause('pause')).status, 200)
  t.equal((await find(id)).json.recipients[0].heldBy, 'account')
  t.equal((await pause('resume')).status, 200)
  held.room = 256
  // The lane is looked at again when something comes into it.
  await send(['bob@simulator.test'])
  t.match((await ended(id)).recipients[0], { status: 'delivered', lane: null, heldBy: null })
})

t.test('messages: text and addresses are shown by an act that is in the audit log [operator.message]', async (t) => {
  const id = await send()
  const body = { note: 'asked by its sender' }
  const { status, json } = await service.operate(`POST /v1/operator/messages/${id}/reveal`, { token, body })
  t.equal(status, 200)
  t.match(json, {
    messageId: id,
    revealed: { subject: 'Secret subject', text: 'Secret text', from: { email: 'shop@simulator.test' } },
  })
  t.same(
    json.revealed.recipients.map(({ recipient }: { recipient: string }) => recipient),
    TO,
  )
  const { entries } = (await service.operate('GET /v1/operator/audit?limit=1', { token })).json
  t.match(entries, [
    {
      act: 'revealMessage',
      targets: { messageId: id, serverId: testServer.serverId, accountId: account.accountId },
      note: body.note,
      before: null,
      after: null,
    },
  ])
})

t.test('messages: an invalid id is not found, and an unknown key sees nothing [operator.message]', async (t) => {
  const id = await send()
  const others = [id.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')), testServer.serverId, 'x', id.slice(1)]
  for (const other of others) {
    t.equal((await find(other)).status, 404, other)
    const path = `POST /v1/operator/messages/${other}/reveal`
    t.equal((await service.operate(path, { token, body: {} })).status, 404, other)
  }
  t.equal((await service.operate(`GET /v1/operator/messages/${id}`)).status, 401)
  t.equal((await service.operate(`GET /v1/operator/messages/${id}`, { token: testServer.token })).status, 401)
})
