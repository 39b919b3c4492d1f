/** cold-memory - the highest memory of processes and their children together, shared pages counted once (Linux) */

import { readdirSync, readFileSync } from 'node:fs'

const LOOK_MS = 200

export interface MemoryWatch {
  add(pid: number): void
  /** Ends it. Returns the highest sum, bytes. */
  stop(): number
}

/** Watches processes from now on. */
export function watchMemory(pids: readonly number[]): MemoryWatch {
  const watched = new Set(pids)
  let highest = 0
  const timer = setInterval(() => {
    const sum = withChildren(watched).reduce((bytes, pid) => bytes + sharedBytes(pid), 0)
    highest = Math.max(highest, sum)
  }, LOOK_MS)
  return {
    add: (pid) => void watched.add(pid),
    stop() {
      clearInterval(timer)
      return highest
    },
  }
}

/** The processes, and all that descend from them. */
function withChildren(pids: ReadonlySet<number>): number[] {
  const found = new Set(pids)
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    const parent = Number(/^PPid:\s+(\d+)/m.exec(read(name, 'status'))?.[1])
    if (found.has(parent)) found.add(Number(name))
  }
  return [...found]
}

/** Proportional set size. */
function sharedBytes(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB/m.exec(read(String(pid), 'smaps_rollup'))?.[1] ?? 0) * 1024
}

function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It has ended.
    return ''
  }
}
