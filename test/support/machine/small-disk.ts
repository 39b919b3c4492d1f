/**
 * small-disk - a disk of a few megabytes for one test: it can be full, or read-only
 *
 * A tmpfs with its own mount. Only root can create one.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** False, or why a test that needs one is skipped. */
export const SMALL_DISK_SKIP: false | string = canMount() ? false : 'no disk can be mounted (not root)'

export interface SmallDisk {
  readonly dir: string
  /** Makes it read-only, for root too, or writable again. */
  setReadOnly(isReadOnly: boolean): void
  unmount(): void
}

/** Mounts a disk of so many bytes. */
export function mountSmallDisk(bytes: number): SmallDisk {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', dir])
  let isMounted = true
  const unmount = (): void => {
    if (!isMounted) return
    isMounted = false
    execFileSync('umount', ['-l', dir])
    rmdirSync(dir)
  }
  process.once('exit', unmount)
  return {
    dir,
    setReadOnly: (isReadOnly) => execFileSync('mount', ['-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, dir]),
    unmount,
  }
}

function canMount(): boolean {
  if (process.getuid?.() !== 0 || process.platform !== 'linux') return false
  try {
    mountSmallDisk(64 * 1024).unmount()
    return true
  } catch {
    return false
  }
}
