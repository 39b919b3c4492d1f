/**
 * Mutated mails over real SMTP into a running service: each one answered with 250 is stored, byte for byte, parsed,
 * shown as the contract allows and announced. None ends the service. `FUZZ_MAILS` asks for more.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { makeMutator } from '../../support/clients/mime-mutate.ts'
import { until } from '../../support/machine/until.ts'
import { makeCorpus } from '../../support/peers/mime-corpus.ts'
import { openDialog, type SmtpDialog } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { startTestService } from '../../support/service/service.ts'

const SEED = Number(process.env.SEED ?? 21)
const MAILS = Number(process.env.FUZZ_MAILS ?? 200)
const SENDERS = 8
const PAGE = 100
const WAIT_MS = 120_000

const zone = await startZone()
const service = await startTestService({ CONTENT_STORE: 'file', DNS_SERVERS: zone.server })
t.teardown(async () => {
  await service.stop()
  await zone.close()
})
const { account, liveServer, operatorToken } = service.firstRun
const { token } = liveServer
const body = { inboundPerMinuteLimit: 1_000_000 }
await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, { token: operatorToken, body })
const stream = (await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Mail' } })).json

/** Lines of SMTP (RFC 5321 4.5.2): a dot at the beginning of a line is doubled, and a line ends only in CRLF. */
function stuffed(raw: Buffer): Buffer {
  return Buffer.from(raw.toString('latin1').replace(/(^|\r\n)\./g, '$1..'), 'latin1')
}

async function connect(): Promise<SmtpDialog> {
  const dialog = await openDialog(service.config.mxPort)
  await dialog.say('EHLO client.example')
  return dialog
}

t.test(`fuzz: ${MAILS} mutated mails come in (seed ${SEED}) [inbound.receive] [inbound.parse]`, async (t) => {
  const corpus = makeCorpus(SEED, 200).map(({ raw }) => raw)
  const mutate = makeMutator(SEED)
  const sent = new Map<string, string>()
  const refused: string[] = []
  let begun = 0
  const work = async (): Promise<void> => {
    let dialog = await connect()
    while (begun < MAILS) {
      begun += 1
      // A mail over SMTP ends with its last line.
      const raw = Buffer.concat([mutate(corpus[begun % corpus.length] as Buffer), Buffer.from('\r\n')])
      await dialog.say('MAIL FROM:<sender@example.net>')
      await dialog.say(`RCPT TO:<${stream.inboundAddress}>`)
      await dialog.say('DATA')
      dialog.write(stuffed(raw))
      const reply = await dialog.say('.')
      const id = /^250 2\.0\.0 accepted (\S+)/.exec(reply)?.[1]
      if (id === undefined) refused.push(`${reply}: ${raw.toString('base64')}`)
      else sent.set(id, createHash('sha256').update(raw).digest('hex'))
      if (id !== undefined) continue
      dialog.end()
      dialog = await connect()
    }
    dialog.end()
  }
  await Promise.all(Array.from({ length: SENDERS }, work))
  t.same(refused.slice(0, 3), [])
  t.equal(sent.size, MAILS)
  const isParsed = async (id: string): Promise<boolean> => {
    // The call checks each answer against its schema.
    const { json } = await service.call(`GET /v1/inbound/${id}`, { token })
    return json.authentication.checkedAt !== null || json.parseIssue !== null
  }
  const issues = new Map<string | null, number>()
  const wrong: string[] = []
  for (const [id, hash] of sent) {
    await until(() => isParsed(id), WAIT_MS)
    const { json } = await service.call(`GET /v1/inbound/${id}`, { token })
    issues.set(json.parseIssue, (issues.get(json.parseIssue) ?? 0) + 1)
    const base = `http://127.0.0.1:${service.config.httpPort}/v1/inbound/${id}`
    const headers = { authorization: `Bearer ${token}` }
    const raw = Buffer.from(await (await fetch(`${base}/raw`, { headers })).arrayBuffer())
    if (createHash('sha256').update(raw).digest('hex') !== hash) wrong.push(`${id} is another one`)
    for (const { position, size } of json.attachments) {
      const file = await fetch(`${base}/attachments/${position}`, { headers })
      const bytes = Buffer.from(await file.arrayBuffer())
      if (file.status !== 200 || bytes.length !== size) wrong.push(`${id}/${position}: ${bytes.length} of ${size}`)
    }
  }
  t.same(wrong, [])
  t.ok(issues.size > 4, JSON.stringify([...issues]))
  t.notOk(issues.has('parser_error') || issues.has('parse_timeout'), JSON.stringify([...issues]))
  const found = new Set<string>()
  for (let after: string | null = ''; after !== null; ) {
    const page = { limit: PAGE, ...(after !== '' && { after }) }
    const { json } = await service.call('POST /v1/inbound/search', { token, body: page })
    for (const one of json.messages) found.add(one.inboundMessageId)
    after = json.next
  }
  t.equal(found.size, MAILS, 'the search finds each of them once')
})
