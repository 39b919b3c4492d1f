/**
 * seal - reads a frozen segment out of Redis and writes its object, which is read back before anything is removed.
 *
 * The log is read in pages with a rest after each, so that acceptance does not feel it. One recipient without an end
 * ends the reading.
 */

import { setTimeout as rest } from 'node:timers/promises'
import { idOfEntry, shardOf, shortId } from '../../../cluster/id.ts'
import type { SealJob, SealOutcome } from '../../actors/sealed/seal.ts'
import { LOG_FIELD, type LogEntry, unpackLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldName } from '../../state/message/sealed.ts'
import { isOpen, statusField, unpackStatus } from '../../state/message/status.ts'
import type { Reader } from '../../views/key.ts'
import { makeMailKey } from '../mail-key.ts'
import type { SealedMessage } from './block.ts'
import { makeFilter } from './filter.ts'
import { SegmentPacker } from './packer.ts'
import { type ColdDeps, isSame, writeObject } from './written.ts'

/** Messages of one read, and the rest after it. */
const PAGE = 200
const REST_MS = 10

/** Seals a segment as far as its object goes. */
export async function sealSegment(deps: ColdDeps, job: SealJob): Promise<SealOutcome> {
  const { segment, leaf, day } = job
  const place = { act: 'seal', segment, leaf, day } as const
  const shard = shardOf(job.serverId) as number
  const packer = new SegmentPacker()
  const packed: Buffer[] = []
  let [firstMs, lastMs] = [0, 0]
  for (let after = ''; ; ) {
    const page = await readPage(deps.read, job, after)
    if (page === 'away' || page === 'open') return { ...place, result: page }
    for (const { row, entry } of page.rows) {
      const block = packer.add(row, entry)
      if (block !== null) packed.push(await block)
      lastMs = Number.parseInt(row.entryId, 10)
      if (firstMs === 0) firstMs = lastMs
    }
    if (page.last === null) break
    after = page.last
    await rest(REST_MS)
  }
  if (packer.messages === 0) return { ...place, result: 'empty' }
  for await (const piece of packer.end()) packed.push(piece)
  const { key, sealed } = makeMailKey(deps.contentKey)
  const name = coldName(shard, { leaf, day })
  const size = await writeObject(deps, { name, key, pieces: packed })
  if (size === null) return { ...place, result: 'away' }
  const row = { leaf, day, size, key: sealed, messages: packer.messages, firstMs, lastMs }
  if (!(await isSame(deps, { shard, row, pieces: packed, checks: packer.checks }))) return { ...place, result: 'away' }
  const filter = makeFilter(packer.persons)
  const object = { size, key: sealed, messages: packer.messages, firstMs, lastMs, filterBlocks: filter.blocks }
  return { ...place, result: 'sealed', object, filter: filter.text }
}

/** A message as it was read, and its log entry. */
interface ReadRow {
  readonly row: SealedMessage
  readonly entry: LogEntry
}

/**
 * Messages of the log behind an entry. Returns their rows, and the entry to continue from; null if there are no more.
 */
async function readPage(
  read: Reader,
  { serverId, segment }: SealJob,
  after: string,
): Promise<{ readonly rows: readonly ReadRow[]; readonly last: string | null } | 'away' | 'open'> {
  const shard = shardOf(serverId) as number
  const rows = new MessageRows(shard, { serverId, segment })
  const seen = await read(shard, [rows.entriesFact({ from: after === '' ? '-' : `(${after}`, to: '+', count: PAGE })])
  if (seen === null) return 'away'
  const logged = seen[0].flatMap((entry) => {
    const log = entry.fields[entry.fields.indexOf(LOG_FIELD) + 1]
    if (log === undefined) return []
    return [{ entryId: entry.id, log, short: shortId(idOfEntry(entry.id, shard)), message: unpackLogEntry(log) }]
  })
  const fields = logged.flatMap(({ short, message }) =>
    message.recipients.map((_, recipient) => statusField(short, recipient)),
  )
  const texts = await read(shard, [rows.headsFact(logged.map(({ short }) => short)), rows.statusesFact(fields)])
  if (texts === null) return 'away'
  const [heads, statuses] = texts
  let at = 0
  const sealed: ReadRow[] = []
  for (const [place, { entryId, log, message }] of logged.entries()) {
    const own = statuses.slice(at, at + message.recipients.length)
    at += own.length
    const head = heads[place]
    // It is leaving by its age.
    if (head === null || head === undefined) continue
    if (own.some((text) => text === null || isOpen(unpackStatus(text, 0).status))) return 'open'
    sealed.push({ row: { entryId, log, head, statuses: own as string[] }, entry: message })
  }
  const last = seen[0].length < PAGE ? null : (seen[0].at(-1)?.id ?? null)
  return { rows: sealed, last }
}
