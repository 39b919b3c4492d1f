/**
 * failover - one attempt over the sources of a pool: by weight, and with the next source at once after a block
 *
 * A source that the site blocks, throttles or does not let connect has sent nothing, so another one may send the
 * message in the same attempt. No source is tried twice, and none after the time for waiting is over.
 *
 * Guarantees: a block ends a message only when no other source of the pool could have sent it; a source that rests at
 * another site is no reason to wait or to bounce; a unit of a ceiling is released only if nothing was sent. Without a
 * document no source rests, and a relay rests only while it is down: its replies are about one message.
 *
 * Spec egress.failover, egress.rest, egress.ceiling
 */

import { makeDeferred, makeReturned } from '../../mail/outcome.ts'
import { DELIVERY_AGE_MAX_MS } from '../../mail/retry.ts'
import { isThrottling } from '../../mail/site-pace.ts'
import type { StoredRest } from '../../state/egress.ts'
import type { MailOutcome } from '../thread/thread-job.ts'
import { type Pool, type PoolMember, pickMember, type Source } from './plan.ts'
import type { Rests } from './rests.ts'
import type { Ceilings, NoUnit, Unit, Units } from './units.ts'

/** Sources that one attempt tries. */
const SOURCES_MAX = 4
/**
 * The shortest and the longest wait of an attempt without a source, because the document may change. Waits are spread
 * over a fifth more.
 */
const WAIT_MS = 1000
const WAIT_MAX_MS = 5 * 60_000
const SPREAD = 0.2

export interface FailoverDeps {
  readonly rests: Rests
  readonly units: Units
  readonly nowMs: () => number
  readonly random: () => number
  /** A rest began, or (null) ended: the other processes need to know. */
  readonly rested: (source: string, site: string, rest: StoredRest | null) => void
  /** An attempt with a source ended. */
  readonly noted: (source: string, site: string, outcome: MailOutcome) => void
}

/** An attempt over a pool. */
export interface PoolAttempt {
  readonly pool: Pool
  /** False: there is no document, so no source rests. */
  readonly hasDocument: boolean
  readonly acceptedAtMs: number
  /** Whether the attempt may begin with another source. */
  readonly mayGoOn: () => boolean
  readonly siteOf: (source: Source) => string
  readonly ceilingsOf: (source: Source) => Ceilings
  /** Whether this machine has the address of a source. */
  readonly isHere: (source: Source) => boolean
  /** A reply without the recipient's address, which it may quote. */
  readonly mask: (text: string) => string
  /** Sends with a source. Takes the check that its unit is valid at the moment of sending. */
  readonly send: (source: Source, unit: UnitHolder) => Promise<MailOutcome>
}

/** The unit of an attempt, replaced if its hour ended while the attempt waited. */
export interface UnitHolder {
  /** Null: it may send now. */
  renew(): Promise<NoUnit | null>
}

type Choice = { readonly source: Source; readonly unit: Unit } | { readonly why: string; readonly untilMs: number }

/** Makes the attempt. */
export async function attemptByPool(deps: FailoverDeps, attempt: PoolAttempt): Promise<MailOutcome> {
  const here = attempt.pool.members.filter(({ source }) => attempt.isHere(source))
  if (here.length === 0) return waiting(deps, attempt, NOT_HERE)
  const tried = new Set<Source>()
  const unreached: Source[] = []
  let last: MailOutcome | null = null
  while (tried.size < SOURCES_MAX && (last === null || attempt.mayGoOn())) {
    const open = here.filter(({ source }) => !tried.has(source))
    const choice = await choose(deps, attempt, open)
    if ('why' in choice) {
      if (last !== null) break
      return waiting(deps, attempt, choice)
    }
    const { source } = choice
    tried.add(source)
    const outcome = await sendWith(deps, attempt, choice)
    if (!isElsewhere(outcome)) {
      if (outcome.contact === 'answered') restAll(deps, attempt, unreached)
      return outcome
    }
    if (isUnreached(outcome)) unreached.push(source)
    // A reply is worth more than a source that was not tried, or has no server in its family.
    if (last === null || last.result === 'returned' || !(outcome.result === 'returned' || hasNoAddress(outcome)))
      last = outcome
  }
  const isSpare = here.some(({ source }) => !tried.has(source) && source.fault === null)
  return closing(last as MailOutcome, isSpare)
}

/** A site that answers another source is up, so these sources cannot reach it. */
function restAll(deps: FailoverDeps, attempt: PoolAttempt, unreached: readonly Source[]): void {
  for (const source of unreached) rest(deps, attempt, source, 'it could not connect')
}

const NOT_HERE = { why: 'this machine has none of the addresses of the pool', untilMs: 0 }
const NOT_HERE_MS = 60_000

/** A block is final only if no other source could have sent the message. */
function closing(outcome: MailOutcome, isSpare: boolean): MailOutcome {
  return outcome.result === 'bounced' && isSpare ? { ...outcome, result: 'deferred', hard: false } : outcome
}

