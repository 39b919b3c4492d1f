/**
 * domain-lanes - performs the work for sending domains: lookups of their records, and mail to administrators
 *
 * Both lanes are narrow, so that a thousand domains due at once wait for each other and do not delay acceptance.
 * Notices are sent by the mail threads like all mail, signed by the service if it has a key.
 *
 * Spec domain.schedule, domain.notice
 */

import type { LaneType, PerformedClaim } from '../../cluster/behaviour.ts'
import { CHECK_LANE, type CheckJob, checkOutcome, prepareCheck } from '../actors/domain/domain-check.ts'
import {
  type DomainNoticeJob,
  type LinkJob,
  type NoticeJob,
  type NoticeOutcome,
  noticeOutcome,
  prepareNotice,
  type UserNoticeJob,
} from '../actors/domain/notice.ts'
import type { CheckDomainJob, DomainFound } from '../dns/check-domain.ts'
import type { ComposeInput } from '../mail/compose/compose.ts'
import { composeLinkMail } from '../mail/compose/link-mail.ts'
import { composeNotice } from '../mail/compose/notice.ts'
import { composeUserNotice } from '../mail/compose/user-notice.ts'
import { maskAddress } from '../mail/reply.ts'
import { serviceReturnPathHost } from '../mail/return-path.ts'
import type { Log } from '../process/log.ts'
import { NOTICE_LANE } from '../state/dashboard/places.ts'
import { type DomainCheck, WARNING_MS } from '../state/domain.ts'
import { makeDomainRecords } from '../views/domain.ts'
import type { Dispatch } from './dispatch.ts'
import type { SigningKey } from './thread/sign.ts'

/** Maximum number of look-ups at once in a process, and of notices. */
const CHECKS_MAX = 16
const NOTICES_MAX = 8
/** A look-up ends within 8 s, an attempt to transmit within its own time limits. */
const CHECK_HOLD_MS = 60_000
const NOTICE_HOLD_MS = 25 * 60_000

export interface DomainLaneDeps {
  readonly check: (job: CheckDomainJob) => Promise<DomainFound>
  readonly dispatch: Dispatch
  readonly serviceDomain: string
  readonly serviceKey: SigningKey | null
  /** The URL of a link into the dashboard. */
  readonly linkUrl: (linkId: string) => string
  readonly log: Pick<Log, 'warn'>
}

/** The two lanes with their performers. */
export function makeDomainLanes(deps: DomainLaneDeps): LaneType[] {
  const check: LaneType<CheckJob, DomainCheck> = {
    prefix: CHECK_LANE,
    holdMs: CHECK_HOLD_MS,
    claimsStand: false,
    prepare: prepareCheck,
    outcome: checkOutcome,
    ...makeRoom(CHECKS_MAX, async (job) => {
      // The values found instead are foreign texts: they are not stored with outcomes.
      const { instead: _, ...found } = await deps.check(makeDomainRecords(job, deps.serviceDomain))
      return { ...found, selector: job.selector }
    }),
  }
  const notice: LaneType<NoticeJob, NoticeOutcome> = {
    prefix: NOTICE_LANE,
    holdMs: NOTICE_HOLD_MS,
    claimsStand: false,
    prepare: prepareNotice,
    outcome: noticeOutcome,
    ...makeRoom(NOTICES_MAX, (job, { signal, pass }) => {
      if (job.kind === 'link') return mailLink(deps, job, { signal, pass })
      return job.kind === 'me' ? tellUser(deps, job, { signal, pass }) : tell(deps, job, { signal, pass })
    }),
  }
  return [check as LaneType, notice as LaneType]
}

type Perform<Job, Outcome> = LaneType<Job, Outcome>['perform']

/** A performer for up to `max` jobs at once. */
function makeRoom<Job, Outcome>(
  max: number,
  run: Perform<Job, Outcome>,
): Pick<LaneType<Job, Outcome>, 'room' | 'perform'> {
  let underWay = 0
  return {
    room: () => max - underWay,
    async perform(job, claim) {
      underWay += 1
      return run(job, claim).finally(() => {
        underWay -= 1
      })
    },
  }
}

