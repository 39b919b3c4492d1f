/** commands - every route of the service has a command, and each of these does what it says on a running service. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import t from 'tap'
import { makeProgram } from '../../src/cli/program.ts'
import { COMMANDS } from '../support/documents/commands.ts'
import { spawnNode } from '../support/machine/node.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'
import { startCommandLine } from '../support/service/command-line.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { testServer, liveServer, account } = service.firstRun
const commands = await startCommandLine()
const dir = mkdtempSync(join(tmpdir(), 'sendwright-commands-'))
t.teardown(async () => {
  commands.stop()
  rmSync(dir, { recursive: true })
  await service.stop()
})
const ENVIRONMENT = { DATA_DIR: service.dataDir }

const run = (...args: string[]) => commands.run(args, ENVIRONMENT)

async function runJson(...args: string[]) {
  const ran = await run(...args, '--json')
  return { ...ran, json: JSON.parse(ran.out) }
}

/** Runs a command that must succeed; out: what it printed. */
async function done(...args: string[]): Promise<string> {
  const { code, out, err } = await run(...args)
  t.equal(code, 0, `${args.join(' ')}: ${err}`)
  return out
}

function namesOf(command: Command, before = ''): string[] {
  return command.commands.flatMap((one) => [`${before}${one.name()}`, ...namesOf(one, `${before}${one.name()} `)])
}

t.test('commands: every route has one, and every one takes --json', async (t) => {
  const program = makeProgram(() => undefined)
  const names = namesOf(program)
  for (const [route, command] of Object.entries(COMMANDS))
    t.ok(command === null || names.includes(command), `${route}: ${command}`)
  const leaves = (command: Command): Command[] =>
    command.commands.flatMap((one) => (one.commands.length === 0 ? [one] : leaves(one)))
  for (const one of leaves(program).filter((leaf) => !['start', 'store', 'mcp'].includes(leaf.name())))
    t.ok(
      one.options.some(({ long }) => long === '--json'),
      one.name(),
    )
})

const FROM = ['--from', 'Acme <hello@simulator.test>', '--subject', 'Receipt']

t.test('csv: lists as files, to standard output or to a place; what does not fit is refused', async (t) => {
  const address = 'hardbounce+csv@simulator.test'
  const id = (await done('send', ...FROM, '--to', address, '--text', 'Thanks', '--tag', 'csv')).trim()
  await until(async () => (await runJson('message', 'show', id)).json.status === 'bounced', 20_000)
  const messages = await done('message', 'search', '--tag', 'csv', '--csv')
  t.match(messages, new RegExp(`^messageId,.*\r\n${id},.*hardbounce\\+csv@simulator.test.*\r\n$`))
  const file = join(dir, 'bounces.csv')
  t.equal(await done('message', 'bounces', '--recipient', address, '--csv', file), '')
  t.match(readFileSync(file, 'utf8'), /InvalidRecipient,true,false,550,550 5\.1\.1/)
  t.match(await done('suppression', 'list', '--recipient', address, '--csv'), /hard_bounce/)
  const [entry] = (await runJson('suppression', 'list', '--recipient', address)).json.suppressions
  await done('suppression', 'lift', entry.suppressionId)
  t.match(await done('account', 'activity', '--csv', '--since', '2026-01-01'), /exportBounces/)
  await done('domain', 'add', 'csv.example')
  t.match(await done('domain', 'reports', 'csv.example', '--csv'), /^day,source,own,messages,/)
  t.match(await done('domain', 'tls-reports', 'csv.example', '--csv'), /^day,reporter,policyType,/)
  t.match(await run('domain', 'reports', 'csv.example', '--csv', '--source', 'x'), { code: 1, err: /IP address/ })
  await done('domain', 'remove', 'csv.example')
  t.match(await run('message', 'search', '--csv', '--limit', '5'), { code: 1, err: /leave out --limit/ })
  t.match(await run('suppression', 'list', '--csv', '--server', testServer.serverId), {
    code: 1,
    err: /leave out --server/,
  })
  t.match(await run('message', 'search', '--csv', join(dir, 'no', 'such')), { code: 1, err: /Cannot write.*ENOENT/ })
  t.match(await run('message', 'search', '--stream', account.accountId, '--csv'), { code: 1, err: /stream_not_found/ })
})

