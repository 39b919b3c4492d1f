/** agreed - a question on the terminal that is answered with yes or no. */
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'

/**
 * Asks on a terminal.
 * @returns whether the answer is yes; false without a terminal, and at the end of its input
 */
export async function isAgreed(question: string): Promise<boolean> {
  if (process.stdin.isTTY !== true) return false
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const ended = once(terminal, 'close').then(() => '')
  const answer = await Promise.race([terminal.question(`${question} [y/N] `), ended])
  terminal.close()
  return /^y(es)?$/i.test(answer.trim())
}
