/**
 * clock-sync - whether a time service keeps the system clock synchronized
 *
 * The kernel knows whether a time service has set the clock recently, and systemd reports it for any service
 * (timesyncd, chrony, ntpd). Without systemd, as in most containers, the state is unknown.
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
  /** The output of `timedatectl` for the property NTPSynchronized. Rejects if it cannot be read. */
  readonly ask: () => Promise<string>
  readonly exists: (path: string) => boolean
}

/** The system itself, asked for 2 seconds at most. */
export const SYSTEM_SYNC: SyncReaders = { ask: askTimedatectl, exists: existsSync }

/** Whether the clock is synchronized; null if it is unknown. Never rejects. */
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
