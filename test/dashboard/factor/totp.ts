/** totp - the vectors of RFC 6238 appendix B, drift, and that a step is good once. */
import t from 'tap'
import { findTotpStep, formatTotpSecret, totpCode, totpStepAt } from '../../../src/dashboard/factor/totp.ts'

const SECRET = Buffer.from('12345678901234567890')
/** RFC 6238 appendix B, SHA-1: seconds, and the last six of its eight digits. */
const VECTORS = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
] as const

t.test('totp: the codes of the RFC [session.factor]', (t) => {
  for (const [atS, code] of VECTORS) t.equal(totpCode(SECRET, totpStepAt(atS * 1000)), code)
  t.end()
})

t.test('totp: a step of drift either way, no more, and no used one [session.factor]', (t) => {
  const nowMs = 1_111_111_111_000
  const now = totpStepAt(nowMs)
  const find = (step: number, usedStep = 0) => findTotpStep(SECRET, totpCode(SECRET, step), { nowMs, usedStep })
  t.same(
    [-2, -1, 0, 1, 2].map((drift) => find(now + drift)),
    [null, now - 1, now, now + 1, null],
  )
  t.equal(find(now, now), null, 'used')
  t.equal(find(now - 1, now), null, 'before one that was used')
  t.equal(find(now + 1, now), now + 1)
  for (const code of ['', '12345', '1234567', 'abcdef', '１２３４５６', '12345６'])
    t.equal(findTotpStep(SECRET, code, { nowMs, usedStep: 0 }), null, code)
  t.end()
})

t.test('totp: the URI that authenticators read [session.factor]', (t) => {
  const { secret, url } = formatTotpSecret(SECRET, { issuer: 'Sendwright a.example', name: 'ada@a.example' })
  t.equal(secret, 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  const parsed = new URL(url)
  t.equal(`${parsed.protocol}//${parsed.host}`, 'otpauth://totp')
  t.equal(decodeURIComponent(parsed.pathname), '/Sendwright a.example:ada@a.example')
  t.same(Object.fromEntries(parsed.searchParams), {
    secret,
    issuer: 'Sendwright a.example',
    algorithm: 'SHA1',
    digits: '6',
    period: '30',
  })
  t.notMatch(url, /[+ ]/)
  t.end()
})
