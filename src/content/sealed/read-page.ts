/** read-page - messages of a segment that is in Redis: the texts of their rows, some at a time */

import { idOfEntry, shardOf, shortId } from '../../../cluster/id.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { LOG_FIELD, type LogEntry, unpackLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { isOpen, statusField, unpackStatus } from '../../state/message/status.ts'
import type { Reader } from '../../views/key.ts'

/** Messages of one read. */
const PAGE = 200

/** A message as it was read. A status that is absent is that of a fresh recipient. */
export interface ReadRow {
  readonly entryId: string
  readonly short: string
  readonly log: string
  readonly entry: LogEntry
  readonly head: string
  readonly statuses: readonly (string | null)[]
}

/** Whether a recipient has an attempt left. */
export function isOpenStatus(text: string | null): boolean {
  return text === null || isOpen(unpackStatus(text, 0).status)
}

/**
 * Messages of a log behind an entry, up to a bound as XRANGE takes it. Out: their rows, and the entry to go on from;
 * null: there are no more. All null: the store did not answer. With `skips`, damaged entries are left out.
 */
export async function readPage(
  read: Reader,
  { serverId, segment }: { readonly serverId: string; readonly segment: string },
  { after, to, skips = false }: { readonly after: string; readonly to: string; readonly skips?: boolean },
): Promise<{ readonly rows: readonly ReadRow[]; readonly last: string | null } | null> {
  const shard = shardOf(serverId) as number
  const rows = new MessageRows(shard, { serverId, segment })
  const seen = await read(shard, [rows.entriesFact({ from: after === '' ? '-' : `(${after}`, to, count: PAGE })])
  if (seen === null) return null
  const logged = seen[0].flatMap((entry) => {
    const log = entry.fields[entry.fields.indexOf(LOG_FIELD) + 1]
    const message = log === undefined ? null : skips ? unlessDamaged(() => unpackLogEntry(log)) : unpackLogEntry(log)
    if (log === undefined || message === null) return []
    return [{ entryId: entry.id, log, short: shortId(idOfEntry(entry.id, shard)), entry: message }]
  })
  const last = seen[0].length < PAGE ? null : (seen[0].at(-1)?.id ?? null)
  if (logged.length === 0) return { rows: [], last }
  const fields = logged.flatMap(({ short, entry }) =>
    entry.recipients.map((_, recipient) => statusField(short, recipient)),
  )
  const texts = await read(shard, [rows.headsFact(logged.map(({ short }) => short)), rows.statusesFact(fields)])
  if (texts === null) return null
  const [heads, statuses] = texts
  let at = 0
  const found: ReadRow[] = []
  for (const [place, one] of logged.entries()) {
    const own = statuses.slice(at, at + one.entry.recipients.length)
    at += own.length
    const head = heads[place]
    // It is leaving by its age.
    if (head === null || head === undefined) continue
    found.push({ ...one, head, statuses: own })
  }
  return { rows: found, last }
}
