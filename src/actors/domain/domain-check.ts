/**
 * domain-check - checks the records of sending domains, with a timer for each domain, a lane for the lookups, and the
 * effect of a lookup on the domain.
 *
 * The timer only triggers the lookup and sets itself again, so a lost lookup does not stop the schedule. The lookup is
 * an effect, and its result is recorded like that of the verify operation.
 *
 * Items: timer `check:<domainId>`; lane `check`, item = domainId.
 *
 * Spec domain.schedule, domain.verify, domain.states, domain.notice
 */

import type {
  CommandType,
  Context,
  Decision,
  Due,
  Facts,
  Op,
  OutcomeBody,
  PrepareBody,
  Staged,
  TimerBody,
} from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { activateOps, pairFact, unpackPair } from '../../state/dkim-pair.ts'
import {
  checkedDomain,
  type DomainCheck,
  type DomainState,
  decided,
  decidedOp,
  domainRef,
  isUndecided,
  sendingOps,
  settled,
  switchedKey,
  undecidedOp,
} from '../../state/domain.ts'
import { type DomainOrder, domainOfOrder, domainOrderEntities, refuseOrder } from '../authorization/domain.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { wakeDue } from '../broadcast/running.ts'
import { checkTimerItem, domainOfTimer, nextCheckDue } from './check-schedule.ts'
import { administratorsFact, decideNotice, noticeDues } from './notice.ts'

export const CHECK_LANE = 'check'

/** Input of a lookup. */
export type CheckJob = Pick<DomainState, 'domainId' | 'domain' | 'selector' | 'publicKey' | 'pending'>

/** Makes the lookup due, and sets the next time. */
export const checkTimer: CommandType<TimerBody, null> = {
  name: 'check timer',
  entities: ({ item }) => [domainRef(domainOfTimer(item))],
  counters: () => [],
  facts: () => [],
  decide({ item }, states, _facts, { nowMs }) {
    const domain = states.get<DomainState | null>(domainRef(domainOfTimer(item)))
    if (!isThere(domain)) return NOTHING
    const look = { lane: CHECK_LANE, item: domain.domainId, atMs: nowMs }
    return { kind: 'done', reply: null, due: [look, nextCheckDue(domain, nowMs)] }
  },
}

export const prepareCheck: CommandType<PrepareBody, CheckJob | null> = {
  name: 'prepare check',
  entities: ({ item }) => [domainRef(item)],
  counters: () => [],
  facts: () => [],
  decide({ item }, states) {
    const found = states.get<DomainState | null>(domainRef(item))
    if (!isThere(found)) return { kind: 'done', reply: null }
    const { domainId, domain, selector, publicKey, pending } = found
    return { kind: 'done', reply: { domainId, domain, selector, publicKey, pending } }
  },
}

export const checkOutcome: CommandType<OutcomeBody<DomainCheck>, null> = {
  name: 'check outcome',
  entities: ({ item }) => [domainRef(item)],
  counters: () => [],
  facts: () => [],
  decide({ item, outcome }, states, facts, context): Decision<null> {
    const domain = states.get<DomainState | null>(domainRef(item))
    if (!isThere(domain) || outcome === null) return NOTHING
    const recorded = recordFinding(domain, outcome, facts, context)
    return recorded.kind === 'need' ? recorded : { kind: 'done', reply: null, ...recorded.staged }
  },
}

/** A domain after a lookup, and the writes. */
interface Recorded {
  readonly kind: 'recorded'
  readonly domain: DomainState
  readonly staged: Staged
}

export interface RecordCheckBody extends DomainOrder {
  readonly check: DomainCheck
}

export interface RecordCheckReply {
  readonly kind: 'checked'
  readonly domain: DomainState
  readonly check: DomainCheck
}

export const recordCheck: CommandType<RecordCheckBody, RecordCheckReply | Refused> = {
  name: 'record-check',
  entities: domainOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const refusal = refuseOrder(body, states, { facts, context })
    if (refusal !== null) return refusal
    const domain = domainOfOrder(body, states)
    if (domain === null) return refuse('not_found')
    const recorded = recordFinding(domain, body.check, facts, context)
    if (recorded.kind === 'need') return recorded
    return { kind: 'done', reply: { kind: 'checked', domain: recorded.domain, check: body.check }, ...recorded.staged }
  },
}

