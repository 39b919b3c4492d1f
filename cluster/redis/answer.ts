/** redis-verdict - what the answer to a commit means. */

import type { Verdict } from '../store.ts'
import type { Answer } from './link.ts'

/** Errors that the store gives before a script has run, by their first word. */
const REFUSALS: ReadonlySet<string> = new Set([
  'OOM',
  'READONLY',
  'MISCONF',
  'LOADING',
  'NOREPLICAS',
  'CROSSSLOT',
  'BUSY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'MOVED',
  'ASK',
  'TRYAGAIN',
  'NOAUTH',
  'NOPERM',
  'NOSCRIPT',
])

/** A command inside a script failed: what came before it was written. */
const INSIDE = /\bscript: /

/** The verdict in an answer. Whatever is none of the named ones is `torn`: nobody knows what was written. */
export function verdictOf(answer: Answer): Verdict {
  if (answer.kind === 'error') return verdictOfError(answer.message)
  if (answer.kind !== 'reply') return { kind: answer.kind }
  const [name, fact] = (Array.isArray(answer.value) ? answer.value : [answer.value]) as [unknown, unknown]
  switch (name) {
    case 'OK':
      return { kind: 'ok' }
    case 'DUP':
      return { kind: 'dup' }
    case 'FENCED':
      return { kind: 'fenced' }
    case 'CONFLICT':
      return { kind: 'conflict', seq: Number(fact) }
    case 'LATE':
      return { kind: 'late', nowMs: Number(fact) }
    case 'CLOCK':
      return { kind: 'clock', nowMs: Number(fact) }
    case 'MISSING':
      return { kind: 'missing', key: String(fact) }
    case 'BADOP':
      return { kind: 'badop', reason: String(fact) }
    case 'TORN':
      return { kind: 'torn', reason: String(fact) }
    default:
      return { kind: 'torn', reason: 'The store gave an answer that is no verdict' }
  }
}

/** Whether the store said that it does not know the script: nothing ran. */
export function isScriptUnknown(answer: Answer): boolean {
  return answer.kind === 'error' && answer.message.startsWith('NOSCRIPT')
}

function verdictOfError(message: string): Verdict {
  const word = message.split(' ', 1)[0] ?? ''
  if (REFUSALS.has(word) && !INSIDE.test(message)) return { kind: 'refused', reason: word }
  return { kind: 'torn', reason: `The store failed: ${word}` }
}
