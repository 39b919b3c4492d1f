/**
 * moved-clock - a clock that a test moves: Redis runs with its own `gettimeofday`, and the product uses no other
 * clock.
 *
 * The offset is in a file that Redis has mapped, so writing that file moves the clock.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './root.ts'

const DAY_S = 86_400
const SOURCE = join(ROOT, 'test/fixtures/moved-clock.c')
const HAS_COMPILER = spawnSync('cc', ['--version']).status === 0

/** False, or why a test that needs it is skipped. */
export const MOVED_CLOCK_SKIP: false | string = HAS_COMPILER ? false : 'no C compiler to build the clock with'

export interface MovedClock {
  /** Runs `start`, whose children get the clock. */
  around<T>(start: () => Promise<T>): Promise<T>
  /** Moves the clock to `days` (and parts of one) after the real time. */
  moveTo(days: number): void
}

/** Makes a clock that shows the real time until it is moved. */
export function makeMovedClock(): MovedClock {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-clock-'))
  const library = join(dir, 'moved-clock.so')
  const path = join(dir, 'offset')
  // Not before this process ends: a Redis that still runs has the file mapped.
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, SOURCE], { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`The clock does not compile: ${built.stderr}`)
  const moveTo = (days: number): void => {
    const seconds = Buffer.alloc(8)
    seconds.writeBigInt64LE(BigInt(Math.round(days * DAY_S)))
    // In place, because the mapped file must stay the same one.
    writeFileSync(path, seconds, { flag: 'r+' })
  }
  writeFileSync(path, Buffer.alloc(8))
  return {
    async around(start) {
      process.env.LD_PRELOAD = library
      process.env.MOVED_CLOCK_FILE = path
      try {
        return await start()
      } finally {
        delete process.env.LD_PRELOAD
        delete process.env.MOVED_CLOCK_FILE
      }
    },
    moveTo,
  }
}
