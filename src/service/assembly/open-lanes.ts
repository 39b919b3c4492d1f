/** open-lanes - all lanes of a worker with their performers */

import type { LaneType } from '../../../cluster/behaviour.ts'
import type { Fence } from '../../../cluster/fence.ts'
import type { Worker } from '../../../cluster/worker/worker.ts'
import { makeUserLookLane } from '../../dashboard/user-look-lane.ts'
import { makeBounceMailLane } from '../../outbound/bounce-mail-lane.ts'
import { type DomainLaneDeps, makeDomainLanes } from '../../outbound/domain-lanes.ts'
import type { Outbound } from '../../outbound/open.ts'
import { makeLanes } from '../../outbound/perform.ts'
import { makeSigningKeyFinder } from '../../outbound/signing-keys.ts'
import type { SigningKey } from '../../outbound/thread/sign.ts'
import type { MailRoom } from '../../outbound/threads.ts'
import type { Config } from '../../process/config.ts'
import type { Metrics } from '../../process/metrics.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { Parsing } from '../../reception/open-parsing.ts'
import { dashboardBase, linkUrl } from '../../state/dashboard/link-token.ts'
import type { OutgoingStore } from '../../store/outgoing.ts'
import { makeReader } from '../../views/key.ts'
import type { WebhookRoom } from '../../webhooks/open.ts'
import { namesOf } from '../content-readers.ts'
import { openRotation, type RotationParts } from '../rotation/open.ts'
import type { LogStore } from '../segments.ts'

/** Parts of a process that perform. */
interface LaneParts extends RotationParts {
  readonly config: Config
  readonly store: Parameters<typeof makeReader>[0]
  readonly fence: Fence
  readonly outgoing: OutgoingStore
  readonly mailRoom: MailRoom
  readonly outbound: Outbound
  readonly metrics: Metrics
  readonly secrets: Secrets
  readonly serviceKey: SigningKey | null
  readonly lookups: { readonly check: DomainLaneDeps['check'] }
  readonly webhooks: WebhookRoom
  readonly parsing: Parsing
  readonly logStore: LogStore
}

/** Changes of lanes for tests. */
export interface LaneChanges {
  /** Performers of a lane in place of our own bounds; 0 holds its items. */
  readonly room?: ((lane: string) => number) | undefined
  /** Whether mail to other servers waits. */
  readonly isTestOnly?: boolean
  /** Time for commands that were sealed before a rotation, in place of our own. */
  readonly settlingMs?: number
}

interface LaneInput extends LaneChanges {
  /** The store's time. */
  readonly clock: { nowMs(): number }
  /** The worker, once there is one. */
  readonly worker: () => Worker
}

/** All lanes. */
export function openLanes(parts: LaneParts, input: LaneInput): LaneType[] {
  const { clock, worker, room, isTestOnly, settlingMs } = input
  const { config, store, fence, outgoing, mailRoom, outbound, metrics, secrets, serviceKey, log } = parts
  const { serviceDomain } = config
  const read = makeReader(store)
  const mailLanes = makeLanes({
    outgoing,
    read,
    run: mailRoom.run,
    runAtOnce: mailRoom.runAtOnce,
    metrics,
    dispatch: outbound.dispatch,
    isHeld: isTestOnly === true ? () => true : outbound.holds.has,
    attempted: outbound.attempted,
    ...namesOf(config, secrets),
    serviceDomain,
    findKey: makeSigningKeyFinder(read, secrets.ring),
    serviceKey,
    ...(room !== undefined && { room }),
  })
  const domainLanes = makeDomainLanes({
    check: parts.lookups.check,
    dispatch: outbound.dispatch,
    serviceDomain,
    serviceKey,
    linkUrl: (linkId) => linkUrl(dashboardBase(config.baseUrl), linkId, secrets.linkKey),
    log,
  })
  const bounceMails = makeBounceMailLane({
    dispatch: outbound.dispatch,
    metrics,
    serviceDomain,
    smtpHostname: config.smtpHostname,
    serviceKey,
    ...(isTestOnly === true ? { room: () => 0 } : room !== undefined && { room }),
  })
  const posts = parts.webhooks.lane({
    nowMs: () => clock.nowMs(),
    mayPost: (pass) => fence.look(pass),
    ...(room !== undefined && { room }),
  })
  const looks = makeUserLookLane({ read, loginHmac: secrets.loginHmac })
  const rotation = openRotation(parts, worker, settlingMs)
  return [
    ...mailLanes,
    ...domainLanes,
    bounceMails,
    posts,
    ...parts.parsing.lanes(room),
    ...parts.logStore.lanes(clock, room),
    looks,
    rotation,
  ]
}
