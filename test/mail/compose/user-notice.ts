/** user-notice - the notice to a user about changes of their sign-in: all of them, and no link. */
import t from 'tap'
import { USER_NOTICES } from '../../../src/actors/dashboard/user-notice.ts'
import { composeUserNotice } from '../../../src/mail/compose/user-notice.ts'

const of = { name: 'x', atMs: Date.UTC(2026, 10, 24), address: 'ada@a.example', serviceDomain: 'service.example' }

t.test('user-notice: each contains the change and the time, without a link [session.notice]', (t) => {
  const texts = USER_NOTICES.map((what) => composeUserNotice({ ...of, what }))
  t.equal(new Set(texts.map(({ subject }) => subject)).size, USER_NOTICES.length)
  for (const { subject, text } of texts) {
    t.match(text, /It was at 2026-11-24 00:00 UTC\./)
    t.notMatch(text, /https?:|www\./, subject)
    t.ok(subject.length < 78, subject)
  }
  t.end()
})

t.test(
  "user-notice: of the operator's link it names the password, and the factors that went with it [session.notice]",
  (t) => {
    const [link, both] = (['operator-link', 'operator-link-factors'] as const).map((what) =>
      composeUserNotice({ ...of, what }),
    )
    for (const word of ['authenticator', 'passkeys', 'recovery codes']) {
      t.notMatch(link?.text, word)
      t.match(both?.text, word)
    }
    for (const one of [link, both]) t.match(one?.text, 'new password')
    t.match(both?.subject, 'second factors')
    t.end()
  },
)