/** The effect of a lookup on a domain. It first requests further data: the administrators, the pending key. */
export function recordFinding(
  domain: DomainState,
  check: DomainCheck,
  facts: Facts,
  context: Context,
): Recorded | (Decision<never> & { kind: 'need' }) {
  if (check.selector !== undefined && check.selector !== domain.selector) return unchanged(domain)
  const { shard, nowMs } = context
  const follows = check.pendingDkim === 'ok' ? domain.pending : null
  const place = { shard, accountId: domain.accountId, domain: domain.domain }
  const keyFact = pairFact(place, follows?.selector ?? '')
  if (follows !== null && !facts.has(keyFact)) return { kind: 'need', facts: [keyFact] }
  const pair = follows && unpackPair(follows.selector, facts.field(keyFact.key, follows.selector))
  // Above every id given out: mail accepted so far has the key of before, however often it is tried.
  const switched = pair && follows && switchedKey(follows, msOf(context.newId()) + 1)
  const found: DomainCheck = switched === null ? check : { ...check, dkim: 'ok' }
  const checked = checkedDomain({ ...domain, ...switched }, found, nowMs)
  if (checked === null) return isUndecided(found) ? undecided(domain, context) : unchanged(domain)
  const after = settled({ ...decided(domain), ...switched, ...checked })
  const notice = decideNotice(domain, after)
  const fact = administratorsFact(shard, domain.accountId)
  if (notice !== null && !facts.has(fact)) return { kind: 'need', facts: [fact] }
  const told = notice === null ? [] : noticeDues(notice, after, { administrators: facts.hash(fact.key), nowMs })
  const switchOps = switched && pair ? activateOps(place, pair, switched.keySinceMs) : []
  const staged = stageCheck({ domain, after, isSwitched: switchOps.length > 0, told }, context)
  return {
    kind: 'recorded',
    domain: after,
    staged: {
      ...staged,
      events: [{ ref: domainRef(domain.domainId), event: { type: 'checked', checked: { ...switched, ...checked } } }],
      ops: [...switchOps, ...staged.ops],
    },
  }
}

/** The writes and timers of a conclusive lookup. Takes the domain before and after, and the notices due. */
function stageCheck(
  {
    domain,
    after,
    isSwitched,
    told,
  }: { domain: DomainState; after: DomainState; isSwitched: boolean; told: readonly Due[] },
  { shard, nowMs }: Context,
): { ops: Op[]; due: Due[] } {
  const differs = isSwitched || after.verified !== domain.verified || after.failingSinceMs !== domain.failingSinceMs
  return {
    ops: [
      ...(differs ? sendingOps(shard, after) : []),
      ...(domain.undecidedSinceMs === undefined ? [] : [decidedOp(shard, domain.domainId)]),
    ],
    due: [
      ...(differs ? [nextCheckDue(after, nowMs), ...told] : []),
      // Broadcasts from it waited for this.
      ...(after.verified && !domain.verified ? [wakeDue(domain.accountId, nowMs)] : []),
    ],
  }
}

/** Records since when lookups are inconclusive. A verified domain is added to the operator's list. */
function undecided(domain: DomainState, { shard, nowMs }: Context): Recorded {
  if (domain.undecidedSinceMs !== undefined) return unchanged(domain)
  const { domainId, verified } = domain
  return {
    kind: 'recorded',
    domain: { ...domain, undecidedSinceMs: nowMs },
    staged: {
      events: [{ ref: domainRef(domainId), event: { type: 'undecided', undecidedSinceMs: nowMs } }],
      ops: verified ? [undecidedOp(shard, domainId, nowMs)] : [],
    },
  }
}

function unchanged(domain: DomainState): Recorded {
  return { kind: 'recorded', domain, staged: {} }
}

/** The pending lookups of a removed domain. */
export function endChecks(domainId: string): { readonly lane: string; readonly item: string }[] {
  return [
    { lane: TIMERS_LANE, item: checkTimerItem(domainId) },
    { lane: CHECK_LANE, item: domainId },
  ]
}

const NOTHING = { kind: 'done', reply: null } as const

function isThere(domain: DomainState | null): domain is DomainState {
  return domain !== null && domain.removedAtMs === null
}
