/** bounce-mail - the bytes of a report, from a message whose fields are not as the standards want them. */
import t from 'tap'
import { composeBounceMail } from '../../../src/mail/compose/bounce-mail.ts'
import { normaliseSubmission } from '../../../src/sending/smtp-form.ts'
import { readSubmittedBody } from '../../../src/sending/submitted-body.ts'
import { readSubmittedHeader } from '../../../src/sending/submitted-header.ts'

/** The report about a message with some fields. */
function report(fields: string): string {
  const mail = `From: Shop <shop@acme.co>\r\nTo: ann@x.co\r\n${fields}\r\nThe secret text\r\n`
  const read = readSubmittedHeader(Buffer.from(mail))
  if (!read.ok) throw new Error(read.text)
  const { header } = read
  const body = readSubmittedBody({ edited: header.edited, isKeyed: false })
  const { from, subject, headers } = normaliseSubmission({
    ...{ header, body, recipients: ['ann@x.co'], streamId: null, reports: null },
  })
  const { raw } = composeBounceMail({
    ...{ reportId: '01a.0.0', action: 'failed', atMs: 1_800_000_000_000, response: '550 Grüße', code: 550 },
    ...{ expired: false, recipient: 'ann@x.co', hasOriginal: false, envid: null, ownMessageId: header.messageId },
    message: {
      ...{ messageId: '01a', acceptedAtMs: 1_800_000_000_000, from, subject, headers },
      ...{ to: [{ address: 'ann@x.co', name: null }], cc: [] },
    },
    ...{ serviceDomain: 'service.example', hostname: 'mail.service.example' },
  })
  return raw.toString('latin1')
}

t.test('bounce-mail: 7-bit lines, whatever the fields of the message are [submission.reports]', async (t) => {
  const rows: readonly [what: string, fields: string, kept: RegExp][] = [
    [
      '8-bit ids',
      'References: <größe@acme.co>\r\nIn-Reply-To: <größe@acme.co>\r\n',
      /^References: <gr\?\?e@acme\.co>\r$/m,
    ],
    ['ids in encoded words', 'References: =?utf-8?Q?=3C=E2=82=AC=40acme.co=3E?=\r\n', /^References: <\?@acme\.co>\r$/m],
    ['a hidden end of line', 'X-Own: a=?utf-8?Q?=0D=0AInjected=3A_1?=\r\n', /^X-Own: aInjected: 1\r$/m],
    ['an 8-bit text', 'Subject: Grüße\r\nX-Own: Grüße\r\n', /^X-Own: =\?UTF-8\?/m],
    ['a long text', `X-Own: ${'a'.repeat(900)}\r\n ${'é'.repeat(300)}\r\n`, /^X-Own: =\?UTF-8\?/m],
  ]
  for (const [what, fields, kept] of rows) {
    const text = report(fields)
    t.match(text, kept, what)
    t.notMatch(text, /[^\x00-\x7e]/, `${what}: 7-bit`)
    t.notMatch(text, /[^\r]\n|\r[^\n]|^Injected|secret/m, `${what}: whole lines, no content`)
    t.ok(
      text.split('\r\n').every((line) => line.length <= 998),
      `${what}: short lines`,
    )
  }
})
