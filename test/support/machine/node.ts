/**
 * node - a Node process that is not one of the test runner's.
 *
 * The runner hooks spawn() and puts its loader into NODE_OPTIONS of every child, whatever `env` contains. env(1)
 * removes it and then becomes the process, so that the process id and signals are those of node.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'

/**
 * Starts node with standard input closed and both outputs as pipes.
 * @param env the whole environment of the child; by default this process's
 */
export function spawnNode(
  args: readonly string[],
  { env = process.env, cwd = process.cwd() }: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const command = ['-u', 'NODE_OPTIONS', process.execPath, ...args]
  return spawn('/usr/bin/env', command, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}