t.test('send: everything that a message may have, and what became of it', async (t) => {
  const html = join(dir, 'letter.html')
  const receipt = join(dir, 'receipt.txt')
  writeFileSync(html, '<p>Thank you</p>')
  writeFileSync(receipt, 'One pound')
  const more = ['--cc', 'c@simulator.test', '--bcc', 'B <b@simulator.test>', '--html-file', html, '--attach', receipt]
  const marks = ['--header', 'X-Order: 1: 2', '--tag', 'receipts', '--metadata', 'order=1=2', '--idempotency-key', 'k1']
  const id = (await done('send', ...FROM, '--to', 'a@simulator.test', '--text', 'Thanks', ...more, ...marks)).trim()
  t.equal((await done('send', ...FROM, '--to', 'a@simulator.test', '--text', 'Thanks', ...more, ...marks)).trim(), id)
  const { json } = await runJson('message', 'show', id)
  t.match(json, {
    from: { email: 'hello@simulator.test', name: 'Acme' },
    text: 'Thanks',
    html: '<p>Thank you</p>',
    headers: { 'X-Order': '1: 2' },
    tag: 'receipts',
    metadata: { order: '1=2' },
    attachments: [{ name: 'receipt.txt', size: 9 }],
    recipients: [{ kind: 'to' }, { kind: 'cc' }, { kind: 'bcc', name: 'B' }],
  })
  const shown = await done('message', 'show', id)
  t.match(shown, /^from +Acme <hello@simulator.test>$/m)
  t.match(
    await done('message', 'search', '--tag', 'receipts', '--metadata', 'order=1=2'),
    `a@simulator.test +2  Receipt`,
  )
  t.notMatch(await done('message', 'search', '--recipient', 'nobody@simulator.test'), id)
  t.match(await done('message', 'outcomes', '--tag', 'receipts'), /^messages +1$/m)
  t.match(await done('message', 'wait', '--subject', 'receipt'), id)
  t.equal(await done('message', 'attachment', id, '0'), 'One pound')
  t.match(await run('message', 'check', id, '--links'), { code: 0, out: /^line +check +finding/i })
  const eml = join(dir, 'message.eml')
  t.equal(await done('message', 'raw', id, '--output', eml), '')
  t.match(readFileSync(eml, 'utf8'), /^X-Order: 1: 2\r$/m)
  t.match(await run('message', 'attachment', id, '1'), { code: 1, err: /not_found|No such/ })
  t.match(await run('message', 'wait', '--tag', 'no', '--timeout', '1'), { code: 1, err: /No message in time/ })
  t.match(await run('send', ...FROM, '--to', 'a@simulator.test'), { code: 2, err: /give --text or --html/ })
  const away = await run('send', ...FROM, '--to', 'a@simulator.test', '--html-file', join(dir, 'none'))
  t.match(away, { code: 1, err: /Cannot read .*none/ })
})

t.test('stats: what was sent, by day and by hour', async (t) => {
  const before = (await runJson('stats')).json.stats[0]?.accepted ?? 0
  await done('send', ...FROM, '--to', 'figures@simulator.test', '--text', 'x', '--wait')
  const filter = ['--event', 'delivered', '--recipient']
  t.match(await done('events', 'search', ...filter, 'figures@simulator.test'), 'delivered  figures@simulator.test')
  t.notMatch(await done('events', 'search', ...filter, 'nobody@simulator.test'), 'delivered')
  const { json } = await runJson('stats', '--by', 'hour', '--stream', testServer.streamId)
  t.match(json.stats.at(-1), { streamId: testServer.streamId, accepted: Number })
  const counted = json.stats.reduce((sum: number, { accepted }: { accepted: number }) => sum + accepted, 0)
  t.equal(counted, before + 1)
  t.match(await done('stats'), new RegExp(`^\\d{4}-\\d\\d-\\d\\d +\\d+ .* ${testServer.streamId}$`, 'm'))
  t.match(await run('stats', '--since', '2026-01-02', '--until', '2026-01-01'), { code: 1, err: /later than from/ })
})

