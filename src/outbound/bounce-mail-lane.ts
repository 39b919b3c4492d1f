/**
 * bounce-mail-lane - sends the reports that SMTP clients asked for, with the null sender, signed by the service
 *
 * Spec submission.reports
 */

import type { LaneType, PerformedClaim } from '../../cluster/behaviour.ts'
import {
  type BounceMailJob,
  type BounceMailOutcome,
  bounceMailOutcome,
  prepareBounceMail,
} from '../actors/bounce-mail/bounce-mail.ts'
import { type BounceMailAction, composeBounceMail } from '../mail/compose/bounce-mail.ts'
import type { RawInput } from '../mail/compose/raw.ts'
import { maskAddress, unmaskAddress } from '../mail/reply.ts'
import type { Metrics } from '../process/metrics.ts'
import { BOUNCE_MAIL_LANE } from '../state/message/bounce-mail.ts'
import type { Dispatch } from './dispatch.ts'
import type { SigningKey } from './thread/sign.ts'

/** Reports under way in a process: they must not take the places of mail. */
const UNDER_WAY_MAX = 8
/** The reason if nothing was sent. */
const SUPPRESSED = 'The address is on the suppression list: it bounced or complained before'
const HOLD_MS = 25 * 60_000

export interface BounceMailDeps {
  readonly dispatch: Dispatch
  readonly metrics: Pick<Metrics, 'bounceMailed'>
  readonly serviceDomain: string
  readonly smtpHostname: string
  readonly serviceKey: SigningKey | null
  /** In place of our own bound; 0 holds the lane's items. */
  readonly room?: (lane: string) => number
}

/** The lane with its performer. */
export function makeBounceMailLane(deps: BounceMailDeps): LaneType {
  let underWay = 0
  const lane: LaneType<BounceMailJob, BounceMailOutcome> = {
    prefix: BOUNCE_MAIL_LANE,
    holdMs: HOLD_MS,
    claimsStand: false,
    prepare: prepareBounceMail,
    outcome: bounceMailOutcome,
    room: (name) => Math.min(UNDER_WAY_MAX - underWay, deps.room?.(name) ?? UNDER_WAY_MAX),
    async perform(job, claim) {
      underWay += 1
      try {
        return await send(deps, job, claim)
      } finally {
        underWay -= 1
      }
    },
  }
  return lane as LaneType
}

async function send(
  { dispatch, metrics, serviceKey, ...names }: BounceMailDeps,
  job: BounceMailJob,
  claim: Pick<PerformedClaim, 'signal' | 'pass'>,
): Promise<BounceMailOutcome> {
  const { address } = job.attempt.message.from
  const message = composeReport(job, names)
  const transmit = { mailFrom: '', keys: serviceKey === null ? [] : [serviceKey], copies: 1 }
  const destination = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
  const order = { address, destination, bytes: 0, ...claim }
  const { result, response } = await dispatch.send(order, async () => ({ message, transmit }))
  metrics.bounceMailed(result)
  // A report that was not sent is repeated by the schedule, like a deferred one.
  const told = result === 'returned' ? 'deferred' : result
  return { result: told, response: response === null ? null : maskAddress(response, address) }
}

function composeReport(
  { attempt, event, place, atMs, envid, hasOriginal }: BounceMailJob,
  names: Pick<BounceMailDeps, 'serviceDomain' | 'smtpHostname'>,
): RawInput {
  const { message, recipient } = attempt
  const reply = 'response' in event ? event : { code: null, response: null }
  return composeBounceMail({
    reportId: `${message.messageId}.${recipient.index}.${place}`,
    action: actionOf(event.event),
    atMs,
    code: reply.code,
    response: isSuppressed(event) ? SUPPRESSED : reply.response && unmaskAddress(reply.response, recipient.address),
    expired: event.event === 'bounced' && event.expired,
    recipient: recipient.address,
    hasOriginal,
    envid,
    message,
    ownMessageId: message.raw?.messageId ?? null,
    serviceDomain: names.serviceDomain,
    hostname: names.smtpHostname,
  })
}

function isSuppressed(event: BounceMailJob['event']): boolean {
  return event.event === 'bounced' && event.status === 'suppressed'
}

function actionOf(event: BounceMailJob['event']['event']): BounceMailAction {
  if (event === 'delivered') return 'relayed'
  return event === 'deferred' ? 'delayed' : 'failed'
}
