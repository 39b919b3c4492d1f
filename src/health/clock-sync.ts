/**
 * clock-sync - whether the system says that something keeps its clock right
 *
 * The kernel knows whether a time service has set the clock lately; systemd tells what it knows, whichever service that
 * is (timesyncd, chrony, ntpd). Where there is no systemd, as in most containers, nobody can be asked.
 *
 * Spec operator.health
 */

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Written by systemd-timesyncd once the clock was set. */
const SYNCHRONIZED_FILE = '/run/systemd/timesync/synchronized'
const ASK_MS_MAX = 2000
const ANSWER_BYTES_MAX = 4096

export interface SyncReaders {
  /** What `timedatectl` prints of the property NTPSynchronized. Rejects where it cannot be asked. */
  readonly ask: () => Promise<string>
  readonly exists: (path: string) => boolean
}

/** The system itself, asked for 2 seconds at most. */
export const SYSTEM_SYNC: SyncReaders = { ask: askTimedatectl, exists: existsSync }

/** Whether the clock is synchronized; null: nobody here knows. Never rejects. */
export async function readClockSync({ ask, exists }: SyncReaders = SYSTEM_SYNC): Promise<boolean | null> {
  const said = await ask().catch(() => '')
  if (said.trim() === 'yes') return true
  if (said.trim() === 'no') return false
  return exists(SYNCHRONIZED_FILE) ? true : null
}

function askTimedatectl(): Promise<string> {
  const args = ['show', '--property=NTPSynchronized', '--value']
  return new Promise((resolve, reject) => {
    const limits = { timeout: ASK_MS_MAX, killSignal: 'SIGKILL', maxBuffer: ANSWER_BYTES_MAX } as const
    execFile('timedatectl', args, limits, (error, said) => (error === null ? resolve(said) : reject(error)))
  })
}
