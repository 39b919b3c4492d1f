/**
 * perform - the performers of webhooks: room, the event's body, its signature, the post, the outcome
 *
 * States of an attempt: event read -> signed -> posted -> reported. While it is under way, the event of the delivery
 * that will probably be next is read ahead. Guarantees: a webhook has one attempt in flight in this process; webhooks
 * whose last attempt failed use at most three quarters of the places, and together with those not attempted yet seven
 * eighths, so that hanging receivers do not delay the others; a process that cannot prove that the others still count
 * it as alive posts nothing.
 *
 * Spec webhook.attempt, webhook.fair, webhook.signature
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { LaneType } from '../../cluster/behaviour.ts'
import type { FenceState, Pass } from '../../cluster/fence.ts'
import { msOf } from '../../cluster/id.ts'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import { type PostOutcome, posted } from '../actors/webhook/posted.ts'
import { type PostJob, preparePost } from '../actors/webhook/prepare-post.ts'
import type { Metrics } from '../process/metrics.ts'
import { POST_LANE, parseDeliveryItem } from '../state/webhook/item.ts'
import { formatEvent } from '../views/format/event.ts'
import { readEventSource } from '../views/format/source.ts'
import type { Reader } from '../views/key.ts'
import type { EventReader } from '../views/message/event.ts'
import type { Poster } from './post.ts'
import type { RawEmails } from './raw-email.ts'
import type { WebhookSecrets } from './secrets.ts'
import { eventHeaders } from './sign-event.ts'
import type { Standing } from './webhook-stats.ts'

/** Attempts in flight at once, each of which is a connection. */
const UNDER_WAY_MAX = 2_048
const FAILING_UNDER_WAY_MAX = 1_536
/** Maximum for webhooks that have not answered here yet, failing ones included. */
const UNPROVEN_UNDER_WAY_MAX = 1_792
/** Maximum number of webhooks whose last result is cached. */
const KNOWN_MAX = 50_000
/** How long the claim of a dead process lasts. */
const HOLD_MS = 15_000
/** With the ten seconds of a post less than the claim. */
const HELD_MS_MAX = 3_000
const HELD_STEP_MS = 50
/** The whole shutdown has ten seconds; a receiver that has not answered by then gets the event again. */
const STOP_MS = 5_000

export interface PostDeps {
  readonly read: Reader
  readonly readEvent: EventReader
  /** Opened with the first attempt. */
  readonly openPoster: () => Promise<Poster>
  readonly secrets: WebhookSecrets
  readonly rawEmails: RawEmails
  readonly metrics: Metrics
  readonly standings: Standings
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** Whether this process still owns its work. */
  readonly mayPost: (pass: Pass) => FenceState
  /** In place of our own bounds; 0 holds a lane's items. */
  readonly room?: (lane: string) => number
}

/** The family of the lanes of webhooks. */
export function makePostLane(deps: PostDeps): LaneType {
  const { standings } = deps
  const underWay = new Set<string>()
  const room = (lane: string): number => {
    if (deps.room !== undefined) return Math.min(deps.room(lane), underWay.has(lane) ? 0 : 1)
    if (underWay.has(lane) || underWay.size >= UNDER_WAY_MAX) return 0
    return standings.hasRoom(lane) ? 1 : 0
  }
  const perform: LaneType<PostJob, PostOutcome>['perform'] = async (
    job,
    { lane, attempt, signal, following, pass },
  ) => {
    const standing = standings.begin(lane)
    underWay.add(lane)
    try {
      const number = job.attemptsBefore + attempt
      const isProven = standing === 'answering'
      const outcome = await attemptPost(deps, job, {
        attempt: number,
        signal,
        isProven,
        following: following ?? null,
        pass,
      })
      standings.note(lane, outcome.result === 'delivered' ? 'answering' : 'failing')
      deps.metrics.posted(outcome.error?.replace(/^http_(\d)\d\d$/, 'http_$1xx').replace(/:.*/, '') ?? 'delivered')
      return outcome
    } finally {
      underWay.delete(lane)
      standings.end(standing)
    }
  }
  return {
    prefix: POST_LANE,
    holdMs: HOLD_MS,
    claimsStand: true,
    serial: true,
    stopMs: STOP_MS,
    prepare: preparePost,
    outcome: posted,
    room,
    perform,
  } as LaneType
}

/** How webhooks fared here at their last attempt, and how many of each kind are being attempted. */
export class Standings {
  private readonly known = new Map<string, Standing>()
  private readonly underWay = { answering: 0, failing: 0, unknown: 0 }

