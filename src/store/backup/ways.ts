/**
 * ways - a backup into a folder that keeps the newest ones, or as an archive on standard output; and the age of the
 * last one
 *
 * The time of the last backup is the modification time of `DATA_DIR/last-backup`, so that operators with another way to
 * copy an installation record theirs with `touch`.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../../process/config.ts'
import { replaceFile } from '../../process/whole-file.ts'
import { type Backup, makeBackup } from './copy.ts'

/** Names of backups in a folder of backups, with the time in UTC to the ms (once to the second): they sort by age. */
const NAME = /^sendwright-\d{8}T\d{6}(?:\d{3})?Z$/
/** Names of backups in a folder that are being written, or that a killed command left. */
const UNFINISHED = /^\.sendwright-\d{8}T\d{6}(?:\d{3})?Z\.(\d+)\.new$/
/** A running backup of another machine or container has a process id that is unknown here. */
const LEFT_MS_MIN = 12 * 3_600_000
/**
 * The copy of an archive during its creation, inside DATA_DIR, because copies on the same file system share blocks.
 */
const UNPACKED = /^\.\.?archive\.(\d+)(?:\.\d+\.new)?$/
const MARK = 'last-backup'
const OWNER_ONLY = 0o700

interface BackupOptions {
  /** Whether files of large content are copied too. */
  readonly content?: boolean
}

/** Makes a backup in `directory`, which must not exist. Throws Error, a sentence, if that fails. */
export async function backUpTo(config: Config, directory: string, options: BackupOptions = {}): Promise<Backup> {
  const startedAtMs = Date.now()
  const made = await makeBackup(config, directory, options)
  markBackup(config.dataDir, startedAtMs)
  return made
}

/**
 * Makes a backup in a folder of backups, named by its time, and then removes all but the newest `keep` with such names.
 * Other files of the folder remain. Returns the backup, and the names of removed ones. Throws Error, a sentence.
 */
export async function backUpInto(
  config: Config,
  folder: string,
  { keep, ...options }: BackupOptions & { readonly keep: number },
): Promise<Backup & { readonly removed: readonly string[] }> {
  mkdirSync(folder, { recursive: true, mode: OWNER_ONLY })
  const name = `sendwright-${new Date().toISOString().replace(/[-:.]/g, '')}`
  const made = await backUpTo(config, join(resolve(folder), name), options)
  return { ...made, removed: removeOldBackups(folder, { keep, made: name, nowMs: Date.now() }) }
}

/**
 * Removes all but the newest `keep` backups of a folder, and the leftovers of killed backups. The backup just made
 * remains, even if the clock was set back and others have later names. Only directories count. Returns the names of
 * removed backups.
 */
export function removeOldBackups(
  folder: string,
  { keep, made, nowMs }: { readonly keep: number; readonly made: string; readonly nowMs: number },
): string[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
  for (const name of names) {
    const pid = Number(UNFINISHED.exec(name)?.[1])
    if (pid > 0 && !isRunning(pid) && nowMs - statSync(join(folder, name)).mtimeMs > LEFT_MS_MIN)
      rmSync(join(folder, name), { recursive: true, force: true })
  }
  const others = names.filter((name) => NAME.test(name) && name !== made).sort()
  const removed = others.slice(0, Math.max(0, others.length - (keep - 1)))
  for (const name of removed) rmSync(join(folder, name), { recursive: true, force: true })
  return removed
}

/**
 * Writes a backup as a tar archive to standard output. It needs room in DATA_DIR for a copy of the store; a copy that a
 * killed command left there is removed first. Throws Error, a sentence.
 */
export async function writeArchive(config: Config, options: BackupOptions = {}): Promise<Backup> {
  const startedAtMs = Date.now()
  const isThere = existsSync(config.dataDir)
  for (const name of isThere ? readdirSync(config.dataDir).filter((one) => UNPACKED.test(one)) : [])
    if (!isRunning(Number(UNPACKED.exec(name)?.[1])))
      rmSync(join(config.dataDir, name), { recursive: true, force: true })
  const unpacked = join(config.dataDir, `.archive.${process.pid}`)
  try {
    const made = await makeBackup(config, unpacked, options)
    const tar = spawn('tar', ['--create', '--file=-', `--directory=${unpacked}`, '.'], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const [code] = (await once(tar, 'close')) as [number | null]
    if (code !== 0) throw new Error('The archive was not written whole: its reader has ended, or tar has failed')
    markBackup(config.dataDir, startedAtMs)
    return { ...made, directory: '-' }
  } finally {
    rmSync(unpacked, { recursive: true, force: true })
  }
}

/** Milliseconds since the last backup began; null if none was recorded. */
export function backupAgeMs(dataDir: string, nowMs: number): number | null {
  const found = statSync(join(dataDir, MARK), { throwIfNoEntry: false })
  return found === undefined ? null : Math.max(0, nowMs - found.mtimeMs)
}

function markBackup(dataDir: string, atMs: number): void {
  const path = join(dataDir, MARK)
  replaceFile(path, `${new Date(atMs).toISOString()}\n`)
  utimesSync(path, atMs / 1000, atMs / 1000)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