t.test('requests: those that were answered of late, and one by its id', async (t) => {
  const id = (await done('send', ...FROM, '--to', 'requests@simulator.test', '--text', 'x')).trim()
  t.equal((await run('send', '--from', 'x', '--subject', 'x', '--text', 'x', '--to', 'y@simulator.test')).code, 1)
  const { json } = await until(async () => {
    const seen = await runJson('requests', 'list', '--message', id)
    return seen.json.requests.length === 1 ? seen : null
  }, 20_000)
  t.match(json.requests[0], { path: '/v1/email', status: 200, messageIds: [id], error: null })
  const { requestId } = json.requests[0]
  t.match(await done('requests', 'show', requestId), /^path +\/v1\/email$/m)
  await until(async () => /invalid_request +from /.test(await done('requests', 'list', '--refused')), 20_000)
  t.match(await done('requests', 'list', '--error', 'invalid_request'), /400 +invalid_request +from /)
})

t.test('send --wait: each event as it comes, and a hint where a simulated address is suppressed', async (t) => {
  const wait = (...args: string[]) => run('send', ...FROM, '--text', 'x', '--wait', ...args)
  const first = await wait('--to', 'bounce@simulator.test', '--to', 'deferred@simulator.test')
  t.equal(first.code, 1)
  const lines = first.out.trim().split('\n')
  t.match(lines[0], /^[0-9a-f-]{36}$/)
  t.same(
    lines
      .slice(1)
      .map((line) => line.split(/ {2,}/)[1]?.trim())
      .sort(),
    ['bounced', 'deferred', 'deferred', 'delivered'],
  )
  const again = await wait('--to', 'bounce@simulator.test')
  t.match(again, {
    code: 1,
    err: /bounce@simulator\.test is on the suppression list.*bounce\+1@simulator\.test is a fresh/,
  })
  t.equal((await wait('--to', 'fine@simulator.test')).code, 0)
  t.notMatch((await wait('--to', 'fine@simulator.test')).out, 'RECIPIENT', 'what has ended needs no table')
  const listed = (await runJson('suppression', 'list', '--recipient', 'bounce@simulator.test')).json.suppressions
  t.match(listed, [{ reason: 'hard_bounce' }])
  t.match(await done('suppression', 'show', listed[0].suppressionId), /^reason +hard_bounce$/m)
  await done('suppression', 'lift', listed[0].suppressionId)
  t.same((await runJson('suppression', 'list')).json.suppressions, [])
  t.match(await done('suppression', 'add', testServer.streamId, 'x@y.example', 'z@y.example'), 'Added 2; 0')
  const ofServer = (await runJson('suppression', 'list', '--server', testServer.serverId)).json.suppressions
  t.equal(ofServer.length, 2)
  await done('suppression', 'lift', ofServer[0].suppressionId, '--operator', '--note', 'asked')
})

t.test('send --wait: who has not ended in time is shown with what is known', async (t) => {
  const to = ['--to', 'deferred+late@simulator.test', '--to', 'fine@simulator.test']
  const { code, out, err } = await run('send', ...FROM, '--text', 'x', '--wait', '1', ...to)
  t.equal(code, 1)
  t.equal(err, 'Not every recipient has ended within 1 s\n')
  const table = out.split('\n\n')[1] ?? ''
  const [head, row, ...rest] = table.trim().split('\n')
  t.match(head, /^RECIPIENT +STATUS +ATTEMPTS +NEXT ATTEMPT$/)
  t.match(row, /^deferred\+late@simulator\.test +deferred +[12] +\d{4}-\S+Z$/)
  t.same(rest, [], 'who has ended is not in it')
  t.match(await run('send', ...FROM, '--text', 'x', '--to', 'a@simulator.test', '--wait', 'long'), { code: 2 })
})

