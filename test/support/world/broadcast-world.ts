/**
 * broadcast-world - broadcasts in a world of actors: content written ahead, accepted broadcasts, and their results.
 */
import assert from 'node:assert/strict'
import { type CreateBroadcastBody, createBroadcast } from '../../../src/actors/broadcast/create-broadcast.ts'
import {
  type BroadcastState,
  broadcastOwner,
  isOpenBroadcast,
  type Progress,
} from '../../../src/state/broadcast/broadcast.ts'
import { type BucketRow, bucketCount, bucketOf, bucketPart, packBucket } from '../../../src/state/broadcast/content.ts'
import { isBroadcastNote } from '../../../src/state/broadcast/note.ts'
import { contentKey, logKey } from '../../../src/state/keys.ts'
import { packHead } from '../../../src/state/message/head.ts'
import { changeState, hmacOf, LIVE_KEY, SENDING_DOMAIN, type Tenant } from './tenant.ts'
import type { World } from './turn.ts'

const SENDER = `news@${SENDING_DOMAIN}`
let made = 0

/** Unique addresses. */
export const people = (count: number, name = 'p'): string[] =>
  Array.from({ length: count }, (_, n) => `${name}${n}@example.net`)

/** Makes the live server's default stream one of broadcasts. */
export function makeBroadcastStream(world: World, tenant: Tenant, changes: object = {}): string {
  changeState(world, 'stream', tenant.live.streamId, { kind: 'broadcast', isDefault: false, ...changes })
  return tenant.live.streamId
}

/** Writes content as a submission does, with a minute to live, and answers the command. */
export function prepare(world: World, tenant: Tenant, to: readonly string[], buckets?: number): CreateBroadcastBody {
  made += 1
  const contentId = `${Math.floor(world.nowMs).toString(36)}broadcast${made}`
  const rows = to.map((address): BucketRow => {
    return { hmac: hmacOf(address), address, name: null, substitutions: { name: address }, metadata: {}, subject: null }
  })
  const count = buckets ?? bucketCount(rows.length, 0)
  const write = (part: string, bytes: string) => {
    const key = contentKey(world.shard, contentId, part, 0)
    world.apply({ key, write: 'SET', args: [bytes, 'PXAT', String(world.nowMs + 60_000)] })
  }
  const head = { subject: 'News', senderName: 'Acme', recipientNames: [], tag: null, metadata: {}, headers: {} }
  write('head', packHead({ ...head, attachments: [], stored: null, spellings: [], raw: null, broadcast: null }))
  write('body', 'x')
  for (let bucket = 0; bucket < count; bucket += 1)
    write(bucketPart(bucket), packBucket(rows.filter(({ hmac }) => bucketOf(hmac, count) === bucket)))
  return {
    accountId: tenant.accountId,
    serverId: tenant.live.serverId,
    test: false,
    keyHash: LIVE_KEY,
    billing: false,
    streamId: tenant.live.streamId,
    sender: { address: SENDER, hmac: hmacOf(SENDER), domain: SENDING_DOMAIN },
    tagHash: null,
    lane: 'deliver',
    contentId,
    parts: [
      { part: 'head', chunks: 1 },
      { part: 'body', chunks: 1 },
    ],
    buckets: count,
    total: to.length,
    suppressed: 0,
    sizeBytes: 1000,
    largestBytes: null,
    idempotency: null,
  }
}

/** Submits. Throws with the code if it is refused. */
export function submit(world: World, tenant: Tenant, to: readonly string[], buckets?: number): BroadcastState {
  const reply = world.run(createBroadcast, prepare(world, tenant, to, buckets))
  if (reply.kind !== 'broadcast') throw new Error(`Broadcast was refused: ${reply.code}`)
  return reply.broadcast
}

/** Lets time pass in steps, with every timer in its turn. */
export function pass(world: World, ms: number, stepMs = 100): void {
  const endMs = world.nowMs + ms
  for (; world.nowMs < endMs; world.nowMs = Math.min(endMs, world.nowMs + stepMs)) world.fireTimers()
  world.fireTimers()
}

/** The state of a broadcast, and its counters. */
export function seen(world: World, broadcastId: string): BroadcastState & { progress: Progress | null } {
  const state = world.states.get(`broadcast:${broadcastId}`) as BroadcastState
  if (!isOpenBroadcast(state)) checkNotes(world, state)
  return { ...state, progress: (world.counters.get(broadcastOwner(broadcastId)) ?? null) as Progress | null }
}

/** The operator's note about an ended broadcast matches its results, and its end was noted once. */
function checkNotes(world: World, { broadcastId, status: result, released, failed }: BroadcastState): void {
  const notes = world.notes.filter(isBroadcastNote).filter((note) => note.broadcastId === broadcastId)
  const sumOf = (what: 'released' | 'failed') => notes.reduce((sum, note) => sum + note[what], 0)
  assert.deepEqual([sumOf('released'), sumOf('failed')], [released, failed])
  assert.deepEqual(
    notes.flatMap(({ ended }) => (ended === null ? [] : [ended])),
    [{ result, released, failed }],
  )
}

/** Addresses that mail waits for, in the order of its release. */
export function releasedTo(world: World): string[] {
  return world
    .deliveries()
    .filter(({ lane }) => lane.startsWith('deliver'))
    .map(({ job }) => (job as { recipient: { address: string } }).recipient.address)
}

/** Messages in the log of the live server. */
export function logged(world: World, tenant: Tenant): number {
  const names = world.keyNames().filter((key) => key.startsWith(logKey(world.shard, tenant.live.serverId, '')))
  return names.reduce((sum, key) => sum + world.stream(key).length, 0)
}

/** Keys of content that waits to be released. */
export function bucketsLeft(world: World, { contentId }: BroadcastState): string[] {
  return world.keyNames().filter((key) => key.includes(`:content:${contentId}:r`))
}
