/**
 * look-lane - the performer of looks: the header of a received mail is read from the content store, for whether it
 * names who is being erased
 *
 * Each account has a lane. Guarantees: only a few mails at once, and only the first 4 MiB of each header are read. A
 * mail with a longer header counts as naming the person, because the rest is unknown. No address leaves this file.
 *
 * Spec erasure.received
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import { shardOf } from '../../cluster/id.ts'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import { type LookJob, type LookOutcome, lookOutcome, prepareLook } from '../actors/erasure/look.ts'
import { endOfHeader, namedInHeader } from '../mail/mime/named-in-header.ts'
import type { Secrets } from '../process/secrets.ts'
import { LOOK_LANE } from '../state/received/look-item.ts'
import { openRaw, type ReceivedStore } from '../store/received.ts'

const UNDER_WAY_MAX = 8
const HOLD_MS = 2 * 60_000
/** Bytes read at first, and at most. */
const FIRST_BYTES = 64 * 1024
const HEADER_BYTES_MAX = 4 * 1024 * 1024

export interface LookLaneDeps {
  readonly received: ReceivedStore
  readonly secrets: Pick<Secrets, 'addressHmac'>
  /** In place of our own bounds; 0 holds a lane's items. */
  readonly room?: (lane: string) => number
}

/** The family of the lanes of accounts. */
export function makeLookLane({ received, secrets, room }: LookLaneDeps): LaneType {
  let underWay = 0
  const lane: LaneType<LookJob, LookOutcome> = {
    prefix: LOOK_LANE,
    holdMs: HOLD_MS,
    claimsStand: false,
    prepare: prepareLook,
    outcome: lookOutcome,
    room: (name) => Math.min(UNDER_WAY_MAX - underWay, room?.(name) ?? Number.POSITIVE_INFINITY),
    async perform(job, { signal }) {
      if (signal.aborted) throw new NotPerformed('The process stops')
      underWay += 1
      try {
        return { result: await look({ received, secrets }, job) }
      } finally {
        underWay -= 1
      }
    },
  }
  return lane as LaneType
}

async function look({ received, secrets }: LookLaneDeps, job: LookJob): Promise<LookOutcome['result']> {
  for (const bytes of [FIRST_BYTES, HEADER_BYTES_MAX]) {
    const read = await readStart(received, job, Math.min(bytes, job.sizeBytes))
    // A mail that was removed does not name the person.
    if (typeof read === 'string') return read === 'away' ? 'away' : 'not named'
    if (endOfHeader(read.start) < 0 && bytes < job.sizeBytes) continue
    const named = namedInHeader(read.start)
    for (const address of named) if (secrets.addressHmac(job.accountId, address) === job.hmac) return 'named'
    return 'not named'
  }
  return 'named'
}

/** The beginning of a mail. */
async function readStart(
  received: ReceivedStore,
  { serverId, head }: LookJob,
  length: number,
): Promise<{ readonly start: Buffer } | 'gone' | 'away'> {
  const place = { shard: shardOf(serverId) as number, serverId, head }
  const raw = await openRaw(received, place, { from: 0, length })
  if (typeof raw === 'string') return raw === 'damaged' ? 'gone' : raw
  const pieces: Buffer[] = []
  try {
    for await (const piece of raw.pieces) pieces.push(piece)
  } catch {
    return 'away'
  }
  return { start: Buffer.concat(pieces) }
}