t.test('batch: a list or a body of messages from a file', async (t) => {
  const one = { from: 'a@simulator.test', to: ['b@simulator.test'], subject: 'One', text: 'x' }
  const path = join(dir, 'batch.json')
  writeFileSync(path, JSON.stringify([one, one]))
  t.equal((await done('batch', path)).trim().split('\n').length, 2)
  writeFileSync(path, JSON.stringify({ messages: [one] }))
  t.equal((await done('batch', path)).trim().split('\n').length, 1)
  writeFileSync(path, 'x')
  t.match(await run('batch', path), { code: 1, err: /is not JSON/ })
})

t.test('stream: made, renamed, archived; paused and paced by the operator', async (t) => {
  const id = (await done('stream', 'create', 'News', '--kind', 'broadcast')).trim()
  t.match(await done('stream', 'update', id, '--name', 'Letters'), /^name +Letters$/m)
  t.match(await done('stream', 'pace', id, '100'), 'Letters releases 100')
  t.match(await done('stream', 'pause', id), 'Letters is paused')
  t.match(await done('stream', 'list'), /^Letters +broadcast +paused /m)
  t.match(await done('stream', 'resume', id), 'Letters is active')
  t.match(await done('stream', 'archive', id), 'Letters is archived')
  t.match(await done('stream', 'show', id), /^name +Letters$/m)
})

t.test('account and server: limits, and servers by the account’s key', async (t) => {
  const { accountId } = account
  t.match(await done('account', 'limits', accountId), /^account, a month +10000 /m)
  t.match(await done('account', 'limits', accountId, '--monthly', '200000', '--per-minute', '900'), /Approved: 200000/)
  t.match((await service.call('GET /v1/account', { token: account.token })).json, { monthlyCap: 200_000 })
  t.match(await done('account', 'show'), /^monthlyCap +200000$/m)
  t.match(await done('account', 'show', accountId), /^last24Hours /m)
  const made = await done('server', 'add', 'Shop', '--mode', 'live', '--per-minute', '10')
  const [, id = '', key = ''] = /^(\S{36}) +(sk_\S+)$/m.exec(made) ?? []
  t.match(await done('server', 'update', id, '--name', 'Store', '--per-minute', 'none'), /^name +Store$/m)
  t.match(await done('server', 'list'), /^Store +live /m)
  t.match(await done('server', 'show'), testServer.serverId)
  t.match(await done('server', 'show', '--live'), liveServer.serverId)
  t.match(await done('token', 'list', '--token', key), /^\S.* live +\S+$/m)
  t.match(await done('token', 'create', 'Other', '--of', id), /^sk_/)
  t.match(await done('token', 'list', '--own-account'), / live /)
  await done('server', 'remove', id)
  t.equal((await service.call('GET /v1/server', { token: key })).status, 401)
  t.match(await done('audit', '--limit', '1'), /patchAccount|patch/)
})

