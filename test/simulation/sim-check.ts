/** sim-check - decides which ops a commit may hold, with the rules of the commit script but with code of its own. */
import type { Op } from '../../cluster/behaviour.ts'
import { sortableEntryId } from '../../cluster/id.ts'
import { journalKey, metaKey, shardTag } from '../../cluster/keyspace.ts'
import { type Kind, type SimData, textOf } from './sim-data.ts'

const ARGS_MAX = 4_000
const U64_MAX = 2n ** 64n - 1n
const ID = /^(0|[1-9]\d{0,14})-(0|[1-9]\d{0,19})$/
const INSTANT = /^[1-9]\d{0,14}$/
const SCORE = /^-?\d+\.?\d*$/
const SCORE_LENGTH_MAX = 20

export type Checked = { kind: 'good' } | { kind: 'badop' } | { kind: 'missing'; key: string }

/** The kind that the ops so far have given a key. */
interface KeyState {
  /** Null if no op has asked for a kind yet, 'none' if the key was unlinked. */
  kind: Kind | 'none' | null
  exists: boolean
  /** Sortable id of the last entry. */
  last: string
}

/** Looks at all ops of a commit in order; the first that may not be ends it. */
export function checkOps(
  ops: readonly Op[],
  { data, nowMs, shard }: { data: SimData; nowMs: number; shard: number },
): Checked {
  const tag = `${shardTag(shard)}:`
  const reserved = [metaKey(shard), journalKey(shard)]
  const states = new Map<string, KeyState>()
  for (const { key, write, args } of ops) {
    if (!key.startsWith(tag) || reserved.includes(key) || args.length > ARGS_MAX) return { kind: 'badop' }
    const state = states.get(key) ?? {
      kind: null,
      exists: data.get(key, nowMs) !== undefined,
      last: sortableEntryId('0-0'),
    }
    states.set(key, state)
    const texts = args.map(textOf)
    if (!isWellFormed(write, texts)) return { kind: 'badop' }
    if (write === 'PEXPIREAT' && !state.exists) return { kind: 'missing', key }
    if (!takes(state, write, texts, data, key, nowMs)) return { kind: 'badop' }
  }
  return { kind: 'good' }
}

function isWellFormed(write: string, args: readonly string[]): boolean {
  switch (write) {
    case 'HSET':
      return args.length >= 2 && args.length % 2 === 0
    case 'HDEL':
    case 'ZREM':
      return args.length >= 1
    case 'SET':
      return args.length === 3 && args[1] === 'PXAT' && INSTANT.test(args[2]!)
    case 'UNLINK':
      return args.length === 0
    case 'PEXPIREAT':
      return args.length === 1 && INSTANT.test(args[0]!)
    case 'XADD':
      return args.length >= 3 && args.length % 2 === 1 && isEntryId(args[0]!)
    case 'XTRIM':
      return args.length === 2 && args[0] === 'MINID' && isEntryId(args[1]!)
    case 'ZADD': {
      const pairs = ['XX', 'NX', 'LT', 'GT'].includes(args[0] ?? '') ? args.slice(1) : args
      const scores = pairs.filter((_, index) => index % 2 === 0)
      const areScores = scores.every((score) => score.length <= SCORE_LENGTH_MAX && SCORE.test(score))
      return pairs.length >= 2 && pairs.length % 2 === 0 && areScores
    }
    default:
      return false
  }
}

function isEntryId(text: string): boolean {
  const low = ID.exec(text)?.[2]
  return low !== undefined && BigInt(low) <= U64_MAX
}

const KIND_OF: Readonly<Record<string, Kind>> = {
  HSET: 'hash',
  HDEL: 'hash',
  ZADD: 'sorted',
  ZREM: 'sorted',
  XADD: 'stream',
  XTRIM: 'stream',
}

/** Takes an op into the state of its key; false when the key is of another kind, or the id does not rise. */
function takes(
  state: KeyState,
  write: string,
  args: readonly string[],
  data: SimData,
  key: string,
  nowMs: number,
): boolean {
  if (write === 'PEXPIREAT') return true
  if (write === 'UNLINK') {
    Object.assign(state, { kind: 'none', exists: false, last: sortableEntryId('0-0') })
    return true
  }
  if (write === 'SET') {
    if (state.kind !== null && state.kind !== 'none' && state.kind !== 'text') return false
    Object.assign(state, { kind: 'text', exists: true })
    return true
  }
  const kind = KIND_OF[write]!
  if (state.kind === null) {
    const value = data.get(key, nowMs)
    if (value !== undefined && value.kind !== kind) return false
    if (value?.kind === 'stream') state.last = sortableEntryId(value.last)
  } else if (state.kind !== 'none' && state.kind !== kind) return false
  state.kind = kind
  if (write === 'XADD') {
    const id = sortableEntryId(args[0]!)
    if (id <= state.last) return false
    state.last = id
  }
  if (write === 'HSET' || write === 'XADD' || (write === 'ZADD' && args[0] !== 'XX')) state.exists = true
  return true
}
