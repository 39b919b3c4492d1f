/**
 * submit - a broadcast that was read becomes one command: looks, content written ahead, the ask
 *
 * Suppressed recipients are left out here, so that `total` and `suppressed` are final; the release finds later ones.
 * Data written for a refused broadcast is removed; if the outcome is unknown, it expires within a minute.
 *
 * Guarantees: reads of the list and simultaneous writes are bounded; no address is in the state.
 *
 * Keys: content, suppressed
 *
 * Spec broadcast.create, broadcast.suppressed
 */

import { homeShard, shardOf } from '../../../cluster/id.ts'
import type { Ask, AskResult } from '../../../cluster/work.ts'
import type { CreateBroadcastBody } from '../../actors/broadcast/create-broadcast.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { PreparedBroadcast } from '../../sending/broadcast/prepare.ts'
import type { SharedPart } from '../../state/broadcast/broadcast.ts'
import { bucketOf, bucketPart, HEAD_PART, packBucket, unpackBucket } from '../../state/broadcast/content.ts'
import { contentKey } from '../../state/keys.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { suppressedFacts } from '../../state/suppression.ts'
import { type ContentStore, packContent } from '../../store/content.ts'
import { entityFact, parseState } from '../../views/entity.ts'
import type { Reader, ServerKey } from '../../views/key.ts'
import { maySend } from '../../views/resource-access.ts'

/** Dependencies of submitting. */
export interface SubmitBroadcastDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly secrets: Pick<Secrets, 'idempotencyHash' | 'hashKeys'>
  readonly billing: boolean
  readonly hasRelay: () => boolean
  readonly outgoing: { readonly redis: ContentStore }
}

export interface SubmitOrder {
  readonly key: ServerKey
  readonly idempotencyKey: string | null
  readonly streamId: string
  readonly prepared: PreparedBroadcast
}

/** Bytes that go to the store in one round: others write between them. */
const ROUND_BYTES_MAX = 4 * 1024 * 1024

type Value = { readonly key: string; readonly bytes: Uint8Array }

/** Submits it. Never rejects because of the store or the decision. */
export async function submitBroadcast(deps: SubmitBroadcastDeps, order: SubmitOrder): Promise<AskResult> {
  const { key, prepared } = order
  const shard = homeShard(key.accountId)
  // A stream of another shard belongs to another account, and its key name would not be valid on this shard.
  const streamId = shardOf(order.streamId) === shard ? order.streamId : key.serverId
  const allowed = await maySend(deps.read, key)
  const listed =
    allowed === true ? await readListed(deps.read, { shard, streamId, hmacs: prepared.hmacs }) : new Set<string>()
  if (listed === null) return { kind: 'unavailable' }
  const buckets = withoutListed(prepared.buckets, listed)
  // The name of content begins with its command's id: so a commit that misses it knows whom to refuse.
  const cmdId = deps.newCmdId()
  const contentId = `${cmdId}-0`
  const { values, parts } = await readContent({ shard, contentId, prepared, buckets })
  // If this look refuses but the turn accepts, the commit lacks the content and the answer is `unavailable`.
  if (allowed === true && !(await writeAhead(deps.outgoing.redis, shard, values))) return { kind: 'unavailable' }
  const body = makeCommand(
    deps,
    { ...order, streamId },
    { contentId, parts, buckets: buckets.length, listed: listed.size },
  )
  const result = await deps.ask(shard, { name: 'create-broadcast', cmdId, body })
  if (allowed === true && result.kind !== 'silent' && !isNew(result))
    await deps.outgoing.redis.removeContent(
      shard,
      values.map(({ key: name }) => name),
    )
  return result
}

