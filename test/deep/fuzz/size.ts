/**
 * The largest requests, over HTTP against the whole service: the exact limits of body, message and recipients, and
 * bodies of extreme size or depth. Memory stays bounded and no answer is a 5xx.
 */
import t from 'tap'
import { agent, type Came, residentMb, sendAgain, wrongOf } from '../../support/clients/crash-http.ts'
import { until } from '../../support/machine/until.ts'
import { startScene } from '../../support/service/crash-scene.ts'

const MAX = 10_485_760
const ATTACHMENTS = 20
const RECIPIENTS = 50
const AT_ONCE = 8
/** Bodies of the limit at once, and fifty attempts with a message of the limit each, are what it takes most for. */
const RESIDENT_MB_MAX = 2_000
const ENDED_MS_MAX = 30_000
const MESSAGE = { from: 'you@simulator.test', to: ['a@example.com'], subject: 'Size' }

t.jobs = 1
const { settings, firstRun, host, end } = await startScene()
t.teardown(async () => {
  agent.destroy()
  await host.kill('SIGKILL')
  await end()
})

t.test(`size: ${ATTACHMENTS} attachments, ${MAX} bytes as built pass, one more does not [fuzz.size]`, async (t) => {
  const whole = (textBytes: number): object => ({
    ...MESSAGE,
    to: Array.from({ length: RECIPIENTS }, (_, n) => `person${n}@example.com`),
    text: linesOf(textBytes),
    attachments: Array.from({ length: ATTACHMENTS }, (_, n) => ({
      name: `a${n}.bin`,
      content: Buffer.alloc(370_000, n).toString('base64'),
    })),
  })
  // Under the limit of the body, over that of the message: the refusal contains the excess.
  const first = await post(whole(400_000))
  t.equal(first.status, 422)
  const { sizeBytes, max } = JSON.parse(first.text)
  t.equal(max, MAX)
  const fitting = await fit(whole, 400_000 - (sizeBytes - MAX))
  const over = await post(whole(fitting + 1))
  t.equal(over.status, 422)
  t.equal(JSON.parse(over.text).sizeBytes, MAX + 1, 'one more does not')
  const taken = await post(whole(fitting))
  t.equal(taken.status, 200, 'what is exactly as large passes')
  const { messageId } = JSON.parse(taken.text)
  const message = await until(async () => {
    const read = JSON.parse((await get(`/v1/messages/${messageId}`)).text)
    return read.status === 'delivered' ? read : null
  }, ENDED_MS_MAX)
  t.equal(message.sizeBytes, MAX)
  t.equal(message.recipients.length, RECIPIENTS)
})

t.test('size: a body of the limit is read, one byte more is 413, recipients are 50 [fuzz.limits]', async (t) => {
  const full = bodyOf(MAX)
  t.equal(Buffer.byteLength(full), MAX)
  // It fits as a body; as a message it is too large.
  const came = await post(full)
  t.equal(came.status, 422)
  t.match(JSON.parse(came.text), { error: 'message_too_large' })
  const over = await post(`${full} `)
  t.equal(over.status, 413)
  t.equal(wrongOf(over), null)
  const to = Array.from({ length: RECIPIENTS }, (_, n) => `r${n}@example.com`)
  t.equal((await post({ ...MESSAGE, to, text: 'x' })).status, 200)
  const many = await post({ ...MESSAGE, to, bcc: ['one@example.com'], text: 'x' })
  t.equal(many.status, 400)
  t.match(JSON.parse(many.text).issues, [{ path: 'to' }])
})

