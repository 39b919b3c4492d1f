/**
 * resend - the official client of Resend against a running service, whose base URL and key are all that changes
 */

import { Resend } from 'resend'
import t from 'tap'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
t.teardown(() => service.stop())
const { testServer } = service.firstRun
const baseUrl = `http://127.0.0.1:${service.config.httpPort}`
process.env.RESEND_BASE_URL = baseUrl
const resend = new Resend(testServer.token)

/** The data of an answer of the client; a refusal fails the test. */
function dataOf<Data>({ data, error }: { data: Data | null; error: unknown }): Data {
  if (data === null) throw new Error(JSON.stringify(error))
  return data
}

async function untilEvent(id: string, event: string) {
  for (;;) {
    const email = dataOf(await resend.emails.get(id))
    if (email.last_event === event) return email
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

t.test('resend: a message is sent and read back', async (t) => {
  const { id } = dataOf(
    await resend.emails.send({
      from: 'Acme, Inc <hello@simulator.test>',
      to: ['Łukasz, the 1st <delivered@simulator.test>', 'delivered+b@simulator.test'],
      cc: 'delivered+c@simulator.test',
      bcc: ['delivered+d@simulator.test'],
      replyTo: ['"Help, now" <help@example.com>', 'other@example.com'],
      subject: 'Grüße',
      html: '<p>Hello</p>',
      text: 'Hello',
      headers: { 'X-Entity-Ref-ID': '7' },
      tags: [{ name: 'category', value: 'welcome' }],
    }),
  )
  const email = await untilEvent(id, 'delivered')
  t.match(email, {
    object: 'email',
    id,
    message_id: `<${id}@simulator.test>`,
    from: '"Acme, Inc" <hello@simulator.test>',
    to: ['"Łukasz, the 1st" <delivered@simulator.test>', 'delivered+b@simulator.test'],
    cc: ['delivered+c@simulator.test'],
    bcc: ['delivered+d@simulator.test'],
    reply_to: ['"Help, now" <help@example.com>', 'other@example.com'],
    subject: 'Grüße',
    html: '<p>Hello</p>',
    text: 'Hello',
    tags: [{ name: 'category', value: 'welcome' }],
    scheduled_at: null,
  })
})
