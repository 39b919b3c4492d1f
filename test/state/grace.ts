/** grace - the table of effects of a domain's records on mail to its return path. */

import t from 'tap'
import { computeStanding, type DomainStanding } from '../../src/state/domain.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000
const VERIFIED = { verified: true, failingSinceMs: null, warningBeganAtMs: null }
const since = (hours: number) => NOW_MS - hours * HOUR_MS

const CASES: [name: string, domain: Parameters<typeof computeStanding>[0], standing: DomainStanding][] = [
  ['the service’s own', null, 'ok'],
  ['verified', VERIFIED, 'ok'],
  ['in its warning', { ...VERIFIED, failingSinceMs: since(1), warningBeganAtMs: since(1) }, 'missing'],
  ['unverified since', { ...VERIFIED, verified: false, warningBeganAtMs: since(71.9) }, 'missing'],
  ['for 72 hours', { ...VERIFIED, verified: false, warningBeganAtMs: since(72) }, 'gone'],
  ['never verified', { ...VERIFIED, verified: false }, 'missing'],
]
for (const [name, domain, standing] of CASES)
  t.test(`grace: ${name} -> ${standing} [bounce.grace]`, async (t) =>
    t.equal(computeStanding(domain, NOW_MS), standing),
  )