/** Notifies one administrator, or the operator if there is none. */
async function tell(
  deps: DomainLaneDeps,
  job: DomainNoticeJob,
  claim: Pick<PerformedClaim, 'signal' | 'pass'>,
): Promise<NoticeOutcome> {
  const { kind, domain, atMs, address } = job
  const named = { kind, domain: domain.domain, domainId: domain.domainId, accountId: domain.accountId }
  if (address === null) {
    deps.log.warn(named, 'The records of a sending domain are missing, and its account has no administrator to notify')
    return { result: 'delivered', response: null }
  }
  const { serviceDomain } = deps
  const records = makeDomainRecords(domain, serviceDomain)
  const missing = [
    ...(domain.returnPath.verified ? [] : [records.returnPath]),
    ...(domain.dkim.verified ? [] : [records.dkim]),
  ]
  const { domainId, domain: name } = domain
  const endsAtMs = atMs + WARNING_MS
  const message = composeNotice({ kind, domain: name, domainId, atMs, endsAtMs, missing, address, serviceDomain })
  const sent = await send(deps, { address, message }, claim)
  if (sent.result === 'bounced')
    deps.log.warn({ ...named, code: sent.code }, 'A notice to an administrator was rejected')
  return outcomeOf(sent, address)
}

/** Mails a link to whom it is for. */
async function mailLink(
  deps: DomainLaneDeps,
  { linkId, link, accountName }: LinkJob,
  claim: Pick<PerformedClaim, 'signal' | 'pass'>,
): Promise<NoticeOutcome> {
  const { purpose, madeAtMs: atMs, endsAtMs } = link
  const address = link.address ?? ''
  const { serviceDomain } = deps
  const about = { purpose, name: `link-${linkId}`, atMs, endsAtMs, address, accountName, serviceDomain }
  const message = composeLinkMail({ ...about, url: deps.linkUrl(linkId) })
  const sent = await send(deps, { address, message }, claim)
  if (sent.result === 'bounced') deps.log.warn({ purpose, code: sent.code }, 'The mail with a link was rejected')
  return outcomeOf(sent, address)
}

/** Notifies a user of a change to their sign-in. */
async function tellUser(
  deps: DomainLaneDeps,
  { what, userId, atMs, address }: UserNoticeJob,
  claim: Pick<PerformedClaim, 'signal' | 'pass'>,
): Promise<NoticeOutcome> {
  const { serviceDomain } = deps
  const message = composeUserNotice({ what, name: `me-${what}-${userId}-${atMs}`, atMs, address, serviceDomain })
  const sent = await send(deps, { address, message }, claim)
  if (sent.result === 'bounced') deps.log.warn({ userId, what, code: sent.code }, 'A notice to a user was rejected')
  return outcomeOf(sent, address)
}

/** Sends a message of the service itself. */
function send(
  { dispatch, serviceDomain, serviceKey }: DomainLaneDeps,
  { address, message }: { readonly address: string; readonly message: ComposeInput },
  claim: Pick<PerformedClaim, 'signal' | 'pass'>,
) {
  const transmit = {
    mailFrom: `postmaster@${serviceReturnPathHost(serviceDomain)}`,
    keys: serviceKey === null ? [] : [serviceKey],
    copies: 1,
  }
  const destination = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
  const order = { address, destination, bytes: 0, ...claim }
  return dispatch.send(order, async () => ({ message, transmit }))
}

function outcomeOf({ result, response }: Awaited<ReturnType<Dispatch['send']>>, address: string): NoticeOutcome {
  // A notice that was not sent is repeated by the schedule, like a deferred one.
  const told = result === 'returned' ? 'deferred' : result
  return { result: told, response: response === null ? null : maskAddress(response, address) }
}
