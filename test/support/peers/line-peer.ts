/**
 * line-peer - another program that answers each line with a line: verifiers of others, asked one thing after another.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const ANSWER_MS_MAX = 30_000

export interface LinePeer {
  /** Sends one question, as JSON in one line. Rejects if the program ends first. */
  ask(job: object): Promise<string>
  close(): void
}

/** Whether a command succeeds: what it needs is installed. */
export function isInstalled(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Starts a program. */
export function startLinePeer(command: string, args: readonly string[]): LinePeer {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting: { resolve(line: string): void; reject(error: Error): void }[] = []
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.resolve(line))
  child.once('exit', (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`${command} ended with ${code}`))
  })
  return {
    ask: (job) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`${command} did not answer`)), ANSWER_MS_MAX)
        const settled = () => clearTimeout(late)
        waiting.push({
          resolve: (line) => {
            settled()
            resolve(line)
          },
          reject: (error) => {
            settled()
            reject(error)
          },
        })
        child.stdin.write(`${JSON.stringify(job)}\n`)
      }),
    close: () => child.stdin.end(),
  }
}