t.test('domain and webhook: rotated, switched, tried and removed', async (t) => {
  await done('domain', 'add', 'acme.com')
  t.match(await done('domain', 'add', 'app.acme.com', '--test-only'), /Test servers can send from app\.acme\.com now/)
  t.match(await done('domain', 'test-use', 'app.acme.com'), /Test servers can send/)
  t.match(await done('domain', 'list'), /app\.acme\.com +on test servers only/)
  await done('domain', 'remove', 'app.acme.com')
  t.match(await done('domain', 'rotate-dkim', 'acme.com'), /_domainkey\.acme\.com/)
  t.match(await done('domain', 'show', 'acme.com'), /^CNAME +sw-bounce\.acme\.com/m)
  t.match(await done('domain', 'show', 'acme.com'), /^TXT +_smtp\._tls\.acme\.com +v=TLSRPTv1; rua=mailto:d-/m)
  t.match(await done('domain', 'reports', 'acme.com'), /no report yet\. 0 messages/)
  t.match(await done('domain', 'reports', 'acme.com', '--by', 'row', '--result', 'fail'), /^DAY +SOURCE/m)
  t.match(await done('domain', 'tls-reports', 'acme.com'), /^0 sessions/)
  t.match(await done('domain', 'received-reports', 'acme.com'), /^RECEIVED +KIND/)
  t.match(await done('domain', 'remove', 'acme.com'), 'Removed')
  t.same((await runJson('domain', 'list')).json.domains, [])
  const url = 'https://hooks.example/in'
  await done('webhook', 'create', url)
  t.match(await done('webhook', 'disable', url), 'is off')
  t.match(await run('webhook', 'test', url), { code: 1, err: /webhook_disabled/ })
  t.match(await done('webhook', 'enable', url), 'is on')
  const { deliveryId } = (await runJson('webhook', 'test', url, '--event', 'bounced')).json
  t.match((await runJson('webhook', 'delivery', url, deliveryId)).json, {
    event: 'bounced',
    body: { event: 'bounced' },
  })
  t.match(await done('webhook', 'add-secret', url), /^whsec_/)
  const { secrets } = (await runJson('webhook', 'show', url)).json
  await done('webhook', 'remove-secret', url, secrets[0].secretId)
  await done('webhook', 'remove', url)
  t.same((await runJson('webhook', 'list')).json.webhooks, [])
  t.same((await runJson('webhook', 'health')).json.webhooks, [])
})

t.test('refusals: every field is printed, and the form of an address with a name is named', async (t) => {
  const token = testServer.token
  const body = { from: 'Acme <a@simulator.test>', to: ['b@simulator.test'], subject: 'x', text: 'x' }
  const { json } = await service.call('POST /v1/email', { token, body })
  t.match(json.issues, [{ path: 'from', message: /\{"email": "ada@example\.com", "name": "Ada"\}/ }])
  t.match((await service.call('POST /v1/email', { token, body: { ...body, from: 'a' } })).json.issues, [
    { path: 'from', message: 'Must be an e-mail address' },
  ])
  const other = await run(
    'send',
    '--from',
    'a@not-mine.example',
    '--to',
    'b@c.example',
    '--subject',
    'x',
    '--text',
    'x',
  )
  t.match(other, {
    code: 1,
    err: /domain_not_verified.*\n {2}domain: not-mine\.example\nsendwright domain add not-mine\.example prints/,
  })
})

t.test('tail: with a server’s key over the public listener, of the events that are wanted', async (t) => {
  t.match(await run('tail', '--event', 'nothing'), { code: 1, err: /Unknown event nothing: the events are/ })
  const made = (await runJson('token', 'create', 'Laptop')).json
  const args = ['tail', '--event', 'bounced', '--token', made.token]
  const child = spawnNode([join(ROOT, 'build/src/cli/main.js'), ...args], { env: { ...process.env, ...ENVIRONMENT } })
  t.teardown(() => child.kill('SIGKILL'))
  const said = { out: '', err: '' }
  child.stdout.on('data', (piece: Buffer) => {
    said.out += piece
  })
  child.stderr.on('data', (piece: Buffer) => {
    said.err += piece
  })
  const ended = once(child, 'close')
  await until(() => said.err.includes('Listening to events'), 20_000)
  for (const to of ['fine@simulator.test', 'bounce+tail@simulator.test'])
    await done('send', ...FROM, '--text', 'x', '--to', to)
  await until(() => said.out !== '', 20_000)
  await done('token', 'revoke', made.tokenId)
  t.same(await ended, [1, null], 'a key that is revoked ends it')
  t.match(said.err, /401 unauthorized/)
  t.match(said.out, /^\S+Z {2}bounced {2}bounce\+tail@simulator\.test {2}[0-9a-f-]{36} {2}\{.*\}\n$/)
})
