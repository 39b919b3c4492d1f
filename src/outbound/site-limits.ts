/**
 * site-limits - the operator's file of limits, read at the start and again once it has changed
 *
 * A file that cannot be used ends a start; a later one is logged, and the limits stay as they were.
 *
 * Spec delivery.site.limits
 */

import { statSync } from 'node:fs'
import { parseSiteLimits, type SiteLimitTable } from '../mail/site.ts'
import { monotonicMs } from '../process/fence.ts'
import type { Log } from '../process/log.ts'
import { readNamedFile, WrongFile } from '../process/named-file.ts'

const SETTING = 'SITE_LIMITS'
const LOOK_MS = 5000

/** The operator's limits. Throws WrongFile for a file that is not there or cannot be used. */
export function readSiteLimits(path: string | null): SiteLimitTable {
  if (path === null) return new Map()
  const table = parseSiteLimits(readNamedFile(SETTING, path))
  if (typeof table === 'string') throw new WrongFile(SETTING, { wanted: table, path })
  return table
}

/** The limits as the file has them now, at most five seconds old. Takes those of the start. */
export function watchSiteLimits(
  path: string | null,
  first: SiteLimitTable,
  log: Pick<Log, 'error' | 'info'>,
): () => SiteLimitTable {
  if (path === null) return () => first
  let table = first
  let mark = markOf(path)
  let lookedAtMs = monotonicMs()
  return () => {
    if (monotonicMs() - lookedAtMs < LOOK_MS) return table
    lookedAtMs = monotonicMs()
    const now = markOf(path)
    if (now === mark) return table
    mark = now
    try {
      table = readSiteLimits(path)
      log.info({ sites: table.size }, 'Limits of receiving sites were read again')
    } catch (error) {
      log.error({ reason: (error as Error).message }, 'SITE_LIMITS cannot be used: the former limits stay')
    }
    return table
  }
}

/** Changes with the file; null if it is gone. */
function markOf(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? null : `${stats.ino} ${stats.size} ${stats.mtimeMs}`
}
