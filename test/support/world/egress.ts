/** egress - the sources of a dispatch in a test: a plan, counters in memory, and the calls of the failover */

import type { EgressBody } from '../../../schemas/operator/egress.ts'
import type { FailoverDeps } from '../../../src/outbound/egress/failover.ts'
import { type EgressPlan, makePlan } from '../../../src/outbound/egress/plan.ts'
import { Rests } from '../../../src/outbound/egress/rests.ts'
import { type UnitCounts, Units } from '../../../src/outbound/egress/units.ts'
import { makeEgressDocument } from '../../../src/routes/operator/egress-document.ts'
import type { EgressDocument } from '../../../src/state/egress.ts'

/** A document with its defaults. */
export function egressDocument(body: Partial<EgressBody>): EgressDocument {
  const made = makeEgressDocument({ sources: [], pools: [], rules: [], ...body })
  if ('issues' in made) throw new Error(JSON.stringify(made.issues))
  return made
}

/** The plan of a document, whose passwords are not sealed. */
export function egressPlan(body: Partial<EgressBody> = {}, hasRelay = false): EgressPlan {
  const passwords = new Map(body.sources?.map(({ name, password }) => [name, password ?? null]))
  return makePlan({ document: egressDocument(body), passwordOf: (source) => passwords.get(source) ?? null, hasRelay })
}

/** Counters in memory, like those of the store. */
export function countsInMemory() {
  const used = new Map<string, number>()
  const counts: UnitCounts = {
    async take({ window, source, site, want, ceiling }) {
      const key = `${window} ${source}|${site}`
      const before = used.get(key) ?? 0
      const granted = Math.max(0, Math.min(want, ceiling - before))
      used.set(key, before + granted)
      return { granted, used: before + granted }
    },
    async give({ window, source, site, units }) {
      const key = `${window} ${source}|${site}`
      used.set(key, (used.get(key) ?? 0) - units)
    },
  }
  return { counts, used }
}

/** The sources of a dispatch. */
export function egressOf(
  plan: EgressPlan,
  { nowMs = () => 0, counts = countsInMemory().counts }: { nowMs?: () => number; counts?: UnitCounts } = {},
) {
  const rested: { source: string; site: string; isBegun: boolean }[] = []
  const failover: FailoverDeps = {
    rests: new Rests(),
    units: new Units({ counts, nowMs, sharers: () => 1 }),
    nowMs,
    random: () => 0,
    rested: (source, site, rest) => void rested.push({ source, site, isBegun: rest !== null }),
    noted: () => undefined,
  }
  return { plan: () => plan, failover, isHere: () => true, rested }
}