  of(lane: string): Standing {
    return this.known.get(lane) ?? 'unknown'
  }

  hasRoom(lane: string): boolean {
    const { failing, unknown } = this.underWay
    const standing = this.of(lane)
    if (standing === 'failing' && failing >= FAILING_UNDER_WAY_MAX) return false
    return standing === 'answering' || failing + unknown < UNPROVEN_UNDER_WAY_MAX
  }

  begin(lane: string): Standing {
    const standing = this.of(lane)
    this.underWay[standing] += 1
    return standing
  }

  end(standing: Standing): void {
    this.underWay[standing] -= 1
  }

  note(lane: string, standing: Standing): void {
    // A Map is in order of insertion, so the webhook attempted longest ago is evicted.
    this.known.delete(lane)
    if (this.known.size >= KNOWN_MAX) this.known.delete(this.known.keys().next().value as string)
    this.known.set(lane, standing)
  }
}

interface AttemptInput {
  readonly attempt: number
  readonly signal: AbortSignal
  readonly isProven: boolean
  readonly following: string | null
  readonly pass: Pass
}

/** Too many large mails are being posted. */
const NO_ROOM: PostOutcome = { result: 'failed', statusCode: null, error: 'timeout', final: false }

async function attemptPost(deps: PostDeps, job: PostJob, input: AttemptInput): Promise<PostOutcome> {
  const { webhook, delivery } = job
  const outcome = await deps.rawEmails.post({ webhook, reference: delivery.reference }, (raw) =>
    postEvent(deps, job, { ...input, raw }),
  )
  if (outcome === 'away') throw new NotPerformed('The store did not answer')
  return outcome === 'no_room' ? NO_ROOM : outcome
}

async function postEvent(
  { read, readEvent, openPoster, secrets, metrics, nowMs, mayPost }: PostDeps,
  { webhook, delivery }: PostJob,
  { attempt, signal, isProven, following, pass, raw }: AttemptInput & { readonly raw: string | null },
): Promise<PostOutcome> {
  const { deliveryId, reference } = delivery
  const createdAtMs = msOf(deliveryId)
  const [poster, event] = await Promise.all([openPoster(), readEvent(webhook, reference, createdAtMs)])
  if (event === undefined) throw new NotPerformed('The store did not answer')
  // The event's data has left the store before its time, and no later attempt would find it.
  if (event === null) return { result: 'failed', statusCode: null, error: 'connect_failed', final: true }
  const source = await readEventSource(read, webhook, { reference, event })
  if (source === undefined) throw new NotPerformed('The store did not answer')
  const { format = 'sendwright', sealedUser } = webhook
  const sourced = source === null || raw === null ? source : { ...source, raw }
  const body = JSON.stringify(formatEvent(format, event, { id: deliveryId, attempt, source: sourced }))
  const unixSeconds = Math.floor(nowMs() / 1000)
  const live = webhook.secrets.map(({ sealed }) => secrets.open(webhook.serverId, sealed)).reverse()
  const user = sealedUser === undefined ? {} : { user: secrets.open(webhook.serverId, sealedUser) }
  const signed = { deliveryId, event: reference.event, body, secrets: live, unixSeconds }
  const headers = eventHeaders({ ...signed, svix: format === 'resend', ...user })
  await untilOpen(() => mayPost(pass), signal)
  if (attempt === 1) metrics.firstPosted(nowMs() - createdAtMs)
  const posting = poster.post({ url: webhook.url, headers, body, fresh: attempt > 1, isProven }, signal)
  if (following !== null) readAhead(readEvent, webhook, following)
  return posting
}

/** Waits briefly while the store does not answer, because the result of a post could not be recorded. */
async function untilOpen(look: () => FenceState, signal: AbortSignal): Promise<void> {
  for (let heldMs = 0; look() === 'held' && heldMs < HELD_MS_MAX && !signal.aborted; heldMs += HELD_STEP_MS)
    await pause(HELD_STEP_MS)
  if (look() !== 'open' || signal.aborted) throw new NotPerformed('The store does not respond, or the claim was lost')
}

/** Makes the reader cache the event of a delivery; its attempt reads it again, and handles a failure then. */
function readAhead(readEvent: EventReader, owner: PostJob['webhook'], item: string): void {
  const { deliveryId, reference } = parseDeliveryItem(item)
  if (reference.kind === 'message') readEvent(owner, reference, msOf(deliveryId)).catch(() => undefined)
}
