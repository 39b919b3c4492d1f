/**
 * unread-reports - returned mail that could not be read, kept as files for the operator: DATA_DIR/unread-reports
 *
 * Guarantees: at most 100 files of 256 KiB, for 7 days. When there is no room, the oldest file of the client with the
 * most files goes, so that a client that floods the folder displaces its own mail. An erasure removes all files
 * written before it, because it is unknown which of them name the person. Nothing here rejects.
 *
 * Spec bounce.unread
 */

import { randomBytes } from 'node:crypto'
import { mkdir, readdir, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { REPORTS_UNREAD_DAYS, REPORTS_UNREAD_MAX } from '../../../schemas/limits.ts'
import type { EdgeLog } from '../../http/request.ts'
import { UNREAD_REPORTS } from '../../process/unread-folder.ts'
import { DAY_MS } from '../../state/calendar.ts'

/** `<milliseconds>-<client>-<random>.eml`; a client is a keyed hash of its network. */
const NAME = /^(\d{13})-([\w-]{8})-[\da-f]{12}\.eml$/
const CLIENT_CHARS = 8
const RANDOM_BYTES = 6
const LOOK_MS = 20_000

export interface UnreadReportDeps {
  readonly dataDir: string
  /** Keyed hash of a client's network. */
  readonly clientHmac: (client: string) => string
  readonly nowMs: () => number
  /** When the last erasure was completed; 0 if none was, null if the store did not answer. */
  readonly lastErasedMs: () => Promise<number | null>
  readonly log: EdgeLog
}

export interface UnreadReports {
  /** Keeps the start of a mail; true once it is on the disk. */
  keep(bytes: Uint8Array, client: string): Promise<boolean>
  close(): Promise<void>
}

interface Kept {
  readonly name: string
  readonly atMs: number
  readonly client: string
}

/** Opens the folder. Files that are too old, or older than an erasure, are removed now and periodically. */
export function makeUnreadReports(deps: UnreadReportDeps): UnreadReports {
  const folder = join(deps.dataDir, UNREAD_REPORTS)
  // One after the other, because two at once would count the same files.
  let last: Promise<boolean> = Promise.resolve(true)
  const inTurn = (act: () => Promise<void>): Promise<boolean> => {
    last = last.then(act).then(
      () => true,
      (error: Error) => {
        deps.log.error({ reason: error.message }, NOT_KEPT)
        return false
      },
    )
    return last
  }
  const look = () => void inTurn(() => removePast(deps, folder))
  const timer = setInterval(look, LOOK_MS).unref()
  look()
  return {
    keep: (bytes, client) => inTurn(() => keep(deps, folder, { bytes, client })),
    async close() {
      clearInterval(timer)
      await last
    },
  }
}

const NOT_KEPT = 'The directory of unread reports cannot be used'

async function keep(
  { clientHmac, nowMs, log }: UnreadReportDeps,
  folder: string,
  { bytes, client }: { bytes: Uint8Array; client: string },
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const kept = await list(folder)
  const own = clientHmac(client).slice(0, CLIENT_CHARS)
  const name = `${nowMs()}-${own}-${randomBytes(RANDOM_BYTES).toString('hex')}.eml`
  const displaced = kept.length < REPORTS_UNREAD_MAX ? null : oldestOfMost(kept)
  if (displaced !== null) await remove(folder, displaced)
  await writeFile(join(folder, name), bytes, { mode: 0o600, flush: true })
  log.error(
    { bytes: bytes.length, displaced: displaced !== null },
    `A bounce or a complaint could not be read. It is kept in DATA_DIR/${UNREAD_REPORTS} for ${REPORTS_UNREAD_DAYS} days`,
  )
}

/** The oldest file of the client that has the most. */
function oldestOfMost(kept: readonly Kept[]): Kept {
  const counts = new Map<string, number>()
  for (const { client } of kept) counts.set(client, (counts.get(client) ?? 0) + 1)
  const most = Math.max(...counts.values())
  return kept.find(({ client }) => counts.get(client) === most) as Kept
}

async function removePast({ nowMs, lastErasedMs }: UnreadReportDeps, folder: string): Promise<void> {
  const kept = await list(folder)
  if (kept.length === 0) return
  const past = nowMs() - REPORTS_UNREAD_DAYS * DAY_MS
  const erasedMs = (await lastErasedMs()) ?? 0
  for (const one of kept) if (one.atMs <= past || one.atMs <= erasedMs) await remove(folder, one)
}

/** The kept files, the oldest first. */
async function list(folder: string): Promise<Kept[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.sort().flatMap((name) => {
    const [, atMs, client] = NAME.exec(name) ?? []
    return atMs === undefined || client === undefined ? [] : [{ name, atMs: Number(atMs), client }]
  })
}

async function remove(folder: string, { name }: Kept): Promise<void> {
  await unlink(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
    // Processes of one machine share the folder.
    if (error.code !== 'ENOENT') throw error
  })
}