t.test('size: heavy and deep bodies, many at once, keep memory bounded [fuzz.heavy]', async (t) => {
  const token = firstRun.testServer.token
  const bodies: readonly (readonly [name: string, body: string])[] = [
    ['nested lists', '['.repeat(MAX)],
    ['nested and closed', `${'['.repeat(MAX / 2)}${']'.repeat(MAX / 2)}`],
    ['nested in a field', `{"to":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`],
    ['nested objects', '{"a":'.repeat(1_000_000)],
    ['a million recipients', JSON.stringify({ ...MESSAGE, text: 'x', to: Array(700_000).fill('a@b.co') })],
    ['a million fields', `{${Array.from({ length: 600_000 }, (_, n) => `"k${n}":1`).join(',')}}`],
    ['a million headers', JSON.stringify({ ...MESSAGE, text: 'x', headers: manyOf(400_000) })],
    ['one key again and again', `{${'"to":["a@b.co"],'.repeat(500_000)}"to":[]}`],
    ['a huge number', `{"subject":${'9'.repeat(5_000_000)}}`],
    ['escapes', `{"subject":"${'\\u0000'.repeat(1_500_000)}"}`],
    ['lone surrogates', `{"text":"${'\\ud800'.repeat(1_500_000)}"}`],
    ['a long address', JSON.stringify({ ...MESSAGE, text: 'x', to: [`${'a.'.repeat(2_000_000)}@example.com`] })],
    ['attachments of nothing', JSON.stringify({ ...MESSAGE, text: 'x', attachments: Array(200_000).fill({}) })],
    ['not base64', JSON.stringify({ ...MESSAGE, text: 'x', attachments: [{ name: 'a', content: '='.repeat(9e6) }] })],
    ['a long text', JSON.stringify({ ...MESSAGE, text: 'é'.repeat(1_500_000) })],
    ['long lines', JSON.stringify({ ...MESSAGE, html: '<div>'.repeat(1_000_000) })],
  ]
  let most = 0
  for (const [name, body] of bodies) {
    const came = await post(body)
    most = Math.max(most, residentMb(host.pid))
    t.equal(wrongOf(came), null, `${name}: ${came.status}`)
  }
  const storm = await Promise.all(Array.from({ length: AT_ONCE * 3 }, () => post(bodyOf(MAX - 1))))
  t.same(new Set(storm.map(({ status }) => status)), new Set([422]))
  most = Math.max(most, residentMb(host.pid))
  const refused = await sendAgain({
    port: Number(settings.HTTP_PORT),
    method: 'POST',
    path: '/v1/email',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-encoding': 'gzip' },
    body: '{}',
  })
  t.equal(refused.status, 415, 'packed bodies are not unpacked')
  t.ok(host.isRunning())
  t.ok(most < RESIDENT_MB_MAX, `at most ${Math.round(most)} MB`)
})

/** Finds the text's length at which the message has the maximum size, near a first guess. */
async function fit(whole: (textBytes: number) => object, guess: number): Promise<number> {
  let bytes = guess + 200
  for (let tries = 0; tries < 8; tries += 1) {
    const came = await post(whole(bytes))
    if (came.status !== 422) throw new Error(`Not refused: ${came.status}`)
    const over = JSON.parse(came.text).sizeBytes - MAX
    if (over === 1) return bytes - 1
    bytes -= over - 1
  }
  throw new Error('No length makes the message one byte too large')
}

/** Text of short lines, so that as built it is what it is; the last line takes up what is left. */
function linesOf(bytes: number): string {
  const lines = 'x'
    .repeat(58)
    .concat('\r\n')
    .repeat(Math.floor(bytes / 60))
  return lines + 'x'.repeat(bytes - lines.length)
}

/** A body of this many bytes, valid except for the size of its message. */
function bodyOf(bytes: number): string {
  const frame = JSON.stringify({ ...MESSAGE, text: '', attachments: [{ name: 'a', content: '' }] })
  const left = bytes - frame.length
  const content = 'A'.repeat(left - (left % 4) - 4)
  return JSON.stringify({ ...MESSAGE, text: 'x'.repeat(left - content.length), attachments: [{ name: 'a', content }] })
}

function manyOf(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${n}`, 'v']))
}

function post(body: object | string): Promise<Came> {
  return sendAgain({
    port: Number(settings.HTTP_PORT),
    method: 'POST',
    path: '/v1/email',
    headers: { authorization: `Bearer ${firstRun.testServer.token}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

function get(path: string): Promise<Came> {
  const headers = { authorization: `Bearer ${firstRun.testServer.token}` }
  return sendAgain({ port: Number(settings.HTTP_PORT), method: 'GET', path, headers })
}
