/** rounds - which verdicts are missing, when the next round is due, and that a round only adds. */
import fc from 'fast-check'
import t from 'tap'
import { ARC_VERDICTS, DKIM_VERDICTS, DMARC_POLICIES, SPF_VERDICTS } from '../../../schemas/inbound.ts'
import { type Authentication, UNCHECKED } from '../../../src/mail/authenticate/authentication.ts'
import { mergeRounds, missingParts, nextRoundAtMs } from '../../../src/mail/authenticate/rounds.ts'

const GOOD: Authentication = {
  spf: 'pass',
  spfHelo: 'none',
  dkim: 'pass',
  dmarc: 'pass',
  dmarcPolicy: null,
  arc: 'none',
}
const AWAY: Authentication = { ...GOOD, spf: 'temperror', dkim: 'temperror', dmarc: 'temperror' }
const MINUTE_MS = 60_000

/** verdicts, rounds so far, minutes after the first round at which the next is due */
const DUE: [Authentication, number, number | null][] = [
  [AWAY, 1, 1],
  [AWAY, 2, 5],
  [AWAY, 3, 10],
  [AWAY, 4, null],
  [GOOD, 1, null],
  [{ ...GOOD, arc: 'unchecked' }, 2, 5],
  [{ ...GOOD, spfHelo: 'temperror' }, 3, 10],
  [{ ...GOOD, dkim: 'permerror', arc: 'fail' }, 1, null],
]

t.test('rounds: when the next is due [inbound.authentication.rounds]', async (t) => {
  for (const [authentication, rounds, minutes] of DUE) {
    const dueAtMs = nextRoundAtMs(authentication, { firstAtMs: 7, rounds })
    t.equal(dueAtMs, minutes === null ? null : 7 + minutes * MINUTE_MS, `${JSON.stringify(authentication)} ${rounds}`)
  }
})

t.test('rounds: missing data is taken from the next round [inbound.authentication.rounds]', async (t) => {
  t.same(missingParts(AWAY), ['spf', 'dkim', 'dmarc'])
  t.same(missingParts(UNCHECKED), ['arc'])
  t.same(mergeRounds(AWAY, GOOD), GOOD)
  t.same(mergeRounds(GOOD, AWAY), GOOD, 'the DNS is away now, and was not')
  const failed: Authentication = { ...GOOD, spf: 'fail', dkim: 'none', dmarc: 'fail', dmarcPolicy: 'reject' }
  t.same(mergeRounds(AWAY, failed), failed)
  t.same(mergeRounds({ ...failed, spfHelo: 'temperror' }, GOOD), { ...failed, spfHelo: 'none' }, 'the policy stands')
})

t.test('rounds: a round adds, takes nothing back, and a second one with the same words changes nothing', async (t) => {
  const verdicts = fc.record({
    spf: fc.constantFrom(...SPF_VERDICTS),
    spfHelo: fc.constantFrom(...SPF_VERDICTS),
    dkim: fc.constantFrom(...DKIM_VERDICTS),
    dmarc: fc.constantFrom(...DKIM_VERDICTS),
    dmarcPolicy: fc.constantFrom(...DMARC_POLICIES, null),
    arc: fc.constantFrom(...ARC_VERDICTS),
  })
  fc.assert(
    fc.property(verdicts, verdicts, (before, after) => {
      const merged = mergeRounds(before, after)
      const missing = missingParts(before)
      const kept = (['spf', 'spfHelo', 'dkim', 'dmarc', 'arc'] as const).every(
        (part) => merged[part] === (missing.includes(part) ? after : before)[part],
      )
      const isSettled = missingParts(merged).every((part) => missing.includes(part))
      return kept && isSettled && JSON.stringify(mergeRounds(merged, after)) === JSON.stringify(merged)
    }),
  )
  t.pass()
})
