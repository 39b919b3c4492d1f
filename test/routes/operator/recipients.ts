/** recipients - an operator finds the messages to an address over all accounts: noted first, and without addresses. */
import t from 'tap'
import type { RecipientMessage } from '../../../schemas/operator/recipient.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { operatorToken: token, account, testServer } = service.firstRun
const operate = async (what: string, body?: object, key = token) =>
  service.operate(what.replace(' ', ' /v1/operator'), { token: key, ...(body !== undefined && { body }) })
const TO = 'Ann+1@simulator.test'

async function send(key: string, to: readonly string[]): Promise<string> {
  const body = { from: 'shop@simulator.test', to, subject: 'Secret subject', text: 'Secret text' }
  const { status, json, text } = await service.call('POST /v1/email', { token: key, body })
  if (status !== 200) throw new Error(text)
  return json.messageId
}

/** Another account with a test server. Returns its id and the key of the server. */
async function makeAccount(name: string): Promise<{ accountId: string; key: string; serverId: string }> {
  const made = await operate('POST /accounts', { name, administrators: ['ada@acme.example'] })
  if (made.status !== 201) throw new Error(made.text)
  const { accountId } = made.json
  const server = await operate(`POST /accounts/${accountId}/servers`, { name: 'Tests', mode: 'test' })
  if (server.status !== 201) throw new Error(server.text)
  const { serverId } = server.json
  const made2 = await operate(`POST /servers/${serverId}/tokens`, { name: 'Key' })
  return { accountId, serverId, key: made2.json.token }
}

/** All pages of a search. */
async function searchAll(body: object): Promise<{ messages: RecipientMessage[]; pages: number }> {
  const messages: RecipientMessage[] = []
  let pages = 0
  for (let after: string | null = ''; after !== null && pages < 50; pages += 1) {
    const { status, json, text } = await operate('POST /recipients/search', { ...body, ...(after !== '' && { after }) })
    if (status !== 200) throw new Error(text)
    messages.push(...json.messages)
    after = json.next
  }
  return { messages, pages }
}

const others = [await makeAccount('Other'), await makeAccount('Third')]
await makeAccount('Without mail')
const first = [await send(testServer.token, ['bob@simulator.test', TO]), await send(testServer.token, [TO])]
const second: string[] = []
for (const { key } of others) second.push(await send(key, [TO]), await send(key, ['bob@simulator.test']))

t.test('recipients: found in all accounts, with the place of each, and no address [operator.recipients]', async (t) => {
  const { status, json } = await operate('POST /recipients/search', {
    recipient: 'ANN+1@Simulator.test',
    note: 'asked',
  })
  t.equal(status, 200)
  const found = json.messages as RecipientMessage[]
  t.same(new Set(found.map(({ messageId }) => messageId)), new Set([...first, second[0], second[2]]))
  t.match(
    found.find(({ messageId }) => messageId === first[0]),
    { accountId: account.accountId, serverId: testServer.serverId, recipientIndex: 1, test: true },
  )
  t.match(
    found.find(({ messageId }) => messageId === second[0]),
    { accountId: others[0]?.accountId, serverId: others[0]?.serverId, recipientIndex: 0 },
  )
  t.same([json.accounts, json.next], [4, null])
  t.notMatch(JSON.stringify(json), /@|Secret/i)
  const { entries } = (await operate('GET /audit?limit=1')).json
  t.match(entries, [{ act: 'searchRecipients', targets: { domain: 'simulator.test' }, note: 'asked', before: null }])
  t.notMatch(JSON.stringify(entries), /ann/i, 'the log names no address')
})

t.test('recipients: pages of any size hold the same, each message once [operator.recipients]', async (t) => {
  const whole = await searchAll({ recipient: TO })
  t.equal(whole.pages, 1)
  for (const limit of [1, 2, 3, 4]) {
    const { messages, pages } = await searchAll({ recipient: TO, limit })
    t.same(messages, whole.messages, `pages of ${limit}`)
    t.ok(pages >= 4 / limit)
  }
  t.same((await searchAll({ recipient: 'nobody@simulator.test' })).messages, [])
})

t.test('recipients: a support key searches, one that only reads does not [operator.recipients]', async (t) => {
  const make = async (role: string) => (await operate('POST /tokens', { name: role, role })).json.token as string
  const search = (key: string) => operate('POST /recipients/search', { recipient: TO }, key)
  t.equal((await search(await make('support'))).status, 200)
  t.match((await search(await make('readOnly'))).json, {
    error: 'role_not_allowed',
    role: 'readOnly',
    required: 'support',
  })
  t.equal((await search('ok_unknown')).status, 401)
  for (const body of [{}, { recipient: 'ann' }, { recipient: TO, after: 'x' }, { recipient: TO, limit: 101 }])
    t.equal((await operate('POST /recipients/search', body)).status, 400, JSON.stringify(body))
})
