/**
 * run-file - one process of a test run, whose lines are kept until it is known whether they count
 *
 * Two processors do the work of eight processes, and a host may take half of them: a file that fails beside the others
 * is run once more, alone, after all others. Both runs are told at the end. What proves that nothing is lost is never
 * run twice: one failure of it is a failure.
 */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'

/** Folders whose files are never run a second time. */
const ONCE = ['crash/', 'mistakes/', 'simulation/']
/** So many files may fail beside others; where more do it is not the machine. */
const AGAIN_MAX = 3
const LINES_MAX = 40

/** What a process is started with. */
export interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Ended after so many milliseconds. */
  readonly timeoutMs: number
}

/** Runs a program; what it says on its standard output is in `path`. Out: its exit code, 1 where it was ended. */
export function runToFile({ program, args, env, timeoutMs }: Command, path: string): Promise<number> {
  const out = openSync(path, 'w')
  return new Promise((resolve) => {
    const child = spawn(program, args, { env, stdio: ['ignore', out, 'inherit'], timeout: timeoutMs })
    closeSync(out)
    child.once('error', () => resolve(1))
    child.once('close', (code) => resolve(code ?? 1))
  })
}

/** A run that failed, and whether it may be the machine. */
export interface Failed {
  readonly name: string
}

/** Those of the failed that are run once more; the others have failed. */
export function runAgain<Run extends Failed>(failed: readonly Run[]): readonly Run[] {
  if (failed.length > AGAIN_MAX) return []
  return failed.filter(({ name }) => !ONCE.some((folder) => name.replace(/^apart: /, '').startsWith(folder)))
}

/** What a first run said of what failed in it: the lines of its failures, the first of them. */
export function describeFailure(name: string, path: string): string[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  const failures = lines.flatMap((line, at) => (/^ *not ok /.test(line) ? lines.slice(at, at + 12) : []))
  return [
    `WARNING: ${name} failed beside the others and was run once more, alone. The first run said:`,
    ...failures.slice(0, LINES_MAX).map((line) => `  ${line.trimEnd()}`),
  ]
}
