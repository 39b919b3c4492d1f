/**
 * rotated-file - after a rotation of the secret nothing in the append-only files of the embedded Redis opens with the
 * former key, even if the process is killed while Redis rewrites them.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { deriveRingKeys } from '../../../src/state/ring/ring.ts'
import { webhookSecretOwner } from '../../../src/state/ring/sealed-values.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { secretInFile } from '../../support/service/secret-folder.ts'
import type { RotationPoint } from '../../support/store/crash-rotation.ts'
import { SealedSeeker } from '../../support/store/seek-sealed.ts'

const SECRET = 'the first secret of an installation, long enough'
const WAIT_MS = 90_000
const POINT: RotationPoint = 'file being rewritten'

t.test('rotation: the files of the embedded Redis [secret.rotate]', async (t) => {
  const folder = secretInFile(SECRET)
  const settings = {
    ...folder,
    REDIS_URL: '',
    CONTENT_STORE: 'file',
    HTTP_PORT: String(await freePort()),
    OPERATOR_PORT: String(await freePort()),
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    LOG_LEVEL: 'fatal',
    SETTLING_MS: '2000',
  }
  let host: Host = await startHost({ ...settings, ROTATION_POINT: POINT })
  t.teardown(async () => {
    await host.kill('SIGTERM')
    rmSync(folder.DATA_DIR, { recursive: true, force: true })
  })
  const path = join(folder.DATA_DIR, 'first-run.json')
  await until(() => existsSync(path), WAIT_MS)
  const { testServer, liveServer, operatorToken } = JSON.parse(readFileSync(path, 'utf8'))

  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  async function call(what: string, token: string, body?: object): Promise<any> {
    const [method = 'GET', route = '/'] = what.split(' ')
    const port = route.includes('/operator/') ? settings.OPERATOR_PORT : settings.HTTP_PORT
    const headers = { authorization: `Bearer ${token}`, connection: 'close', 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await until(async () => {
      const tried = await fetch(`http://127.0.0.1:${port}${route}`, { method, headers, ...sent }).catch(() => null)
      return tried === null || tried.status === 503 ? null : tried
    }, WAIT_MS)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${what}: ${answer.status} ${text}`)
    return JSON.parse(text)
  }

  const text = randomBytes(60_000).toString('hex')
  const mail = { from: 'hello@simulator.test', to: ['delivered@simulator.test'], subject: 'A large one', text }
  const { messageId } = await call('POST /v1/email', testServer.token, mail)
  const hook = { url: 'https://user:word@hooks.example/x', format: 'postmark', events: ['delivered'] }
  await call('POST /v1/webhooks', liveServer.token, hook)
  const seeker = new SealedSeeker(deriveRingKeys(SECRET).sealing, [webhookSecretOwner(liveServer.serverId)])
  // Redis writes its file within a second.
  const before = await until(() => {
    const found = seeker.inFiles(folder.DATA_DIR)
    return found.length > 0 ? found : null
  }, WAIT_MS)
  t.ok(
    before.some((name) => name.includes('aof')),
    before.join(),
  )
  await call('POST /v1/operator/secret/rotate', operatorToken, {})
  await until(() => !host.isRunning(), WAIT_MS)
  host = await startHost(settings)
  await until(async () => {
    const { rotation } = await call('GET /v1/operator/secret', operatorToken)
    return rotation.phase === 'done'
  }, WAIT_MS)
  t.same(seeker.inFiles(folder.DATA_DIR), [], 'nothing opens with the former key')
  t.equal((await call(`GET /v1/messages/${messageId}`, testServer.token)).text, text)
})