/** Recipients that are on the stream's list. Null if the store did not answer. */
async function readListed(
  read: Reader,
  { shard, streamId, hmacs }: { readonly shard: number; readonly streamId: string; readonly hmacs: readonly string[] },
): Promise<ReadonlySet<string> | null> {
  const seen = await read(shard, [entityFact(shard, streamRef(streamId))])
  if (seen === null) return null
  const listed = new Set<string>()
  if (parseState<StreamState>(seen[0])?.hasSuppressions !== true) return listed
  for (const fact of suppressedFacts(shard, streamId, hmacs)) {
    if (fact.read !== 'fields') continue
    const rows = await read(shard, [fact])
    if (rows === null) return null
    for (const [index, row] of rows[0].entries()) if (row !== null) listed.add(fact.fields[index] as string)
  }
  return listed
}

/** The buckets without those recipients; only buckets that have any are packed again. */
function withoutListed(buckets: readonly string[], listed: ReadonlySet<string>): readonly string[] {
  const touched = new Set([...listed].map((hmac) => bucketOf(hmac, buckets.length)))
  return buckets.map((bucket, index) =>
    touched.has(index) ? packBucket(unpackBucket(bucket).filter(({ hmac }) => !listed.has(hmac))) : bucket,
  )
}

async function readContent(of: {
  readonly shard: number
  readonly contentId: string
  readonly prepared: PreparedBroadcast
  readonly buckets: readonly string[]
}): Promise<{ readonly values: Value[]; readonly parts: SharedPart[] }> {
  const { shard, contentId, prepared, buckets } = of
  const { text, html, attachments, head } = prepared
  const packed = await packContent({ text, html }, attachments)
  const values: Value[] = [{ key: contentKey(shard, contentId, HEAD_PART, 0), bytes: Buffer.from(head) }]
  for (const { part, chunks } of packed)
    for (const [chunk, bytes] of chunks.entries())
      values.push({ key: contentKey(shard, contentId, part, chunk), bytes })
  for (const [bucket, rows] of buckets.entries())
    values.push({ key: contentKey(shard, contentId, bucketPart(bucket), 0), bytes: Buffer.from(rows) })
  const parts = [{ part: HEAD_PART, chunks: 1 }, ...packed.map(({ part, chunks }) => ({ part, chunks: chunks.length }))]
  return { values, parts }
}

async function writeAhead(redis: ContentStore, shard: number, values: readonly Value[]): Promise<boolean> {
  let round: Value[] = []
  let bytes = 0
  for (const value of values) {
    round.push(value)
    bytes += value.bytes.length
    if (bytes < ROUND_BYTES_MAX) continue
    if (!(await redis.writeContent(shard, round))) return false
    round = []
    bytes = 0
  }
  return round.length === 0 || redis.writeContent(shard, round)
}

function makeCommand(
  { secrets, billing, hasRelay }: SubmitBroadcastDeps,
  { key, idempotencyKey, streamId, prepared }: SubmitOrder,
  of: {
    readonly contentId: string
    readonly parts: readonly SharedPart[]
    readonly buckets: number
    readonly listed: number
  },
): CreateBroadcastBody {
  const { accountId, serverId, mode, hash } = key
  const { sender, tagHash, hmacs, sizeBytes, largestBytes, fingerprint, sendAtMs } = prepared
  return {
    accountId,
    serverId,
    test: mode === 'test',
    keyHash: hash,
    billing,
    streamId,
    sender: { address: sender.address, hmac: sender.hmac, domain: sender.domain },
    tagHash,
    lane: mode === 'test' ? 'simulate' : hasRelay() ? 'relay' : 'deliver',
    contentId: of.contentId,
    parts: of.parts,
    buckets: of.buckets,
    total: hmacs.length - of.listed,
    suppressed: of.listed,
    sizeBytes,
    largestBytes,
    ...(sendAtMs !== undefined && { sendAtMs }),
    idempotency:
      idempotencyKey === null ? null : { hash: secrets.idempotencyHash(serverId, idempotencyKey), fingerprint },
  }
}

/** Whether it was accepted now, and not before. */
function isNew(result: AskResult): boolean {
  if (result.kind !== 'answer') return false
  const reply = result.reply as { readonly kind: string; readonly replayed?: boolean }
  return reply.kind === 'broadcast' && reply.replayed !== true
}