/** A source that may send now, with its unit; otherwise the reason and the time of the one that is free first. */
async function choose(deps: FailoverDeps, attempt: PoolAttempt, open: readonly PoolMember[]): Promise<Choice> {
  let able = open
  let first: { why: string; untilMs: number } | null = null
  const wait = (source: Source, { why, untilMs }: { why: string; untilMs: number }) => {
    able = able.filter((member) => member.source !== source)
    if (first === null || untilMs < first.untilMs) first = { why: `${source.name}: ${why}`, untilMs }
  }
  const nowMs = deps.nowMs()
  for (const { source } of open) {
    const standing = standingOf(deps, attempt, source)
    if (source.fault !== null) wait(source, { why: source.fault, untilMs: nowMs + NOT_HERE_MS })
    else if (standing !== null) wait(source, standing)
  }
  while (able.length > 0) {
    const { source } = pickMember(able, deps.random()) as PoolMember
    const unit = await deps.units.take(source.name, attempt.siteOf(source), attempt.ceilingsOf(source))
    // Another attempt may have become the one after the rest in the meantime.
    const standing = standingOf(deps, attempt, source)
    if ('why' in unit) wait(source, unit)
    else if (standing !== null) {
      unit.release()
      wait(source, standing)
    } else {
      deps.rests.begun(source.name, attempt.siteOf(source), deps.nowMs())
      return { source, unit }
    }
  }
  return first ?? { why: 'no source is left', untilMs: nowMs + WAIT_MS }
}

function standingOf({ rests, nowMs }: FailoverDeps, { hasDocument, siteOf }: PoolAttempt, source: Source) {
  return hasDocument ? rests.standing(source.name, siteOf(source), nowMs()) : null
}

async function sendWith(
  deps: FailoverDeps,
  attempt: PoolAttempt,
  choice: { readonly source: Source; readonly unit: Unit },
): Promise<MailOutcome> {
  const { source } = choice
  const site = attempt.siteOf(source)
  let { unit } = choice
  let isHeld = true
  const outcome = await attempt.send(source, {
    async renew() {
      if (unit.isCurrent()) return null
      // Of an hour and a day, one may go on.
      unit.release()
      isHeld = false
      const next = await deps.units.take(source.name, site, attempt.ceilingsOf(source))
      if ('why' in next) return next
      unit = next
      isHeld = true
      return null
    },
  })
  // After an interruption it is unknown whether the message was sent.
  const isUnsent = outcome.result === 'returned' ? outcome.phase !== 'abort' : outcome.contact !== 'answered'
  if (isHeld && isUnsent) unit.release()
  deps.noted(source.name, site, outcome)
  learn(deps, attempt, source, outcome)
  return outcome
}

/** Learns from an attempt whether its source is blocked. */
function learn(deps: FailoverDeps, attempt: PoolAttempt, source: Source, outcome: MailOutcome): void {
  if (!attempt.hasDocument) return
  const site = attempt.siteOf(source)
  const why = source.isRelay ? null : blockOf(outcome)
  if (why !== null) rest(deps, attempt, source, why)
  else if (source.isRelay && isUnreached(outcome)) rest(deps, attempt, source, outcome.response ?? 'it was not reached')
  else if (outcome.contact !== 'answered') deps.rests.unknown(source.name, site)
  else if (deps.rests.answered(source.name, site, deps.nowMs())) deps.rested(source.name, site, null)
}

function rest(deps: FailoverDeps, attempt: PoolAttempt, source: Source, why: string): void {
  const site = attempt.siteOf(source)
  const begun = deps.rests.blocked(source.name, site, { nowMs: deps.nowMs(), why: attempt.mask(why) })
  if (begun !== null) deps.rested(source.name, site, begun)
}

/** The reply by which a site blocks a source; null if it is none. A reply about the rate is none. */
export function blockOf({ result, code, classification, response }: MailOutcome): string | null {
  if (code === null || response === null || result === 'delivered' || result === 'returned') return null
  if (classification === 'SpamBlock') return response
  const isPolicy = code === 421 && classification === 'PolicyRelated' && !isThrottling({ code: 450, response })
  return isPolicy ? response : null
}

/** Whether nothing was sent, and another source may do better. */
function isElsewhere(outcome: MailOutcome): boolean {
  if (blockOf(outcome) !== null || outcome.code === 421 || isUnreached(outcome) || hasNoAddress(outcome)) return true
  return outcome.result === 'returned' && (outcome.phase === 'site' || outcome.isCeiling === true)
}

/** Whether the site has no server that the source can reach, such as none with an IPv6 address. */
function hasNoAddress({ phase, classification }: MailOutcome): boolean {
  return phase === 'dns' && classification === 'RoutingErrors'
}

function isUnreached({ result, contact, isShared }: MailOutcome): boolean {
  return result === 'deferred' && (contact === 'refused' || contact === 'silent' || isShared === true)
}

/** The outcome without a source: the attempt comes back, or is deferred once the message is too old to wait. */
function waiting(
  { nowMs, random }: FailoverDeps,
  { acceptedAtMs }: PoolAttempt,
  { why, untilMs }: { readonly why: string; readonly untilMs: number },
): MailOutcome {
  const leftMs = untilMs === 0 ? NOT_HERE_MS : Math.min(WAIT_MAX_MS, Math.max(WAIT_MS, untilMs - nowMs()))
  const text = `4.7.1 no source may send now: ${why}`.slice(0, 400)
  if (nowMs() - acceptedAtMs > DELIVERY_AGE_MAX_MS)
    return { ...makeDeferred('conn', 'PolicyRelated', text), sizeBytes: null, contact: 'none' }
  const afterMs = Math.round(leftMs * (1 + SPREAD * random()))
  return { ...makeReturned('compose', text), sizeBytes: null, afterMs }
}
