/** agreed - a yes-or-no question on the terminal. */
import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'

/** The terminal may be unattended. */
const ANSWER_MS_MAX = 120_000

/**
 * Asks on a terminal.
 * @returns whether the answer is yes; false without a terminal, at the end of its input and after two minutes
 */
export async function isAgreed(question: string): Promise<boolean> {
  if (process.stdin.isTTY !== true) return false
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const ended = once(terminal, 'close').then(() => '')
  const unanswered = setTimeout(() => terminal.close(), ANSWER_MS_MAX)
  const answer = await Promise.race([terminal.question(`${question} [y/N] `), ended])
  clearTimeout(unanswered)
  terminal.close()
  return /^y(es)?$/i.test(answer.trim())
}
