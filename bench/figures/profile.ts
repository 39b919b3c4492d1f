/** profile - the self time of functions and lines in a profile */

import { readFileSync } from 'node:fs'

interface Node {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly positionTicks?: readonly { readonly line: number; readonly ticks: number }[]
}

interface Profile {
  readonly nodes: readonly Node[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** A place and its share of the time that was not idle, in percent. */
export interface Share {
  readonly name: string
  readonly percent: number
}

export interface Profiled {
  /** Share of the wall time in which the thread was busy, in percent. */
  readonly busyPercent: number
  readonly functions: readonly Share[]
  /** Lines of the compiled files of this project. */
  readonly lines: readonly Share[]
}

/** V8's own entries that mean that nothing ran. */
const IDLE = ['(idle)', '(root)']

/** The `count` functions and the `count` lines with the most self time. In: path of a .cpuprofile */
export function readProfile(path: string, count: number): Profiled {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(path, 'utf8')) as Profile
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const times = new Map<string, number>()
  let busySamples = 0
  samples.forEach((id, at) => {
    const name = names.get(id) ?? '?'
    if (!IDLE.includes(name)) busySamples += 1
    times.set(name, (times.get(name) ?? 0) + Math.max(0, timeDeltas[at] ?? 0))
  })
  const all = sumOf(times)
  for (const name of IDLE) times.delete(name)
  const busy = sumOf(times)
  return {
    busyPercent: (busy / all) * 100,
    functions: topOf(times, { count, whole: busy }),
    lines: topOf(ticksByLine(nodes), { count, whole: busySamples }),
  }
}

function ticksByLine(nodes: readonly Node[]): Map<string, number> {
  const ticks = new Map<string, number>()
  for (const { callFrame, positionTicks = [] } of nodes) {
    const file = fileOf(callFrame.url)
    if (!/^(?:schemas|cluster|src|bench)\//.test(file)) continue
    for (const one of positionTicks) {
      const name = `${file}:${one.line} in ${callFrame.functionName || '(anonymous)'}`
      ticks.set(name, (ticks.get(name) ?? 0) + one.ticks)
    }
  }
  return ticks
}

function topOf(values: ReadonlyMap<string, number>, { count, whole }: { count: number; whole: number }): Share[] {
  const shares = [...values].map(([name, value]) => ({ name, percent: (value / whole) * 100 }))
  return shares.sort((one, other) => other.percent - one.percent).slice(0, count)
}

function sumOf(values: ReadonlyMap<string, number>): number {
  let sum = 0
  for (const value of values.values()) sum += value
  return sum
}

function nameOf({ functionName, url, lineNumber }: Node['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  const file = fileOf(url)
  return file === '' ? name : `${name} ${file}:${lineNumber + 1}`
}

/** The path as shown: inside of its package, or of this project's build. */
function fileOf(url: string): string {
  return url.replace(/^.*\/node_modules\//, '').replace(/^file:.*\/build[^/]*\//, '')
}
