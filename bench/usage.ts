/** usage - processor time and memory of a process, as counted by the kernel (Linux; null elsewhere) */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** `USER_HZ`, the unit of /proc/<pid>/stat: 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

/** Seconds of processor time of a process with all its threads. */
function cpuSeconds(pid: number): number | null {
  const text = readProc(pid, 'stat')
  // The name in parentheses may hold anything; the fields after it are fixed.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields === undefined ? null : (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number | null {
  const kibibytes = /^VmRSS:\s+(\d+) kB/m.exec(readProc(pid, 'status') ?? '')?.[1]
  return kibibytes === undefined ? null : Number(kibibytes) * 1024
}

/**
 * The share of one core that each process uses while `work` runs, and the share of the processor time wanted by all
 * processes of this machine that the host of a virtual machine gave to others. In percent.
 */
export async function shareOfCore<T>(
  pids: readonly number[],
  work: () => Promise<T>,
): Promise<{ value: T; percents: (number | null)[]; stolenPercent: number | null }> {
  const startedAtMs = performance.now()
  const before = pids.map(cpuSeconds)
  const timesBefore = machineTimes()
  const value = await work()
  const seconds = (performance.now() - startedAtMs) / 1000
  const percents = pids.map((pid, at) => {
    const [first, last] = [before[at] ?? null, cpuSeconds(pid)]
    return first === null || last === null ? null : ((last - first) / seconds) * 100
  })
  return { value, percents, stolenPercent: stolenShare(timesBefore, machineTimes()) }
}

/** Ticks of all cores since the machine started: wanted, and stolen. */
interface MachineTimes {
  readonly wanted: number
  readonly stolen: number
}

/** By the line `cpu` of proc(5). */
function machineTimes(): MachineTimes | null {
  const fields = /^cpu +(.*)$/m
    .exec(readProc('', 'stat') ?? '')?.[1]
    ?.split(' ')
    .map(Number)
  if (fields === undefined) return null
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = fields
  return { wanted: user + nice + system + irq + softirq + stolen, stolen }
}

function stolenShare(before: MachineTimes | null, after: MachineTimes | null): number | null {
  if (before === null || after === null) return null
  return ((after.stolen - before.stolen) / Math.max(1, after.wanted - before.wanted)) * 100
}

function readProc(pid: number | '', file: string): string | null {
  try {
    return readFileSync(join('/proc', String(pid), file), 'utf8')
  } catch {
    return null
  }
}
