/** operator - accounts, servers, keys, shards and the store, from the command line against a real service. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { sendwright, startCommandLine } from '../support/service/command-line.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService({ APPROVAL: 'manual' })
const { account, liveServer, operatorToken } = service.firstRun
const redis = new Redis({ path: service.redis.socketPath })
const commands = await startCommandLine()
t.teardown(async () => {
  commands.stop()
  redis.disconnect()
  await service.stop()
})

const ENVIRONMENT = {
  DATA_DIR: service.dataDir,
  REDIS_URL: `unix://${service.redis.socketPath}`,
  SECRET_KEY: service.config.secretKey as string,
}
const run = (...args: string[]) => commands.run(args, ENVIRONMENT)

async function runJson(...args: string[]) {
  const { out, code, err } = await run(...args, '--json')
  return { code, err, json: JSON.parse(out) }
}

t.test('account: made, approved, paused, resumed, closed, each with its note in the audit log', async (t) => {
  const made = await run('account', 'create', 'Acme', '--administrator', 'ann@acme.example', '--note', 'by phone')
  t.equal(made.code, 0, made.err)
  const id = made.out.trim()
  t.match(id, /^[0-9a-f-]{36}$/)
  t.match(await run('account', 'approve', id, '--monthly-cap', '50000', '--per-minute', '400', '--note', 'asked'), {
    code: 0,
    out: `Acme (${id}) is active\n`,
  })
  t.match((await runJson('account', 'pause', id, '--no-hold')).json, { accountId: id, status: 'paused' })
  t.match((await run('account', 'resume', id)).out, 'is active')
  const [list, whole] = await Promise.all([run('account', 'list'), runJson('account', 'list')])
  t.match(list.out, /^NAME +STATUS +THIS MONTH +CAP +CREATED +ID$/m)
  t.match(list.out, new RegExp(`^Acme +active +0 +50000 +\\S+ +${id}$`, 'm'))
  t.equal(whole.json.accounts.length, 2)
  t.match((await run('account', 'close', id)).out, 'is closed')
  t.match(await runJson('account', 'close', id), { code: 1, json: { error: 'account_closed' } })
  const log = await service.operate('GET /v1/operator/audit?limit=100', { token: operatorToken })
  t.match(
    log.json.entries.map(({ act, note }: { act: string; note: string | null }) => `${act}: ${note}`),
    [
      'closeAccount: null',
      'resumeAccount: null',
      'pauseAccount: null',
      'approveAccount: asked',
      'createAccount: by phone',
    ],
  )
})

t.test('server and token: what the service makes works at once', async (t) => {
  const made = await run('server', 'create', account.accountId, 'Shop', '--mode', 'test')
  t.equal(made.code, 0, made.err)
  const [, serverId = '', key = ''] = /^(\S{36}) +(sk_test_\S+)$/m.exec(made.out) ?? []
  t.match((await service.call('GET /v1/server', { token: key })).json, { serverId, name: 'Shop' })
  t.match((await run('server', 'list', account.accountId)).out, new RegExp(`^Shop +test +\\S+ +${serverId}$`, 'm'))
  t.equal((await runJson('server', 'list', account.accountId)).json.servers.length, 3)
  const second = await run('token', 'create', 'Second', '--server', serverId, '--note', 'rotation')
  t.equal((await service.call('GET /v1/server', { token: second.out.trim() })).status, 200)
  t.match(await run('token', 'create', 'Third', '--server', serverId), { code: 1, err: /token_limit/ })
  const { tokens } = (await runJson('token', 'list', '--server', serverId)).json
  t.match(await run('token', 'revoke', tokens[1].tokenId, '--server', serverId), { code: 0, out: /is revoked since/ })
  t.equal((await service.call('GET /v1/server', { token: key })).status, 401)
  t.match((await run('token', 'list', '--server', serverId)).out, /^Second .* live +\S+$/m)
  const own = await run('token', 'create', 'Own', '--account', account.accountId)
  t.equal((await service.call('GET /v1/account', { token: own.out.trim() })).status, 200)
})

t.test('dashboard-link: a link that works, for the only open account or the one that is named', async (t) => {
  const browser = new Browser(`http://127.0.0.1:${service.config.httpPort}`)
  const made = await run('dashboard-link', 'ada@acme.example', '--role', 'member', '--note', 'locked out')
  t.equal(made.code, 0, made.err)
  const [, url = ''] = /^(http:\/\/\S+\/dashboard\/link#\S+)\nIt works once, until \S+Z\.\n$/.exec(made.out) ?? []
  const token = Browser.tokenOf(url)
  t.match((await browser.call('POST /links/read', { token })).json, { address: 'ada@acme.example', role: 'member' })
  const [entry] = (await service.operate('GET /v1/operator/audit?limit=1', { token: operatorToken })).json.entries
  t.match(entry, { act: 'createAccountLink', note: 'locked out', targets: { accountId: account.accountId } })
  const second = (await run('account', 'create', 'Second')).out.trim()
  t.match(await run('dashboard-link', 'ada@acme.example'), { code: 1, err: /choose one with --account/ })
  const named = await runJson('dashboard-link', 'ada@acme.example', '--account', second)
  t.match(named.json, { url: /\/dashboard\/link#/, expiresAt: /Z$/ })
  t.match((await browser.call('POST /links/read', { token: Browser.tokenOf(named.json.url) })).json, {
    accountName: 'Second',
    role: 'administrator',
  })
  t.equal((await run('account', 'close', second)).code, 0)
  t.match(await run('dashboard-link', 'ada@acme.example', '--account', second), { code: 1, err: /account_closed/ })
})

t.test('sendwright: wrong calls of the operator’s commands exit 2 and name what is missing', async (t) => {
  const calls: [string[], RegExp][] = [
    [['account', 'approve', 'x', '--monthly-cap', 'many'], /Expected a whole number/],
    [['server', 'create', 'x', 'y'], /--mode/],
    [['token', 'list', '--account', 'x', '--server', 'y'], /give one of --account, --server/],
    [['inspect', 'account'], /a shard, or a kind and an id/],
    [['repair', '256'], /256 shards/],
  ]
  const ran = await Promise.all(calls.map(([args]) => run(...args)))
  for (const [at, { code, err }] of ran.entries()) {
    const [args, expected] = calls[at] ?? [[], /never/]
    t.equal(code, 2, args.join(' '))
    t.match(err, expected)
  }
  const { out } = await run('--help')
  for (const name of ['account', 'server', 'token', 'inspect', 'cluster', 'operator-key', 'repair'])
    t.match(out, new RegExp(`^ +${name} `, 'm'))
  t.match(await commands.run(['account', 'list']), { code: 1, err: /SENDWRIGHT_OPERATOR_TOKEN/ })
  const variable = (token: string) => ({ ...ENVIRONMENT, SENDWRIGHT_OPERATOR_TOKEN: token })
  const other = await commands.run(['account', 'list'], variable('ok_of another installation'))
  t.match(other, { code: 1, err: /401 unauthorized/ }, 'the variable comes before the file')
  t.equal((await commands.run(['account', 'list'], variable(account.token))).code, 0, 'unless it is of another kind')
  t.match(await run('account', 'list', '--token', account.token), {
    code: 1,
    err: /needs an operator key.*an account key/,
  })
})

t.test('inspect and cluster status: owners, last states, and what does not run [operator.shards]', async (t) => {
  const status = await run('cluster', 'status')
  t.match(status, { code: 0, out: new RegExp(`^\\S+ +${process.pid} +alive +`, 'm') })
  t.match(status.out, '256 of 256 shards run, 0 commands wait')
  t.match(await run('inspect', '17'), { code: 0, out: new RegExp(`^state +owned$[^]*^pid +${process.pid}$`, 'm') })
  const [shard, none, server, nobody] = await Promise.all([
    runJson('inspect', '17'),
    run('inspect', '300'),
    run('inspect', 'server', liveServer.serverId),
    run('inspect', 'server', account.accountId),
  ])
  t.match(shard.json, { shard: 17, state: 'owned', worker: { pid: process.pid } })
  t.match(none, { code: 1, err: /No shard 300/ })
  t.match(server, { code: 0, out: /"name": "Live"/ })
  t.match(nobody, { code: 1, err: /404 not_found/ })
})

t.test('inspect message: by its id alone, without its text unless it is revealed [operator.message]', async (t) => {
  const { testServer } = service.firstRun
  const body = { from: 'shop@simulator.test', to: ['bounce@simulator.test'], subject: 'Secret', text: 'Secret text' }
  const { json } = await service.call('POST /v1/email', { token: testServer.token, body })
  const id = json.messageId as string
  const found = await until(async () => {
    const ran = await run('inspect', 'message', id)
    return ran.out.includes('InvalidRecipient') ? ran : null
  }, 30_000)
  t.equal(found.code, 0)
  t.match(found.out, new RegExp(`^serverId +${testServer.serverId}$`, 'm'))
  t.match(found.out, /^0 +bounced +1 +- +- +- +550 5\.1\.1/m)
  t.match(found.out, /^Read, as redis-cli takes it:\n(?: {2}.+\n)* {2}HMGET \{s000\}:status:/m)
  t.notMatch(found.out, /Secret|@/)
  const revealed = await run('inspect', 'message', id, '--reveal', '--note', 'asked for')
  t.match(revealed.out, /^bounce@simulator\.test +bounced(?:.*\n)*Subject: Secret\n\nSecret text$/m)
  t.match((await run('audit', '--limit', '1')).out, /revealMessage .*asked for/)
  t.match(await run('inspect', 'message', service.firstRun.account.accountId), { code: 1, err: /404 not_found/ })
  t.match(await run('inspect', 'server', testServer.serverId, '--reveal'), { code: 2, err: /--reveal is of a message/ })
  t.match(
    (await run('inspect', 'server', testServer.serverId)).out,
    `XREVRANGE {s000}:server:${testServer.serverId} + -`,
  )
})

t.test('operator find: messages of an address over all accounts, in the audit log [operator.recipients]', async (t) => {
  const { testServer, account } = service.firstRun
  const to = ['Found@simulator.test']
  const body = { from: 'shop@simulator.test', to, subject: 'Secret', text: 'Secret text' }
  const { json } = await service.call('POST /v1/email', { token: testServer.token, body })
  const found = await run('operator', 'find', 'found@simulator.test', '--note', 'they asked')
  t.equal(found.code, 0)
  t.match(found.out, new RegExp(`${json.messageId} 0 +${account.accountId} +${testServer.serverId}`))
  t.notMatch(found.out, /Secret|@/)
  t.match((await run('audit', '--limit', '1')).out, /searchRecipients .*they asked/)
  t.match(await run('operator', 'find', 'nobody'), { code: 1, err: /recipient/ })
})

t.test('operator-key: a new key works, the old one does not, and the act is logged [operator.key]', async (t) => {
  const kept = await runJson('operator-key')
  t.same(kept.json.revoked, [], 'others remain')
  const { json } = await runJson('operator-key', '--revoke-others')
  t.match(json, { token: /^ok_/, path: join(service.dataDir, 'first-run.json') })
  t.equal(json.revoked.length, 2)
  const audit = (token: string) => service.operate('GET /v1/operator/audit?limit=1', { token })
  t.equal((await audit(operatorToken)).status, 401)
  t.match((await audit(json.token)).json.entries, [
    { act: 'makeOperatorKey', actor: null, targets: { tokenId: json.tokenId }, before: { live: json.revoked } },
  ])
  const file = JSON.parse(readFileSync(join(service.dataDir, 'first-run.json'), 'utf8'))
  t.match(file, { operatorToken: json.token, account, liveServer })
  t.equal((await run('account', 'list')).code, 0, 'commands find it')
  t.match(await run('operator-key', '--revoke-others'), { code: 0, out: /^ok_\S+\n$/, err: /Revoked: 1/ })
  const path = join(service.dataDir, 'first-run.json')
  const whole = readFileSync(path, 'utf8')
  writeFileSync(path, whole.slice(0, 40))
  const broken = await run('operator-key')
  t.match(broken, { code: 0, out: /^ok_\S+\n$/, err: /Set SENDWRIGHT_OPERATOR_TOKEN to it\. Revoked: 0/ })
  t.ok(broken.err.startsWith(`${path} is broken (`), 'the file is named')
  t.match(broken.err, /and was left as it is: restore it from a backup, or remove it\n/)
  t.equal(readFileSync(path, 'utf8'), whole.slice(0, 40))
  writeFileSync(path, JSON.stringify({ ...JSON.parse(whole), operatorToken: broken.out.trim() }))
  t.match(await sendwright(['operator-key'], { DATA_DIR: '/nonexistent' }), { code: 1, err: /^No store in / })
})

t.test('repair: a torn shard stands still, is shown from both sides, and runs again [operator.repair]', async (t) => {
  const { operatorToken: token } = firstRunNow()
  const made = await service.operate('POST /v1/operator/accounts', {
    token,
    body: { name: 'Torn', administrators: [] },
  })
  const { accountId } = made.json
  const shard = Number.parseInt(accountId.slice(15, 18), 16)
  const tag = `{s${String(shard).padStart(3, '0')}}`
  const patch = () => service.operate(`PATCH /v1/operator/accounts/${accountId}`, { token, body: {} })
  t.match(await run('repair', String(shard), '--yes'), { code: 0, out: /is whole: nothing to do/ })
  const seq = Number(await redis.hget(`${tag}:meta`, 'seq'))
  await redis.xadd(`${tag}:journal`, `${seq + 1}-0`, 'c', 'cut off', 'n', '3')
  await service.restart()
  t.not((await patch().catch(() => null))?.status, 200, 'it takes no orders: in doubt, the connection is closed')
  const status = await run('cluster', 'status')
  t.match(status, { code: 1, out: new RegExp(`^${shard} +torn +${seq} +${seq + 1} `, 'm') })
  const shown = await run('repair', String(shard))
  t.match(shown, { code: 1, err: /was not changed: confirm with --yes/ })
  t.match(shown.out, new RegExp(`^meta +${seq} `, 'm'))
  t.match(shown.out, new RegExp(`^journal +${seq + 1} +cut off +3$`, 'm'))
  t.match(await run('repair', String(shard), '--yes'), { code: 0, out: /is repaired/ })
  await until(async () => (await patch().catch(() => null))?.status === 200, 20_000)
})

function firstRunNow() {
  return JSON.parse(readFileSync(join(service.dataDir, 'first-run.json'), 'utf8')) as typeof service.firstRun
}
