/** import - `sendwright import suppressions` against a real service, with the files that each provider exports. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCommandLine } from '../support/service/command-line.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const commands = await startCommandLine()
t.teardown(async () => {
  commands.stop()
  await service.stop()
})
const { token, streamId } = service.firstRun.testServer
const environment = { DATA_DIR: service.dataDir, HTTP_PORT: String(service.config.httpPort) }

async function run(text: string, ...args: string[]) {
  const file = join(service.dataDir, 'suppressed.csv')
  writeFileSync(file, text)
  const { code, out, err } = await commands.run(['import', 'suppressions', file, ...args, '--json'], environment)
  return { code, err, report: out === '' ? null : JSON.parse(out) }
}

async function reasonOf(recipient: string, stream = streamId) {
  const body = { recipient, streamId: stream }
  const { json } = await service.call('POST /v1/suppressions/search', { token, body })
  return json.suppressions.map(({ reason, liftable }: { reason: string; liftable: boolean }) => [reason, liftable])
}

/** Provider, file, options; each address with its reason. */
const FILES: readonly [string, string, string[], Record<string, string>][] = [
  [
    'postmark',
    '\ufeffEmailAddress,SuppressionReason,Origin,CreatedAt\r\na@postmark.example,HardBounce,Recipient,2026-01-01\r\n' +
      'b@postmark.example,SpamComplaint,Recipient,2026-01-01\r\nc@postmark.example,ManualSuppression,Customer,2026-01-01\r\n',
    [],
    {
      'a@postmark.example': 'hard_bounce',
      'b@postmark.example': 'spam_complaint',
      'c@postmark.example': 'manual',
    },
  ],
  [
    'resend',
    'id,email,origin,source_id,created_at\n1,a@resend.example,bounce,,x\n2,b@resend.example,complaint,,x\n3,c@resend.example,manual,,x\n',
    [],
    { 'a@resend.example': 'hard_bounce', 'b@resend.example': 'spam_complaint', 'c@resend.example': 'manual' },
  ],
  [
    'mailgun',
    'address,code,error,created_at\na@mailgun.example,550,"No such user, sorry",x\n',
    [],
    { 'a@mailgun.example': 'hard_bounce' },
  ],
  ['mailgun', 'address,tags,created_at\nb@mailgun.example,*,x\n', [], { 'b@mailgun.example': 'unsubscribe' }],
  [
    'mailgun',
    'address,created_at\nc@mailgun.example,x\n',
    ['--reason', 'spam_complaint'],
    { 'c@mailgun.example': 'spam_complaint' },
  ],
  [
    'ses',
    'EmailAddress,Reason,LastUpdateTime\na@ses.example,BOUNCE,x\nb@ses.example,COMPLAINT,x\n',
    [],
    { 'a@ses.example': 'hard_bounce', 'b@ses.example': 'spam_complaint' },
  ],
  [
    'sendgrid',
    'status,reason,email,created\n5.1.1,550 spam trap,a@sendgrid.example,1700000000\n',
    [],
    { 'a@sendgrid.example': 'hard_bounce' },
  ],
]

t.test('import: the reason of each provider is kept, and nothing is listed twice [suppression.add]', async (t) => {
  for (const [provider, text, options, expected] of FILES) {
    const count = Object.keys(expected).length
    const args = ['--from', provider, '--stream', streamId, ...options]
    const dry = await run(text, ...args, '--dry-run')
    t.match(dry, { code: 0, report: { rows: count, added: 0, bad: 0 } }, dry.err)
    const [first] = Object.keys(expected)
    t.same(await reasonOf(first as string), [], 'a dry run adds nothing')
    t.match(await run(text, ...args), { code: 0, report: { rows: count, added: count, existing: 0, bad: 0 } })
    for (const [address, reason] of Object.entries(expected))
      t.same(await reasonOf(address), [[reason, reason === 'hard_bounce' || reason === 'manual']], address)
    t.match(await run(text, ...args), { code: 0, report: { added: 0, existing: count } }, 'again')
  }
})

t.test('import: an entry takes a worse reason, and no lighter one [suppression.add]', async (t) => {
  const args = ['--from', 'resend', '--stream', streamId]
  const text = (origin: string) => `email,origin\nworse@example.com,${origin}\n`
  await run(text('manual'), ...args)
  await run(text('complaint'), ...args)
  t.same(await reasonOf('worse@example.com'), [['spam_complaint', false]])
  await run(text('bounce'), ...args)
  t.same(await reasonOf('worse@example.com'), [['spam_complaint', false]])
})

t.test('import: bad rows are listed with their line and skipped', async (t) => {
  const text =
    'email,origin\ngood@example.com,bounce\nnobody,bounce\n\n,bounce\na@b.example,bounce,x\nlast@example.com,bounce\n'
  const { code, report } = await run(text, '--from', 'resend', '--stream', streamId)
  t.equal(code, 1)
  t.match(report, {
    rows: 5,
    added: 2,
    bad: 3,
    badRows: [
      { line: 3, problem: 'not an e-mail address' },
      { line: 5, problem: 'no address' },
      { line: 6, problem: 'has 3 fields of 2' },
    ],
  })
  t.match(await run(text, '--from', 'resend'), { code: 1, err: /--stream/ })
  t.match(await run(text, '--from', 'elsewhere', '--stream', streamId), { code: 2 })
})

t.test('import: a column names the stream, by name or id', async (t) => {
  const body = { kind: 'broadcast', name: 'News' }
  const { json: news } = await service.call('POST /v1/streams', { token, body })
  const text =
    'EmailAddress,SuppressionReason,MessageStream\na@stream.example,HardBounce,news\nb@stream.example,HardBounce,outbound\n' +
    'c@stream.example,HardBounce,nothing\n'
  const { code, report } = await run(text, '--from', 'postmark')
  t.equal(code, 1)
  t.match(report, { added: 2, bad: 1, badRows: [{ line: 4, problem: 'the server has no such stream' }] })
  t.same(await reasonOf('a@stream.example', news.streamId), [['hard_bounce', true]])
  t.same(await reasonOf('b@stream.example'), [['hard_bounce', true]])
})
