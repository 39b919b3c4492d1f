/**
 * pack - reads the bodies of messages that have ended out of Redis, and writes them as one pack, which is read back.
 *
 * Each body is sealed separately with its own key, or with the key of the message's attachments if those are in the
 * content store. The written pack is opened again with the keys for the heads before a commit removes anything.
 */

import { setImmediate as turn } from 'node:timers/promises'
import { shardOf } from '../../../cluster/id.ts'
import { DamagedValue, unlessDamaged } from '../../../cluster/sum.ts'
import type { PackedBody, PackJob, PackOutcome } from '../../actors/sealed/pack.ts'
import { isErasedHead, unpackHead } from '../../state/message/head.ts'
import { packName } from '../../state/message/packed.ts'
import { MessageRows } from '../../state/message/row.ts'
import { unpackStatus } from '../../state/message/status.ts'
import { openMailKey, type SealingRing } from '../../state/ring/sealing.ts'
import { isTestSegment } from '../../state/segment.ts'
import { BrokenObject } from '../framing.ts'
import { type Joinable, openJoined, sealJoined } from '../joined.ts'
import { makeMailKey } from '../mail-key.ts'
import { isOpenStatus, type ReadRow, readPage } from './read-page.ts'
import type { ColdDeps } from './written.ts'

/** Bodies of one pack, and bytes of bodies and heads after which it ends: one commit writes all heads. */
const BODIES_MAX = 1_000
const BYTES_MAX = 4 * 1024 * 1024
/** Bodies that are read at once, or fewer large ones: those from before the content store have up to 10 MB. */
const AT_ONCE = 50
/** Taken for the bytes of a message that was never built. */
const UNKNOWN_BYTES = BYTES_MAX / 8
/** Bodies that are sealed or opened before others have their turn. */
const A_TURN = 20

/** A body as it was read. */
interface FoundBody extends Joinable {
  readonly body: Omit<PackedBody, 'from' | 'length'>
}

/** Packs what has ended. */
export async function packBodies(deps: ColdDeps, job: PackJob): Promise<PackOutcome> {
  const { segment, object } = job
  const place = { act: 'pack', segment, object } as const
  const found: FoundBody[] = []
  let bytes = 0
  for (let after = job.after; ; ) {
    const page = await readPage(deps.read, job, { after, to: String(job.toMs), skips: true })
    if (page === null) return { ...place, result: 'away' }
    for (let from = 0; from < page.rows.length; ) {
      const some = someOf(page.rows, from)
      from += some.length
      const bodies = await readBodies(deps, job, some)
      if (bodies === 'away') return { ...place, result: 'away' }
      found.push(...bodies.found)
      bytes += bodies.bytes
      const isFull = found.length > BODIES_MAX - AT_ONCE || bytes >= BYTES_MAX
      if (isFull) return write(deps, job, { found, next: (some.at(-1) as ReadRow).entryId, isEnd: false })
    }
    if (page.last === null) break
    after = page.last
  }
  const behind = await findBehind(deps, job)
  return behind === null ? { ...place, result: 'away' } : write(deps, job, { found, ...behind })
}

/** The messages whose bodies are read next, from a place on. */
function someOf(rows: readonly ReadRow[], from: number): readonly ReadRow[] {
  let [to, bytes] = [from, 0]
  for (; to < rows.length && to - from < AT_ONCE && bytes < BYTES_MAX; to += 1) {
    const [first = null] = (rows[to] as ReadRow).statuses
    bytes += unlessDamaged(() => unpackStatus(first, 0).sizeBytes) ?? UNKNOWN_BYTES
  }
  return rows.slice(from, to)
}

/** The bodies that may leave Redis, with the bytes of these and of their heads. */
async function readBodies(
  deps: ColdDeps,
  job: PackJob,
  rows: readonly ReadRow[],
): Promise<{ found: FoundBody[]; bytes: number } | 'away'> {
  const found: FoundBody[] = []
  let bytes = 0
  const bodies = await Promise.all(rows.map((row) => readBody(deps, job, row)))
  for (const [index, body] of bodies.entries()) {
    if (body === 'away') return 'away'
    if (body === null) continue
    found.push(body)
    bytes += body.bytes.length + (rows[index] as ReadRow).head.length
  }
  return { found, bytes }
}

