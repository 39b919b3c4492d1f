/**
 * seal - reads a frozen segment out of Redis and writes its object, which is read back before anything is removed.
 *
 * The log is read in pages with a rest after each, so that acceptance does not feel it. One recipient without an end
 * ends the reading.
 */

import { setTimeout as rest } from 'node:timers/promises'
import { shardOf } from '../../../cluster/id.ts'
import type { SealJob, SealOutcome } from '../../actors/sealed/seal.ts'
import { makeFilter } from '../../state/message/person-filter.ts'
import { coldName } from '../../state/message/sealed.ts'
import { makeMailKey } from '../mail-key.ts'
import { SegmentPacker } from './packer.ts'
import { isOpenStatus, readPage } from './read-page.ts'
import { type ColdDeps, isSame, writeObject } from './written.ts'

/** The rest after each page. */
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
    const page = await readPage(deps.read, job, { after, to: '+' })
    if (page === null) return { ...place, result: 'away' }
    for (const { entryId, log, head, statuses, entry } of page.rows) {
      if (statuses.some(isOpenStatus)) return { ...place, result: 'open' }
      const block = packer.add({ entryId, log, head, statuses: statuses as string[] }, entry)
      if (block !== null) packed.push(await block)
      lastMs = Number.parseInt(entryId, 10)
      if (firstMs === 0) firstMs = lastMs
    }
    if (page.last === null) break
    after = page.last
    await rest(REST_MS)
  }
  if (packer.messages === 0) return { ...place, result: 'empty' }
  for await (const piece of packer.end()) packed.push(piece)
  const { key, sealed } = makeMailKey(deps.ring)
  const name = coldName(shard, { leaf, day })
  const size = await writeObject(deps, { name, key, pieces: packed })
  if (size === null) return { ...place, result: 'away' }
  const row = { leaf, day, size, key: sealed, messages: packer.messages, firstMs, lastMs }
  if (!(await isSame(deps, { shard, row, pieces: packed, checks: packer.checks }))) return { ...place, result: 'away' }
  const filter = makeFilter(packer.persons)
  const object = { size, key: sealed, messages: packer.messages, firstMs, lastMs, filterBlocks: filter.blocks }
  return { ...place, result: 'sealed', object, filter: filter.text }
}
