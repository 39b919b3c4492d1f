/** submission - what doctor says of the listeners: that they answer under TLS, or what is wrong and who mends it. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { examineSubmission } from '../../src/health/submission.ts'
import { freePort } from '../support/machine/port.ts'
import { startRig } from '../support/service/submission-rig.ts'

const running = async () => new Set(['http', 'submission'])

t.test('health: the listeners of submission answer, under TLS [operator.health]', async (t) => {
  const [plain, encrypted] = [await startRig(t), await startRig(t, {}, { isImplicitTls: true })]
  const config = { smtpHost: '0.0.0.0', submissionPort: plain.port, submissionTlsPort: encrypted.port }
  t.match(await examineSubmission(config, running), {
    name: 'submission',
    status: 'ok',
    message: `Mail is taken over SMTP on 127.0.0.1:${plain.port} and 127.0.0.1:${encrypted.port}`,
    fix: null,
  })
  t.match(await examineSubmission({ ...config, submissionPort: 0, submissionTlsPort: 0 }, running), { status: 'ok' })
  t.match(await examineSubmission(config, async () => new Set(['http'])), {
    status: 'warning',
    fix: /ROLES=submission/,
  })
  const closed = { ...config, submissionTlsPort: await freePort() }
  t.match(await examineSubmission(closed, running), { status: 'failed', message: /ECONNREFUSED/ })
  const turned = { ...config, submissionPort: encrypted.port, submissionTlsPort: 0 }
  t.match(await examineSubmission(turned, running), { status: 'failed', message: /no answer$/ })
  const other = createServer((socket) => socket.end('220 hello\r\n550 go away\r\n')).listen(0, '127.0.0.1')
  t.teardown(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as { port: number }
  t.match(await examineSubmission({ ...config, submissionPort: port }, running), { status: 'failed' })
})
