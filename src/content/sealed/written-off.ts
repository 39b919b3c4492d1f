/**
 * written-off - acts on a sealed segment whose object is lost for good: only its recalled messages are left.
 *
 * Erasure and retention must not wait for an object that never returns, so they do with the recalled messages what they
 * do with those of an object, and swap the row without writing one.
 */

import { entryIdOf, idOfShort, isEntryIdAbove, shardOf } from '../../../cluster/id.ts'
import type { ColdJob, ColdOutcome } from '../../actors/sealed/cold.ts'
import type { EraseJob, EraseOutcome } from '../../actors/sealed/erase.ts'
import type { ForgetJob, ForgetOutcome } from '../../actors/sealed/forget.ts'
import type { StripJob, StripOutcome } from '../../actors/sealed/strip.ts'
import type { TrimJob, TrimOutcome } from '../../actors/sealed/trim.ts'
import { unpackLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { isWrittenOff } from '../../state/message/sealed.ts'
import { statusField } from '../../state/message/status.ts'
import { pastRecalled, spansOf, strippedRecalled, TOUCHED_MAX, touchedOf } from './rewrite.ts'
import type { PlacedMessage } from './segment.ts'
import type { ColdDeps } from './written.ts'

const NO_OBJECT = { size: 0, key: '' }

/** Performs an act on a segment that was written off; null: the segment of the act was not. */
export async function performWrittenOff(deps: ColdDeps, job: ColdJob): Promise<ColdOutcome | null> {
  if (job.act === 'pack' || job.act === 'seal' || !isWrittenOff(job.row)) return null
  switch (job.act) {
    case 'reseal':
      // The next attempt finds it written off, and ends.
      return { act: 'reseal', result: 'away' }
    case 'recall':
      return { act: 'recall', result: 'absent' }
    case 'erase':
      return await erase(deps, job)
    case 'trim':
      return await trim(deps, job)
    case 'forget':
      return await forget(deps, job)
    case 'strip':
      return await strip(deps, job)
  }
}

async function erase(deps: ColdDeps, { serverId, segment, row, number, step }: EraseJob): Promise<EraseOutcome> {
  const all = await recalledMessages(deps, { serverId, segment })
  if (all === null) return { act: 'erase', result: 'away' }
  const messages = all.filter(({ log }) => {
    const { sender, recipients } = unpackLogEntry(log)
    return sender === number || recipients.includes(number)
  })
  if (messages.length === 0) return { act: 'erase', result: 'none' }
  const slice = messages.slice(step * TOUCHED_MAX, (step + 1) * TOUCHED_MAX).map(touchedOf)
  if (messages.length > (step + 1) * TOUCHED_MAX) return { act: 'erase', result: 'step', messages: slice }
  const told = spansOf(messages, deps.nowMs())
  return { act: 'erase', result: 'swapped', messages: slice, before: row, object: NO_OBJECT, count: 0, told }
}

async function trim(deps: ColdDeps, { serverId, segment, row, cutoffMs }: TrimJob): Promise<TrimOutcome> {
  const removed = await pastRecalled(deps, { serverId, segment, cutoffMs })
  if (removed === null) return { act: 'trim', result: 'away' }
  const object = { ...NO_OBJECT, messages: row.messages, firstMs: cutoffMs }
  return { act: 'trim', result: 'swapped', before: row, object, removed }
}

async function strip(deps: ColdDeps, job: StripJob): Promise<StripOutcome> {
  const recalled = await strippedRecalled(deps, job)
  if (recalled === null) return { act: 'strip', result: 'away' }
  if (recalled.length === 0) return { act: 'strip', result: 'none' }
  return { act: 'strip', result: 'swapped', before: job.row, object: NO_OBJECT, recalled }
}

async function forget(deps: ColdDeps, { serverId, segment, from, toMs }: ForgetJob): Promise<ForgetOutcome> {
  const all = await recalledMessages(deps, { serverId, segment })
  if (all === null) return { act: 'forget', result: 'away' }
  const due = all.filter(({ entryId }) => !isEntryIdAbove(from, entryId) && Number.parseInt(entryId, 10) <= toMs)
  const messages = due.slice(0, TOUCHED_MAX).map(touchedOf)
  return { act: 'forget', result: 'found', messages, next: due[TOUCHED_MAX]?.entryId ?? null }
}

/** The recalled messages of a segment, oldest first; null if the store did not answer. */
async function recalledMessages(
  { read }: Pick<ColdDeps, 'read'>,
  { serverId, segment }: { readonly serverId: string; readonly segment: string },
): Promise<PlacedMessage[] | null> {
  const shard = shardOf(serverId) as number
  const rows = new MessageRows(shard, { serverId, segment })
  const logs = await read(shard, [rows.allRecalledFact()])
  if (logs === null) return null
  const found = [...logs[0]].map(([short, log]) => {
    const statuses = unpackLogEntry(log).recipients.map((_, recipient) => statusField(short, recipient))
    return { short, entryId: entryIdOf(idOfShort(short)), log, statuses }
  })
  const facts = [
    rows.headsFact(found.map(({ short }) => short)),
    rows.statusesFact(found.flatMap((one) => one.statuses)),
  ]
  const texts = found.length === 0 ? [[], []] : await read(shard, facts)
  if (texts === null) return null
  const [heads = [], statuses = []] = texts as readonly (readonly (string | null)[])[]
  let at = 0
  const messages = found.flatMap(({ entryId, log, statuses: fields }, place): PlacedMessage[] => {
    const own = statuses.slice(at, at + fields.length)
    at += fields.length
    const head = heads[place] ?? null
    return head === null ? [] : [{ entryId, log, head, statuses: own.map((text) => text ?? ''), place }]
  })
  return messages.sort((one, other) => (isEntryIdAbove(one.entryId, other.entryId) ? 1 : -1))
}
