/**
 * tag-names - finds the names of tags, whose counts have only hashes, in the messages of the log
 *
 * The log is walked once from the end of the latest day or hour in which unnamed tags have counts, for all of them
 * together. A tag is unnamed if none of the messages that are read has it any more: they have left the log, or their
 * content was erased.
 *
 * Keys: those of `search.ts`
 *
 * Spec stats.groups
 */

import { TAG_LOOKED_AT_MAX, TAGS_LOOKED_AT_MAX } from '../../../schemas/limits.ts'
import { DAY_MS } from '../../state/calendar.ts'
import type { ServerKey } from '../key.ts'
import { type Logged, readEntries, readStored } from '../message/rows.ts'
import { type Round, type Walk, walkMessages } from '../message/scan.ts'
import { beginWalk, type SearchDeps } from '../message/search.ts'

/** Walks of one answer. Tags that were last used on different days need one each. */
const WALKS_MAX = 8
/** Messages of a tag and round whose heads are read: the first one has its name unless it was erased. */
const HEADS_MAX = 3
/** Events follow the acceptance by up to so long, and complaints mostly do. */
const EVENT_AGE_MAX_MS = 3 * DAY_MS

/** Filters of a walk that means every message. */
const NO_FILTERS = {
  ...{ streamId: null, broadcastId: null, recipient: null, from: null, recipientContains: null, tag: null },
  ...{ metadata: null, subject: null, status: null, event: null, site: null, classification: null, source: null },
} as const

/** A tag in the counts. */
export interface CountedTag {
  readonly hash: string
  /** End of the latest unit that counts it. */
  readonly lastMs: number
}

export type TagNames = ReadonlyMap<string, string>

/** Names by hash, without those that were not found. */
export async function readTagNames(
  deps: SearchDeps,
  owner: ServerKey,
  tags: readonly CountedTag[],
): Promise<TagNames | 'unauthorized' | 'unavailable'> {
  const names = new Map<string, string>()
  let room = TAGS_LOOKED_AT_MAX
  let left = [...tags].sort((one, other) => other.lastMs - one.lastMs)
  for (let walks = 0; walks < WALKS_MAX && left.length > 0 && room > 0; walks += 1) {
    const toMs = left[0]?.lastMs ?? 0
    const group = left.filter(({ lastMs }) => lastMs === toMs)
    const filter = { ...NO_FILTERS, fromMs: toMs - EVENT_AGE_MAX_MS, toMs }
    const walk = await beginWalk(deps.read, owner, { filter, page: { after: null }, nowMs: deps.nowMs() })
    if (walk === 'unauthorized' || walk === 'unavailable') return walk
    if (typeof walk === 'string') break
    // Messages of this walk name other tags too.
    const wanted = new Set(left.map(({ hash }) => hash))
    const sought = new Set(group.map(({ hash }) => hash))
    const looked = await nameFrom(deps, { owner, walk, wanted, sought, names, room })
    if (looked === null) return 'unavailable'
    room -= looked
    left = left.filter(({ hash, lastMs }) => lastMs !== toMs && !names.has(hash))
  }
  return names
}

interface Naming {
  readonly owner: ServerKey
  readonly walk: Walk
  /** Hashes without a name, and those among them for which the walk continues. */
  readonly wanted: Set<string>
  readonly sought: Set<string>
  readonly names: Map<string, string>
  readonly room: number
}

/** Walks until every sought tag has a name. Out: the messages read; null if the store did not answer. */
async function nameFrom(deps: SearchDeps, naming: Naming): Promise<number | null> {
  const { walk, wanted, sought, names, room } = naming
  let looked = 0
  for await (const round of walkMessages(deps.read, walk, Math.min(room, sought.size * TAG_LOOKED_AT_MAX))) {
    const found = round === null ? null : await readNames(deps, naming, round)
    if (round === null || found === null) return null
    looked += round.looked
    for (const [hash, name] of found) {
      names.set(hash, name)
      wanted.delete(hash)
      sought.delete(hash)
    }
    if (sought.size === 0 || round.isEnd) break
  }
  return looked
}

/** The names that the messages of a round have; null if the store did not answer. */
async function readNames(
  { read, nowMs }: SearchDeps,
  { owner, walk, wanted }: Naming,
  { found }: Round,
): Promise<TagNames | null> {
  const logged = await readEntries(read, walk, found)
  if (logged === null) return null
  const entries = new Map<string, Logged[]>()
  for (const one of logged) {
    const hash = one.entry.tagHash
    if (hash === null || !wanted.has(hash)) continue
    const same = entries.get(hash) ?? []
    if (same.length < HEADS_MAX) entries.set(hash, [...same, one])
  }
  const stored = await readStored(read, {
    owner,
    shard: walk.shard,
    entries: [...entries.values()].flat(),
    nowMs: nowMs(),
  })
  if (stored === null) return null
  return new Map(
    stored.flatMap(({ entry, head }) =>
      entry.tagHash === null || head.tag === null ? [] : [[entry.tagHash, head.tag] as const],
    ),
  )
}
