/** keys - operators with names: each role has exactly its rights, and the last admin stays. */
import t from 'tap'
import { OPERATOR_ROLES, type OperatorRole, roleOfRoute } from '../../../schemas/operator/role.ts'
import { ROUTES } from '../../../schemas/routes.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { operatorToken, account, testServer } = service.firstRun
const UNKNOWN = testServer.serverId

const call = (route: string, token: string, body?: object) =>
  service.operate(`${route.replace(' ', ' /v1/operator')}`, { token, ...(body !== undefined && { body }) })

async function make(name: string, role: OperatorRole): Promise<{ token: string; tokenId: string }> {
  const made = await call('POST /tokens', operatorToken, { name, role, note: 'hired' })
  if (made.status !== 201) throw new Error(JSON.stringify(made))
  return made.json
}

const keys = {
  readOnly: await make('Rita', 'readOnly'),
  support: await make('Sam', 'support'),
  admin: await make('Ada', 'admin'),
}

t.test('operators: a new key revokes no other, and is listed with its role and its last use', async (t) => {
  const { json } = await call('GET /tokens', operatorToken)
  t.match(
    json.tokens.map(({ name, role, revokedAt }: { name: string; role: string; revokedAt: null }) => [
      name,
      role,
      revokedAt,
    ]),
    [
      ['Ada', 'admin', null],
      ['Sam', 'support', null],
      ['Rita', 'readOnly', null],
      ['First key', 'admin', null],
    ],
  )
  t.equal((await call('GET /accounts', keys.readOnly.token)).status, 200)
  const used = await until(async () => {
    const listed = await call('GET /tokens', operatorToken)
    return listed.json.tokens.find(({ name }: { name: string }) => name === 'Rita').lastUsedAt
  }, 10_000)
  t.match(used, /^20\d\d-/)
  t.equal((await call('POST /tokens', operatorToken, { name: 'X', role: 'owner' })).status, 400)
  t.equal((await call('POST /tokens', operatorToken, { name: 'X' })).status, 400)
})

t.test('operators: every route refuses a role below its own, before it looks at anything else', async (t) => {
  const routes = Object.values(ROUTES).filter(
    ({ listener, keys: kinds }) => listener === 'operator' && (kinds as readonly string[]).includes('O'),
  )
  t.ok(routes.length > 30)
  for (const route of routes) {
    const needed = roleOfRoute(route)
    for (const role of OPERATOR_ROLES.slice(0, OPERATOR_ROLES.indexOf(needed))) {
      const path = route.path.replace(/\{kind\}/, 'account').replaceAll(/\{\w+\}/g, UNKNOWN)
      const body = BODIES[route.name] ?? (route.body === null ? undefined : {})
      const answer = await service.operate(`${route.method} ${path}`, {
        token: keys[role].token,
        ...(body && { body }),
      })
      t.match(
        answer,
        { status: 403, json: { error: 'role_not_allowed', role, required: needed } },
        `${route.name} by ${role}`,
      )
    }
  }
})

/** Bodies that pass the schema if an empty one does not. */
const BODIES: Readonly<Record<string, object>> = {
  createAccount: { name: 'X', administrators: [] },
  patchAccount: { monthlyCap: 1 },
  approveAccount: {},
  createAccountLink: { address: 'a@b.example' },
  createAccountToken: { name: 'X' },
  createServerTokenAsOperator: { name: 'X' },
  createServerAsOperator: { name: 'X', mode: 'test' },
  createOperatorKey: { name: 'X', role: 'admin' },
  paceStream: { pacePerMinute: 1 },
  retryQueue: { domain: 'a.example' },
  holdQueue: { domain: 'a.example' },
  releaseQueue: { domain: 'a.example' },
  dropQueue: { domain: 'a.example' },
  applyEgress: { sources: [], pools: [], rules: [] },
  searchRecipients: { recipient: 'ann@a.example' },
}

t.test('operators: a role may do what it includes; a session has the role of its key', async (t) => {
  t.equal((await call('POST /queue/retry', keys.support.token, { domain: 'a.example' })).status, 200)
  t.equal((await call('POST /queue/hold', keys.support.token, { domain: 'a.example' })).status, 403)
  const opened = await call('POST /session', keys.support.token, {})
  t.equal(opened.status, 201)
  t.equal((await call('POST /queue/retry', opened.json.token, { domain: 'a.example' })).status, 200)
  t.match(await call('POST /queue/hold', opened.json.token, { domain: 'a.example' }), {
    json: { error: 'role_not_allowed' },
  })
  t.match(
    await call('POST /tokens', (await call('POST /session', keys.admin.token, {})).json.token, {
      name: 'Y',
      role: 'admin',
    }),
    {
      status: 403,
      json: { error: 'wrong_token_kind' },
    },
  )
  t.equal((await call(`POST /accounts/${account.accountId}/pause`, keys.admin.token, {})).status, 200)
  t.equal((await call(`POST /accounts/${account.accountId}/resume`, keys.admin.token, {})).status, 200)
})

t.test('operators: the audit log names the key', async (t) => {
  const { json } = await call('GET /audit?limit=100', keys.readOnly.token)
  const named = json.entries.map(({ act, actorName }: { act: string; actorName: string }) => `${act} ${actorName}`)
  for (const one of ['resumeAccount Ada', 'retryQueue Sam', 'createOperatorKey First key'])
    t.ok(named.includes(one), one)
})

t.test('operators: a revoked key and its sessions end; the last admin stays', async (t) => {
  const session = (await call('POST /session', keys.support.token, {})).json.token
  t.match(await call(`POST /tokens/${keys.support.tokenId}/revoke`, keys.admin.token, {}), {
    status: 200,
    json: { name: 'Sam', role: 'support', revokedAt: String },
  })
  for (const token of [keys.support.token, session]) t.equal((await call('GET /accounts', token)).status, 401)
  t.equal((await call(`POST /tokens/${keys.support.tokenId}/revoke`, keys.admin.token, {})).status, 200, 'again')
  t.equal((await call(`POST /tokens/${UNKNOWN}/revoke`, keys.admin.token, {})).status, 404)
  const { tokens } = (await call('GET /tokens', keys.admin.token)).json
  const first = tokens.find(({ name }: { name: string }) => name === 'First key').tokenId
  t.equal((await call(`POST /tokens/${first}/revoke`, keys.admin.token, {})).status, 200)
  t.match(await call(`POST /tokens/${keys.admin.tokenId}/revoke`, keys.admin.token, {}), {
    status: 409,
    json: { error: 'last_operator_key' },
  })
  t.equal((await call('GET /accounts', operatorToken)).status, 401)
  const both = await Promise.all([make2('One'), make2('Two')])
  const raced = await Promise.all(
    [keys.admin.tokenId, ...both].map((id) => call(`POST /tokens/${id}/revoke`, keys.admin.token, {})),
  )
  t.ok(
    raced.some(({ status }) => status !== 200),
    'of three that are revoked at once one stays',
  )
})

async function make2(name: string): Promise<string> {
  return (await call('POST /tokens', keys.admin.token, { name, role: 'admin' })).json.tokenId
}
