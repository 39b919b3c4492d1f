/** bounce-mail - which events are reported, how many in an hour, and the names of reports. */
import t from 'tap'
import {
  countBounceMail,
  formatReportItem,
  isReported,
  NOTIFY,
  parseReportItem,
} from '../../../src/state/message/bounce-mail.ts'
import type { StatusEvent } from '../../../src/state/message/status.ts'

const HOUR_MS = 3_600_000
const ACCEPTED_MS = 1000
const at = (event: 'delivered' | 'deferred', ms: number): StatusEvent => ({
  ...{ event, occurredAtMs: ACCEPTED_MS + ms, code: 250, response: null },
})
const bounced: StatusEvent = {
  ...{ event: 'bounced', occurredAtMs: ACCEPTED_MS, code: 550, response: null },
  ...{ classification: null, hard: true, expired: false, status: 'bounced' },
}
const early = at('deferred', 4 * HOUR_MS - 1)
const late = at('deferred', 4 * HOUR_MS)

const ROWS: readonly [what: string, event: StatusEvent, before: readonly StatusEvent[], wanted: number][] = [
  ['delivered', at('delivered', 0), [], NOTIFY.success],
  ['bounced', bounced, [], NOTIFY.failure],
  ['bounced after delivered', bounced, [at('delivered', 0)], NOTIFY.failure],
  ['deferred within four hours', early, [], 0],
  ['deferred after four hours', late, [early, early], NOTIFY.delay],
  ['deferred again', late, [early, late], 0],
  ['complaint', { event: 'spam_complaint', occurredAtMs: ACCEPTED_MS, feedbackType: null }, [], 0],
  ['cancelled', { event: 'cancelled', occurredAtMs: ACCEPTED_MS }, [], 0],
]
for (const [what, event, before, wanted] of ROWS)
  t.test(`bounce-mail: ${what} [submission.reports]`, async (t) => {
    for (let notify = 0; notify < 16; notify += 1)
      t.equal(isReported(event, { notify, before, acceptedAtMs: ACCEPTED_MS }), (notify & wanted) !== 0, `${notify}`)
  })

t.test('bounce-mail: at most 100 an hour, by the clock that goes forward [submission.reports]', async (t) => {
  let count = countBounceMail(undefined, 5 * HOUR_MS)
  for (let n = 1; n < 100; n += 1) count = countBounceMail(count ?? undefined, 5 * HOUR_MS + n)
  t.same(count, [5, 100])
  t.equal(countBounceMail(count ?? undefined, 6 * HOUR_MS - 1), null)
  t.equal(countBounceMail(count ?? undefined, 4 * HOUR_MS), null, 'a clock that goes back gives no room')
  t.same(countBounceMail(count ?? undefined, 6 * HOUR_MS), [6, 1])
})

t.test('bounce-mail: the name of a report [submission.reports]', async (t) => {
  const attempt = '01a224e3d1f8700080003.01a224e3.01a224e3d1f8700080004.3.12a'
  const item = formatReportItem(attempt, 40, 1_800_000_000_000)
  const read = parseReportItem(item)
  t.match(read, { place: 40, atMs: 1_800_000_000_000, attempt: { recipient: 3, recipients: 12, hasAttachments: true } })
})
