/**
 * scheduled - what a scheduled message is checked for when its time has come, before anything is sent
 *
 * Its recipient's address may have come on the stream's list since it was accepted, and its From domain may have lost
 * its records. The first ends the recipient as suppressed; the second defers it, for 48 hours like any other deferral.
 *
 * Spec send.at, send.suppressed
 */

import { shardOf } from '../../cluster/id.ts'
import type { AttemptOutcome } from '../actors/message/attempt-outcome.ts'
import type { AttemptJob } from '../actors/message/prepare-attempt.ts'
import { makeDeferred } from '../mail/outcome.ts'
import { SIMULATOR_DOMAIN } from '../mail/simulator.ts'
import { SUPPRESSED_CLASS } from '../state/message/status.ts'
import { suppressedKeyOf } from '../state/suppression.ts'
import type { Reader } from '../views/key.ts'
import type { MailOutcome } from './thread/thread-job.ts'

/** RFC 3463 3.8: delivery not authorized. */
const UNVERIFIED = ['compose', 'PolicyRelated', '5.7.1 domain not verified'] as const

/** The deferral of a scheduled message whose From domain is not verified now; null: it is, or was sent at once. */
export function deferUnverified({ message }: AttemptJob): MailOutcome | null {
  const { isScheduled, hasReturnPath, from, test } = message
  if (!isScheduled || hasReturnPath || (test && from.address.endsWith(`@${SIMULATOR_DOMAIN}`))) return null
  return { ...makeDeferred(...UNVERIFIED), sizeBytes: null }
}

/**
 * Whether the address of a scheduled message is on its stream's list now; undefined if the store did not answer. Takes
 * the HMAC of the address within its account.
 */
export async function isSuppressed(
  read: Reader,
  { accountId, streamId }: AttemptJob['message'],
  hmac: string,
): Promise<boolean | undefined> {
  const shard = shardOf(accountId) as number
  const key = suppressedKeyOf(shard, { streamId, hmac })
  const seen = await read(shard, [{ read: 'fields', key, fields: [hmac] }])
  return seen === null ? undefined : (seen[0][0] ?? null) !== null
}

/** The end of a recipient whose address is on the stream's list. */
export function suppressedOutcome({ streamId, tagHash }: AttemptJob['message']): AttemptOutcome {
  return {
    result: 'bounced',
    code: null,
    response: null,
    classification: SUPPRESSED_CLASS,
    hard: true,
    expired: false,
    unbuildable: false,
    sizeBytes: null,
    retryAfterMs: null,
    hmac: null,
    streamId,
    ...(tagHash !== null && { tagHash }),
    uncounted: true,
    suppressed: true,
  }
}
