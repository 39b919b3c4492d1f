/** object-name: the day in a name is after the last read of its content, which is swept after that. */
import t from 'tap'
import { newCmdId } from '../../cluster/cmd-id.ts'
import { SEND_AT_DAYS_MAX } from '../../schemas/limits.ts'
import { attachmentExpiresAtMs, contentExpiresAtMs } from '../../src/state/age.ts'
import { DAY_MS, HOUR_MS, msOfCivil } from '../../src/state/calendar.ts'
import { contentIdOf, isObjectName, lastPastDay, outgoingName, receivedName } from '../../src/state/object-name.ts'

const NOON = msOfCivil({ year: 2026, month: 11, day: 22 }) + 12 * HOUR_MS

const dayOf = (name: string): string => name.split('/')[2] ?? ''

t.test('object-name: shard, tree, day and leaf', async (t) => {
  const contentId = `${newCmdId(NOON, () => 0.5)}-0`
  const of = { contentId, test: false } as const
  t.equal(outgoingName(7, { ...of, part: 'body' }), `007/out/20261222/${contentId}.body`)
  t.equal(outgoingName(7, { ...of, part: 'files' }), `007/out/20261125/${contentId}.files`)
  t.equal(outgoingName(7, { ...of, part: 'body', test: true }), `007/out/20261129/${contentId}.body`)
  t.equal(receivedName(255, { id: 'Ab-_9', receivedAtMs: NOON }), '255/in/20261122/Ab-_9')
})

t.test('object-name: outgoing content is not swept while it may be read, and a day later it is', async (t) => {
  for (let ms = NOON; ms < NOON + DAY_MS; ms += 1_111_111) {
    const contentId = `${newCmdId(ms, () => 0.5)}-0`
    for (const test of [true, false]) {
      const cases = [
        ['body', contentExpiresAtMs(ms, test)],
        ['files', attachmentExpiresAtMs(ms, { sendAtMs: 0, test })],
      ] as const
      for (const [part, endsAtMs] of cases) {
        const day = dayOf(outgoingName(0, { contentId, part, test }))
        // Submitted up to a minute after its command's id was made.
        if (lastPastDay('out', endsAtMs + 60_000) >= day) t.fail(`${part} goes early: ${contentId}`)
        if (lastPastDay('out', endsAtMs + 2 * DAY_MS) < day) t.fail(`${part} stays: ${contentId}`)
      }
    }
  }
})

t.test(
  'object-name: attachments of a scheduled message stay for every time that it may be given [send.at]',
  async (t) => {
    for (let ms = NOON; ms < NOON + DAY_MS; ms += 1_111_111) {
      const contentId = contentIdOf(
        newCmdId(ms, () => 0.5),
        { place: 99, isScheduled: true },
      )
      const name = outgoingName(0, { contentId, part: 'files', test: false })
      t.ok(isObjectName(name))
      // Retries take 48 hours.
      const lastReadMs = ms + (SEND_AT_DAYS_MAX + 2) * DAY_MS
      if (lastPastDay('out', lastReadMs) >= dayOf(name)) t.fail(`files go early: ${name}`)
      if (lastPastDay('out', contentExpiresAtMs(ms, false) + 2 * DAY_MS) < dayOf(name)) t.fail(`files stay: ${name}`)
    }
  },
)

t.test('object-name: received content goes with its day once 31 have passed since', async (t) => {
  const name = receivedName(0, { id: 'a', receivedAtMs: NOON })
  t.ok(lastPastDay('in', NOON + 31 * DAY_MS) < dayOf(name), 'on its last day it is there')
  t.ok(lastPastDay('in', NOON + 32 * DAY_MS) >= dayOf(name))
})

t.test('object-name: nothing else is a name', async (t) => {
  for (const name of ['007/out/20261222/a.body', '000/in/20261122/Ab-_9']) t.ok(isObjectName(name), name)
  for (const name of [
    '',
    '.id',
    'tmp/a-1',
    '007/out/20261222/../x',
    '7/out/20261222/a',
    '007/out/2026/a',
    '007/x/20261222/a',
  ])
    t.notOk(isObjectName(name), name)
})
