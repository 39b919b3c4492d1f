/**
 * op-check - whether a commit's writes are within the rules, before it is sent.
 *
 * The store's script cannot undo what it has begun, so whatever could stop it half way is found before: here all that
 * can be seen in the writes themselves, in the script what only the store knows (types of keys, keys that must exist).
 */
import type { Op } from './behaviour.ts'
import { sortableEntryId } from './id.ts'

const ARGUMENTS_MAX = 4_000
const ENTRY_ID = /^\d{1,15}-\d{1,20}$/
const SCORE = /^-?\d+(\.\d+)?$/
const FLAGS = new Set(['XX', 'NX', 'LT', 'GT'])

/** What is wrong with the writes of a commit, or null. Entry ids rise per key, and new objects lie above `firstEntryId`. */
export function faultOfOps(ops: readonly Op[]): string | null {
  const last = new Map<string, string>()
  for (const op of ops) {
    const fault = faultOf(op, last)
    if (fault !== null) return `${op.write}: ${fault}`
  }
  return null
}

function faultOf({ key, write, args }: Op, last: Map<string, string>): string | null {
  if (key === '') return 'no key'
  if (args.length > ARGUMENTS_MAX) return `${args.length} arguments`
  switch (write) {
    case 'XADD': {
      if (args.length < 3 || args.length % 2 === 0) return 'needs an id and pairs'
      const id = args[0]
      if (typeof id !== 'string' || !ENTRY_ID.test(id)) return 'needs an explicit id'
      const sortable = sortableEntryId(id)
      if (sortable <= (last.get(key) ?? sortableEntryId('0-0'))) return 'ids must rise'
      last.set(key, sortable)
      return null
    }
    case 'XTRIM':
      if (args.length !== 2 || args[0] !== 'MINID') return 'only MINID'
      return typeof args[1] === 'string' && ENTRY_ID.test(args[1]) ? null : 'needs an explicit id'
    case 'HSET':
      return args.length === 0 || args.length % 2 === 1 ? 'needs pairs' : null
    case 'HDEL':
    case 'ZREM':
      return args.length === 0 ? 'needs members' : null
    case 'SET':
      return args.length === 3 && args[1] === 'PXAT' && SCORE.test(String(args[2])) ? null : 'needs a value and PXAT'
    case 'UNLINK':
      return args.length === 0 ? null : 'takes no arguments'
    case 'ZADD':
      return faultOfScores(args)
    case 'PEXPIREAT':
      return args.length === 1 && SCORE.test(String(args[0])) ? null : 'needs a time'
    default:
      return 'not on the white list'
  }
}

function faultOfScores(args: Op['args']): string | null {
  const start = FLAGS.has(String(args[0])) ? 1 : 0
  const pairs = args.length - start
  if (pairs === 0 || pairs % 2 === 1) return 'needs pairs'
  for (let i = start; i < args.length; i += 2) if (!SCORE.test(String(args[i]))) return 'a score is no number'
  return null
}
