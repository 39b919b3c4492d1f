/**
 * challenge - a token of a step is valid for this installation, its holder and its kind, and expires; recovery codes.
 */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { RECOVERY_CODES, SECOND_STEP_MINUTES } from '../../../schemas/limits.ts'
import { makeChallenge, parseChallenge } from '../../../src/dashboard/factor/challenge.ts'
import { makeRecoveryCodes, parseRecoveryCode } from '../../../src/dashboard/factor/recovery-code.ts'

const KEY = randomBytes(32)
const NOW_MS = Date.UTC(2026, 10, 23)
const END_MS = NOW_MS + SECOND_STEP_MINUTES * 60_000
const USER = '01938a00-0000-7000-8000-0000000000aa'

t.test('challenge: read for its holder, until it expires [session.factor]', (t) => {
  const { token, challenge } = makeChallenge(KEY, { kind: 'sign-in', userId: USER, holder: 'browser' }, NOW_MS)
  const of = { kinds: ['sign-in'], holder: 'browser', nowMs: END_MS - 1 } as const
  t.same(parseChallenge(KEY, token, of), challenge)
  t.notMatch(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString(), /"browser"/, 'the name is not in it')
  t.equal(parseChallenge(KEY, token, { ...of, nowMs: END_MS }), null)
  t.equal(parseChallenge(KEY, token, { ...of, holder: 'another' }), null)
  t.equal(parseChallenge(KEY, token, { ...of, holder: null }), null)
  t.equal(parseChallenge(KEY, token, { ...of, kinds: ['passkey', 'confirm'] }), null)
  t.equal(parseChallenge(randomBytes(32), token, of), null)
  t.end()
})

t.test('challenge: a changed one is not read, and nothing makes it throw [session.factor]', (t) => {
  const { token } = makeChallenge(KEY, { kind: 'passkey', userId: null, holder: 'browser' }, NOW_MS)
  const of = { kinds: ['passkey'], holder: 'browser', nowMs: NOW_MS } as const
  const at = fc.integer({ min: 0, max: token.length - 2 })
  fc.assert(
    fc.property(at, fc.constantFrom(...'Aa0_.-'), (place, sign) => {
      const changed = token.slice(0, place) + sign + token.slice(place + 1)
      return changed === token || parseChallenge(KEY, changed, of) === null
    }),
  )
  fc.assert(fc.property(fc.string({ maxLength: 200 }), (text) => parseChallenge(KEY, text, of) === null))
  t.end()
})

t.test('recovery-code: ten at once, all different, read however they are typed [session.factor]', (t) => {
  const codes = makeRecoveryCodes()
  t.equal(new Set(codes).size, RECOVERY_CODES)
  for (const code of codes) {
    t.match(code, /^[a-z2-7]{5}-[a-z2-7]{5}$/)
    const parsed = parseRecoveryCode(code)
    t.equal(parsed, code.replace('-', ''))
    t.equal(parseRecoveryCode(` ${code.toUpperCase().replace('-', ' ')} `), parsed)
  }
  for (const none of ['', '123456', 'abcde-fgh2', 'abcde-fgh01']) t.equal(parseRecoveryCode(none), null, none)
  t.end()
})
