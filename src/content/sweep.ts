/**
 * sweep - removes unreferenced objects from the content store, every hour
 *
 * Outgoing content goes with its day, and is not looked at before. Received content goes once it is an hour old and no
 * row names it, and with its day at the latest. Unfinished writes go with their worker. Every step may be done twice,
 * and by several processes at once.
 */

import { SHARDS } from '../../cluster/id.ts'
import { DAY_MS, dayName, HOUR_MS } from '../state/calendar.ts'
import { lastPastDay, type Tree } from '../state/object-name.ts'
import type { ContentAct, Contents } from './contents.ts'
import { type Listed, toStorageFailure } from './storage-backend.ts'

/** A command that names an object is dead long before. */
const UNNAMED_MS = HOUR_MS
/** Names that are asked for at once. */
const ASKED_MAX = 500

export interface SweepDeps {
  readonly contents: Contents
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** Shards that this process sweeps. */
  readonly shards: () => readonly number[]
  /** Whether an unfinished write's worker lives. */
  readonly isLiving: (worker: string) => boolean
  /** The received objects of a shard that a row names; null if the store did not answer. */
  readonly namedOf: (shard: number, names: readonly string[]) => Promise<ReadonlySet<string> | null>
  /** The end of the last sweep, which has checked all older objects; 0 if there was none. */
  readonly sweptAtMs?: () => number
}

/** How far back the first sweep of a process checks; older unreferenced objects are removed with their day. */
const ASKED_MS_MAX = 2 * DAY_MS

/** Sweeps once. Returns the number of removed objects; failures are logged and swept the next time. */
export async function sweepContents(deps: SweepDeps): Promise<number> {
  const { contents } = deps
  const startedAtMs = performance.now()
  let objects = 0
  let result: ContentAct['result'] = 'ok'
  const step = async (act: () => Promise<number>): Promise<void> => {
    try {
      objects += await act()
    } catch (error) {
      result = toStorageFailure(error).kind
    }
  }
  await step(() => contents.home.sweepUnfinished(deps.isLiving))
  for (const shard of deps.shards()) {
    for (const tree of ['out', 'in', 'cold'] as const) await step(() => sweepTree(deps, shard, tree))
    // A home that is away is away for every shard.
    if (result !== 'ok') break
  }
  const ms = performance.now() - startedAtMs
  contents.told({ home: contents.kind, act: 'sweep', result, ms, bytes: 0, objects })
  return objects
}

async function sweepTree(deps: SweepDeps, shard: number, tree: Tree): Promise<number> {
  const { contents, nowMs, namedOf } = deps
  const { home } = contents
  const toMs = nowMs() - UNNAMED_MS
  const fromMs = Math.max(nowMs() - ASKED_MS_MAX, (deps.sweptAtMs?.() ?? 0) - 2 * UNNAMED_MS)
  const prefix = `${String(shard).padStart(String(SHARDS).length, '0')}/${tree}`
  const last = lastPastDay(tree, nowMs())
  let removed = 0
  for (const day of await home.days(prefix)) {
    if (day <= last) removed += await home.removeDay(`${prefix}/${day}`)
    else if (tree === 'in' && day >= dayName(fromMs - DAY_MS)) {
      for await (const names of pagesOf(writtenWithin(home.list(`${prefix}/${day}`), fromMs, toMs))) {
        const named = await namedOf(shard, names)
        const orphans = named === null ? [] : names.filter((name) => !named.has(name))
        await home.remove(orphans)
        removed += orphans.length
      }
    }
  }
  return removed
}

/** Objects written long enough ago that their row exists by now, if it ever will. */
async function* writtenWithin(objects: AsyncIterable<Listed>, fromMs: number, toMs: number) {
  for await (const { name, writtenAtMs } of objects) if (writtenAtMs >= fromMs && writtenAtMs < toMs) yield name
}

async function* pagesOf(names: AsyncIterable<string>): AsyncGenerator<string[]> {
  let page: string[] = []
  for await (const name of names) {
    page.push(name)
    if (page.length < ASKED_MAX) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}
