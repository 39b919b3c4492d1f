/** A Range header of a few kilobytes of blanks, on a received mail. Its pattern used to be cubic in them. */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'

const MAIL = `From: Ann <ann@example.net>\nSubject: Hello\n\n${'A line of text.\n'.repeat(100)}`
const ATTACKS = {
  blanks: `bytes=${'\t'.repeat(2_000)}-${'\t'.repeat(2_000)}-`,
  digits: `bytes=${'1'.repeat(4_000)}-x`,
  list: `bytes=${'0-0,'.repeat(1_000)}`,
}
const WAIT_MS = 30_000

const service = await startAttacked(t, { SERVICE_DOMAIN: 'service.example' })
const { token } = service.firstRun.liveServer
const { json: stream } = await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Mail' } })
await deliverMail(service.mxPort, stream.inboundAddress, MAIL)
const raw = await until(async () => {
  const { json } = await service.call('POST /v1/inbound/search', { token, body: {} })
  const [received] = json.messages
  return received === undefined ? null : `GET /v1/inbound/${received.inboundMessageId}/raw`
}, WAIT_MS)
await service.call(raw, { token })

for (const [name, range] of Object.entries(ATTACKS))
  t.test(`range: ${name} are as if nothing was asked`, async (t) => {
    const harm = await service.during(async () => {
      const answer = await service.call(raw, { token, headers: { range } })
      t.equal(answer.status, 200)
      t.match(answer.text, 'Subject: Hello')
    })
    isHarmless(t, harm)
  })
