/**
 * identity - distinguishes this process from every other one, and detects whether another one is gone
 *
 * Process ids are reused, also after a reboot. Together with the machine's boot, the pid namespace and the start time
 * of the process, an id identifies one process for good. Without /proc nothing can be determined, and no process is
 * called gone; nor is a process that /proc hides (hidepid, ProtectProc=), such as one of another user or with more
 * capabilities.
 */

import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { WorkerRecord } from '../../cluster/store.ts'

/** Field of /proc/<pid>/stat, counted from the one after the command's name: start time in ticks since boot. */
const START_TIME_FIELD = 19

/** The part of a worker's record that the process itself knows. */
export type ProcessIdentity = Pick<WorkerRecord, 'host' | 'bootId' | 'pidNamespace' | 'pid' | 'startTime'>

/** This process. */
export function processIdentity(): ProcessIdentity {
  return {
    host: hostname(),
    bootId: readText('/proc/sys/kernel/random/boot_id'),
    pidNamespace: readLink('/proc/self/ns/pid'),
    pid: process.pid,
    startTime: readStartTime(process.pid) ?? '',
  }
}

/** True only if the record is of this machine's boot and namespace and its process has ended. */
export function isProcessGone(record: ProcessIdentity, self: ProcessIdentity = processIdentity()): boolean {
  if (self.bootId === '' || self.pidNamespace === '') return false
  if (record.bootId !== self.bootId || record.pidNamespace !== self.pidNamespace) return false
  const startTime = readStartTime(record.pid)
  return startTime !== null && startTime !== record.startTime
}

/**
 * Start time of a process as text; '' if it does not exist or is a zombie; null if /proc hides it.
 */
function readStartTime(pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === '') return exists(pid) ? null : ''
  // The command's name is in parentheses and may contain anything, a closing parenthesis too.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const isEnded = fields[0] === 'Z' || fields[0] === 'X'
  return isEnded ? '' : (fields[START_TIME_FIELD] ?? '')
}

/** Signal 0 fails with EPERM for another user's process, and with ESRCH if the process does not exist. */
function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function readText(path: string): string {
  return attempt(() => readFileSync(path, 'utf8').trim())
}

function readLink(path: string): string {
  return attempt(() => readlinkSync(path))
}

/** /proc reports a missing entry by an error. */
function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