/** A body that may leave Redis; null: none, or some value of its message is damaged. */
async function readBody(deps: ColdDeps, job: PackJob, row: ReadRow): Promise<FoundBody | null | 'away'> {
  try {
    return await readBodyNow(deps, job, row)
  } catch (error) {
    if (error instanceof DamagedValue) return null
    throw error
  }
}

async function readBodyNow(
  { readBody, ring }: ColdDeps,
  { serverId, segment }: PackJob,
  { short, entry, head: text, statuses }: ReadRow,
): Promise<FoundBody | null | 'away'> {
  const { contentId } = entry
  const recipients = entry.recipients.length
  const head = unpackHead(text, recipients)
  const { stored } = head
  if (statuses.some(isOpenStatus) || isErasedHead(head) || stored?.body || stored?.packed) return null
  const read = await readBody({ shard: shardOf(serverId) as number, contentId, test: isTestSegment(segment) })
  if (read === undefined) return 'away'
  if (read === null) return null
  const known = stored === null ? null : openMailKey(ring, stored.key)
  const { key, sealed } = known === null || stored === null ? makeMailKey(ring) : { key: known, sealed: stored.key }
  const chunks = read.isSliced ? 0 : read.chunks.length
  return {
    mailKey: key,
    bytes: read.chunks.length === 1 ? (read.chunks[0] as Buffer) : Buffer.concat(read.chunks),
    body: { short, contentId, recipients, key: sealed, chunks },
  }
}

/** Where the next claim begins: with the next message, or with the next segment. */
async function findBehind(
  { read }: ColdDeps,
  { serverId, segment, toMs, isLast, nextMs }: PackJob,
): Promise<{ readonly next: string; readonly isEnd: boolean } | null> {
  const reached = `${toMs + 1}-0`
  // The segment may have been followed by another within the day.
  if (isLast) return nextMs === null ? { next: reached, isEnd: true } : { next: `${nextMs}-0`, isEnd: false }
  const shard = shardOf(serverId) as number
  const rows = new MessageRows(shard, { serverId, segment })
  const seen = await read(shard, [rows.entriesFact({ from: String(toMs + 1), to: '+', count: 1 })])
  if (seen === null) return null
  const [following] = seen[0]
  const ms = following === undefined ? nextMs : Number.parseInt(following.id, 10)
  return ms === null ? { next: reached, isEnd: true } : { next: `${ms}-0`, isEnd: false }
}

interface Packing {
  readonly found: readonly FoundBody[]
  readonly next: string
  readonly isEnd: boolean
}

async function write(
  { contents, ring }: ColdDeps,
  { serverId, segment, object }: PackJob,
  { found, next, isEnd }: Packing,
): Promise<PackOutcome> {
  const place = { act: 'pack', segment, object } as const
  const packed = { ...place, result: 'packed', next, isEnd } as const
  if (found.length === 0) return { ...packed, bodies: [] }
  const bodies: PackedBody[] = []
  const pieces: Buffer[] = []
  let from = 0
  for (let at = 0; at < found.length; at += A_TURN) {
    const some = found.slice(at, at + A_TURN)
    const { sealed, spans } = await sealJoined(some, 'body')
    pieces.push(...sealed)
    for (const [index, { body }] of some.entries()) {
      const { length } = spans[index] as { length: number }
      bodies.push({ ...body, from, length })
      from += length
    }
    await turn()
  }
  const name = packName(shardOf(serverId) as number, object)
  const isWritten = (await contents.putSealed(name, pieces)).ok
  const back = isWritten ? await contents.readSealed(name, { from: 0, length: from }) : 'away'
  if (typeof back === 'string') return { ...place, result: 'away' }
  for (const [index, body] of bodies.entries()) {
    if (!(await isSame(back, body, (found[index] as FoundBody).bytes, ring))) return { ...place, result: 'away' }
    if (index % A_TURN === 0) await turn()
  }
  return { ...packed, bodies }
}

/** Whether a body opens with the key that its head will hold. */
async function isSame(
  pack: Buffer,
  { key, from, length }: PackedBody,
  bytes: Uint8Array,
  ring: SealingRing,
): Promise<boolean> {
  const mailKey = openMailKey(ring, key)
  if (mailKey === null) return false
  try {
    return (await openJoined(pack.subarray(from, from + length), { mailKey, kind: 'body' })).equals(bytes)
  } catch (error) {
    if (error instanceof BrokenObject) return false
    throw error
  }
}
