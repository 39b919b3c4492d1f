/**
 * grace - whether mail to the return path of a sending domain is taken, put off or refused.
 *
 * States of a domain as its return path sees it: `ok`; `missing`, its records went missing less than three days ago, or
 * were never found; `gone`, they did so before that. The return path of a removed domain names nothing: it is unknown.
 *
 * Spec bounce.grace
 */

import { GRACE_HOURS } from '../../schemas/limits.ts'
import { HOUR_MS } from '../state/calendar.ts'
import type { DomainState } from '../state/domain.ts'

export type DomainStanding = 'ok' | 'missing' | 'gone'

/** In: the domain, null for the service's own; now in milliseconds. */
export function standingOf(
  domain: Pick<DomainState, 'verified' | 'failingSinceMs' | 'warningBeganAtMs'> | null,
  nowMs: number,
): DomainStanding {
  if (domain === null) return 'ok'
  const sinceMs = domain.failingSinceMs ?? domain.warningBeganAtMs
  if (sinceMs === null) return domain.verified ? 'ok' : 'missing'
  return nowMs - sinceMs < GRACE_HOURS * HOUR_MS ? 'missing' : 'gone'
}
