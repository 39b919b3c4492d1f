/**
 * power-disk - a disk that can lose its power: unsynced data is gone, as ext4 leaves it
 *
 * An ext4 file system in a file, mounted by a loop device. Its unwritten pages are in the kernel's cache of the mount,
 * not in the file, so a copy of the file is the disk as a power cut leaves it. The copy is mounted at the same place,
 * and ext4 replays its journal. Only root can mount one.
 *
 * Without delayed allocation's heuristics (`noauto_da_alloc`), a rename over a file whose bytes were not synced leaves
 * an empty file, and with `commit=300` the journal is written when a program requests it.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MB = 1024 * 1024
const OPTIONS = 'loop,noauto_da_alloc,commit=300,nodiscard'

/** False, or the reason why a test that needs one is skipped. */
export const POWER_DISK_SKIP: false | string = canMount()
  ? false
  : 'no ext4 file can be mounted (not root, no loop device)'

export interface PowerDisk {
  /** Where it is mounted, before and after a cut. */
  readonly dir: string
  /**
   * Cuts the power. In: `freeze` stops every process that writes to the disk, `end` kills them. The copy is taken
   * between the two.
   */
  cut(processes: { freeze: () => Promise<void>; end: () => Promise<void> }): Promise<void>
  unmount(): void
}

/** Makes and mounts a disk of so many megabytes. */
export function mountPowerDisk(megabytes: number): PowerDisk {
  const top = mkdtempSync(join(tmpdir(), 'sendwright-power-'))
  const dir = join(top, 'disk')
  mkdirSync(dir)
  let image = join(top, 'image-0')
  let cuts = 0
  execFileSync('truncate', ['--size', String(megabytes * MB), image])
  execFileSync('mkfs.ext4', ['-q', '-E', 'nodiscard', image])
  mount(image, dir)
  let isMounted = true
  const unmount = (): void => {
    if (!isMounted) return
    isMounted = false
    execFileSync('umount', ['--lazy', dir])
    rmSync(top, { recursive: true, force: true })
  }
  process.once('exit', unmount)
  return {
    dir,
    async cut({ freeze, end }) {
      await freeze()
      cuts += 1
      const left = join(top, `image-${cuts}`)
      execFileSync('cp', ['--sparse=always', image, left])
      await end()
      execFileSync('umount', [dir])
      rmSync(image)
      image = left
      mount(image, dir)
    },
    unmount,
  }
}

function mount(image: string, dir: string): void {
  execFileSync('mount', ['--options', OPTIONS, image, dir])
}

function canMount(): boolean {
  if (process.getuid?.() !== 0 || process.platform !== 'linux') return false
  try {
    mountPowerDisk(16).unmount()
    return true
  } catch {
    return false
  }
}
