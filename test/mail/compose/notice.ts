/** notice - its contents, and that it is a valid message. */

import { simpleParser } from 'mailparser'
import t from 'tap'
import { composeMessage } from '../../../src/mail/compose/compose.ts'
import { composeNotice, type NoticeInput } from '../../../src/mail/compose/notice.ts'

const INPUT: NoticeInput = {
  kind: 'warning',
  domain: 'acme.example',
  domainId: '018f0000-0000-7000-8000-000000000001',
  atMs: Date.UTC(2026, 0, 31, 12, 34, 56),
  endsAtMs: Date.UTC(2026, 1, 1, 12, 34, 56),
  missing: [{ type: 'CNAME', host: 'sw-bounce.acme.example', value: 'abc.rp.svc.test' }],
  address: 'ada@acme.example',
  serviceDomain: 'svc.test',
}

t.test('notice: a warning contains what is missing and the deadline [domain.notice]', async (t) => {
  const built = composeMessage(composeNotice(INPUT)).toString()
  t.match(built, /^From: Sendwright <postmaster@svc\.test>\r$/m)
  t.match(built, /^To: ada@acme\.example\r$/m)
  t.match(built, /^Auto-Submitted: auto-generated\r$/m)
  t.match(built, /^Subject: DNS records of acme\.example are missing\r$/m)
  const { text = '' } = await simpleParser(built)
  t.match(text, /On 2026-01-31 12:34 UTC .* acme\.example/)
  t.match(text, /by 2026-02-01 12:34 UTC/)
  t.match(text, /Type: {2}CNAME\n {2}Name: {2}sw-bounce\.acme\.example\n {2}Value: abc\.rp\.svc\.test\n/)
  t.same(composeNotice(INPUT), composeNotice({ ...INPUT }), 'the same again')
})

t.test('notice: an end says that mail is refused, and does not ask for found records [domain.notice]', async (t) => {
  const built = composeMessage(composeNotice({ ...INPUT, kind: 'ended', missing: [] })).toString()
  t.match(built, /^Subject: acme\.example can no longer send mail\r$/m)
  const { text = '' } = await simpleParser(built)
  t.match(text, /Since 2026-01-31 12:34 UTC/)
  t.notMatch(text, /Type:/)
})
