/**
 * second-run - runs test programs, several at once. A program that fails runs once more, alone, after all others: one
 * unlucky timing on a busy machine costs no run, and the log names it.
 */
import type { TAP, Test } from 'tap'

/** More failures than this are no bad luck: none runs again, and the run fails. */
export const SECOND_RUNS_MAX = 5
const LATER = 'fails; runs once more, alone'

export interface Program {
  readonly name: string
  /** Arguments of Node.js. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

interface Failure {
  readonly program: Program
  /** The title of the first test that failed, or how the process ended. */
  readonly reason: string
  readonly output: string
}

/** Runs all as subtests of `t`. Only the second run of a program counts if there is one. */
export async function runPrograms(
  t: Test | TAP,
  programs: readonly Program[],
  { jobs, msMax }: { jobs: number; msMax: number },
): Promise<void> {
  const failures: Failure[] = []
  t.jobs = jobs
  await Promise.all(programs.map((program) => spawnProgram(t, program, msMax, (failure) => failures.push(failure))))
  if (failures.length > SECOND_RUNS_MAX) {
    for (const { program, reason, output } of failures) t.fail(`${program.name}: ${reason}`, { output })
    return
  }
  const passed: string[] = []
  for (const { program, reason } of failures) {
    const { ok } = await spawnProgram(t, program, msMax)
    if (ok) passed.push(`passed on the second run: ${program.name}: ${reason}`)
  }
  for (const line of passed) t.comment(line)
}

/** With `onFailure` a failure is printed as comments and does not count. */
function spawnProgram(
  t: Test | TAP,
  program: Program,
  msMax: number,
  onFailure?: (failure: Failure) => void,
): Promise<{ ok: boolean }> {
  const { name, args, env } = program
  // The runner puts its loader into NODE_OPTIONS of every child, whatever `env` says; env(1) takes it out.
  const all = ['-u', 'NODE_OPTIONS', process.execPath, ...args]
  const ended = t.spawn('/usr/bin/env', all, { env: { ...env }, buffered: true, timeout: msMax }, name)
  const { subtest } = ended
  t.on('subtestEnd', (one) => {
    if (one !== subtest || subtest.passing() || onFailure === undefined) return
    const { options } = subtest
    const end = options.signal ? `ended by ${options.signal}` : `exit code ${options.exitCode}`
    const reason = subtest.results?.failures[0]?.name ?? end
    onFailure({ program, reason, output: subtest.output })
    t.comment(`${name} fails: ${reason}\n${subtest.output}`)
    options.todo = LATER
    delete options.tapChildBuffer
  })
  return ended as Promise<{ ok: boolean }>
}
