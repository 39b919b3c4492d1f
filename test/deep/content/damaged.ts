/**
 * Objects of received mail that are damaged or missing. Every read of them is an error with its own code, never an
 * empty text; doctor names them; other mail is served.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { startTestService } from '../../support/service/service.ts'

const WAIT_MS = 40_000
const FILE = Buffer.from('An attachment of some bytes.\n'.repeat(400))

const zone = await startZone()
const service = await startTestService({ DNS_SERVERS: zone.server, CONTENT_STORE: 'file' })
t.teardown(async () => {
  await service.stop()
  await zone.close()
})
const { token } = service.firstRun.liveServer
const { json: stream } = await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Mail' } })
const content = join(service.dataDir, 'content')

const read = (path: string) => service.call(`GET /v1/inbound/${path}`, { token })

/** All objects, with the largest last, because the raw mail is larger than its parsed form. */
function objects(): string[] {
  return readdirSync(content, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort((a, b) => statSync(a).size - statSync(b).size)
}

/** Delivers a mail with an attachment. Returns its id, its raw object and its parsed one. */
async function deliver(): Promise<{ id: string; raw: string; parsed: string }> {
  const before = new Set(objects())
  const dialog = await openDialog(service.config.mxPort)
  for (const line of ['EHLO x', 'MAIL FROM:<a@b.example>', `RCPT TO:<${stream.inboundAddress}>`, 'DATA'])
    await dialog.say(line)
  const lines = [
    'Subject: Damaged',
    'From: a@b.example',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    'The text.',
    '--b',
    'Content-Type: application/octet-stream; name=file.bin',
    'Content-Transfer-Encoding: base64',
    '',
    ...(FILE.toString('base64').match(/.{1,76}/g) ?? []),
    '--b--',
    '.',
  ]
  const said = await dialog.say(lines.join('\r\n'))
  dialog.end()
  const id = /accepted (\S+)/.exec(said)?.[1] ?? ''
  await until(async () => (await read(id)).json.text !== null, WAIT_MS)
  const [parsed = '', raw = ''] = objects().filter((path) => !before.has(path))
  return { id, raw, parsed }
}

const DAMAGES: readonly [name: string, act: (path: string) => void][] = [
  ['a flipped bit', (path) => writeFileSync(path, flipped(readFileSync(path)))],
  ['a cut end', (path) => writeFileSync(path, readFileSync(path).subarray(0, -40))],
  ['zeros', (path) => writeFileSync(path, Buffer.alloc(statSync(path).size))],
  ['no bytes', (path) => writeFileSync(path, '')],
  ['no file', (path) => rmSync(path)],
]

function flipped(bytes: Buffer): Buffer {
  const at = bytes.length - 30
  bytes[at] = (bytes[at] as number) ^ 1
  return bytes
}

const sound = await deliver()

for (const [name, damage] of DAMAGES) {
  t.test(`content: ${name} in the parsed form of a received mail is an error [inbound.read]`, async (t) => {
    const { id, parsed } = await deliver()
    t.match(await read(id), { status: 200, json: { text: /^The text\./ } })
    damage(parsed)
    t.match(await read(id), { status: 503, json: { error: 'content_damaged' } })
    t.match(await read(`${id}/attachments/0`), { status: 503, json: { error: 'content_damaged' } })
    t.equal((await read(`${id}/raw`)).status, 200, 'the raw mail is another object')
    t.match(await read(sound.id), { status: 200, json: { text: /^The text\./ } }, 'other mail is served')
    const found = await service.call('POST /v1/inbound/search', { token, body: {} })
    t.equal(found.status, 200)
  })

  t.test(`content: ${name} in a raw mail is an error, or cuts the download [inbound.raw]`, async (t) => {
    const { id, raw } = await deliver()
    damage(raw)
    const answer = await read(`${id}/raw`).catch(() => null)
    if (answer !== null) t.match(answer, { status: 503, json: { error: 'content_damaged' } })
    else t.pass('the download ended before its length')
    t.match(await read(id), { status: 200, json: { text: /^The text\./ } })
  })
}

t.test('doctor names damaged objects [operator.health]', async (t) => {
  const { operatorToken } = service.firstRun
  const { json } = await service.operate('GET /v1/operator/health', { token: operatorToken })
  t.match(
    json.findings.find((one: { name: string }) => one.name === 'content'),
    { status: 'failed', message: /\d+ objects in files were damaged/, fix: /backup/ },
  )
})
