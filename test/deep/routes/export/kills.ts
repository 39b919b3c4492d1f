/**
 * kills - the process is killed in the middle of exports, and 64 clients export at once: a file that is not whole is an
 * error for its client, a whole one has every row once, and the log lists each export that has begun.
 */
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { EXPORTS_MAX } from '../../../../schemas/limits.ts'
import { until } from '../../../support/machine/until.ts'
import { startScene } from '../../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../../support/service/host.ts'

/** More rows than the buffers of sockets hold, at 170 bytes each. */
const ROWS = 40_000
const PER_CALL = 1_000
/** Two clients of each account. */
const ACCOUNTS = 32
const WAIT_MS = 120_000

t.jobs = 1
const scene = await startScene()
const { settings, firstRun } = scene
const { token } = firstRun.liveServer
let host: Host = scene.host
t.teardown(async () => {
  await host.kill('SIGKILL')
  await scene.end()
})

interface Answered {
  readonly status: number
  readonly text: () => Promise<string>
}

/** Calls, until the service answers at all. */
function call(
  path: string,
  { key, body, port = settings.HTTP_PORT }: { key: string; body: object; port?: string | undefined },
): Promise<Answered> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' }
  return until(
    () =>
      fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }).catch(
        () => null,
      ),
    WAIT_MS,
  )
}

async function json<Body>(answer: Answered): Promise<Body> {
  const text = await answer.text()
  if (answer.status >= 300) throw new Error(text)
  return JSON.parse(text) as Body
}

const rowsOf = (text: string) => parse(text, { columns: true, record_delimiter: '\r\n' }) as Record<string, string>[]

/** Entries of exports of suppressions in the log, the newest first, by their results. */
async function results(): Promise<(string | undefined)[]> {
  const text = await (await call('/v1/activity/export', { key: firstRun.account.token, body: {} })).text()
  return rowsOf(text)
    .filter(({ act }) => act === 'exportSuppressions')
    .map(({ targets }) => (JSON.parse(targets ?? '{}') as { result?: string }).result)
}

const { streamId } = firstRun.liveServer
for (let n = 0; n < ROWS; n += PER_CALL) {
  const recipients = Array.from({ length: PER_CALL }, (_, at) => `${'x'.repeat(50)}${n + at}@${'d'.repeat(60)}.example`)
  await json(await call('/v1/suppressions', { key: token, body: { streamId, recipients } }))
}

t.test(
  'export: a process that is killed ends its files early, and the next file is whole [export.csv] [export.note]',
  async (t) => {
    const [one, two] = [
      await call('/v1/suppressions/export', { key: token, body: {} }),
      await call('/v1/suppressions/export', { key: token, body: {} }),
    ]
    t.same([one.status, two.status], [200, 200])
    await host.kill('SIGKILL')
    await t.rejects(one.text(), 'no last chunk')
    await t.rejects(two.text(), 'no last chunk')
    host = await startHost(settings)
    const whole = await until(async () => {
      const answer = await call('/v1/suppressions/export', { key: token, body: {} })
      return answer.status === 200 ? answer : null
    }, WAIT_MS)
    const rows = rowsOf(await whole.text())
    t.equal(rows.length, ROWS)
    t.equal(new Set(rows.map(({ recipient }) => recipient)).size, ROWS)
    const noted = await until(async () => {
      const all = await results()
      return all[0] === 'complete' ? all : null
    }, WAIT_MS)
    t.same(noted, ['complete', undefined, undefined], 'those of the killed process have begun and no end')
  },
)

t.test('export: 64 clients at once, two of each account, get whole files or 409 [export.bounds]', async (t) => {
  const port = settings.OPERATOR_PORT
  const keys: string[] = []
  for (let n = 0; n < ACCOUNTS; n += 1) {
    const key = firstRun.operatorToken
    const { accountId } = await json<{ accountId: string }>(
      await call('/v1/operator/accounts', { key, port, body: { name: `Account ${n}`, administrators: [] } }),
    )
    const made = await json<{ key: { token: string }; server: { streamId?: string } }>(
      await call(`/v1/operator/accounts/${accountId}/servers`, { key, port, body: { name: 'Test', mode: 'test' } }),
    )
    keys.push(made.key.token)
  }
  const clients = [...keys, ...keys].map(async (key) => {
    const answer = await call('/v1/messages/export', { key, body: {} })
    return { status: answer.status, text: await answer.text() }
  })
  const busy = call('/v1/suppressions/export', { key: token, body: {} })
  const ended = await Promise.all(clients)
  t.same(
    ended.filter(({ status, text }) => !(status === 200 ? /^messageId,.*\r\n$/ : /export_limit/).test(text)),
    [],
    'each is whole or refused',
  )
  t.ok(ended.filter(({ status }) => status === 200).length >= EXPORTS_MAX / 2)
  const large = await busy
  if (large.status === 200) t.equal(rowsOf(await large.text()).length, ROWS)
  else t.equal(large.status, 409)
  // Every place is released again.
  for (const key of keys.slice(0, EXPORTS_MAX))
    t.equal((await call('/v1/messages/export', { key, body: {} })).status, 200)
})
