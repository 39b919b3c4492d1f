/**
 * merge - the ops of a commit with numbered keys and joined neighbours, as input of the commit script.
 *
 * A batch writes the same few hashes and sorted sets over and over. Writes of one kind to one key without another
 * write to that key between them are one command of the store, because the result is the same, and a command costs as
 * much as ten fields. Only well-formed ops are joined, so that an invalid op is refused as it would be alone.
 */
import type { Op, Write } from '../behaviour.ts'
import { type Arg, CLOCK_OFF_MS, type Joined, type Merged } from '../store.ts'

/** State of a key while its writes are gathered. */
export interface MergeSlot {
  readonly place: number
  /** The command that the next write of its kind may join. */
  tail: Joined | null
  /** The expiry that was set after `tail`. */
  expiry: string
}

/** Number of the first key; keys 1 and 2 are the caller's. */
export const FIRST_PLACE = 3

/** Arguments of one op; `unpack` of Lua takes 8,000 values at most. */
export const OP_ARGS_MAX = 4_000

/** Adds a write to commands, or to the last one of its key. The id of an entry is explicit here. */
export function addWrite(commands: Joined[], slot: MergeSlot, { write, args }: Op, nowMs: number): void {
  if (joins(slot, write, args)) return
  const command: Joined = { write, place: slot.place, parts: [args], count: args.length }
  commands.push(command)
  if (write !== 'PEXPIREAT') {
    slot.tail = command
    slot.expiry = ''
  } else if (slot.tail?.write === 'HSET' && Number(args[0]) > nowMs + 2 * CLOCK_OFF_MS) slot.expiry = String(args[0])
  else slot.tail = null
}

/** Numbers keys from 3 on and joins writes. `*seq` becomes `<seq + 1>-<k>`, counted per key. */
export function mergeOps(ops: readonly Op[], { seq, nowMs }: { seq: number; nowMs: number }): Merged {
  const slots = new Map<string, MergeSlot & { entries: number }>()
  const keys: string[] = []
  const commands: Joined[] = []
  for (const op of ops) {
    let slot = slots.get(op.key)
    if (slot === undefined) {
      slot = { place: keys.length + FIRST_PLACE, tail: null, expiry: '', entries: 0 }
      keys.push(op.key)
      slots.set(op.key, slot)
    }
    const isNumbered = op.write === 'XADD' && op.args[0] === '*seq'
    const id = isNumbered ? `${seq + 1}-${slot.entries++}` : ''
    addWrite(commands, slot, isNumbered ? { ...op, args: [id, ...op.args.slice(1)] } : op, nowMs)
  }
  return { keys, commands }
}

/** Joins a write to the slot's last command if that changes nothing but the number of commands. */
function joins(slot: MergeSlot, write: Write, args: readonly Arg[]): boolean {
  const { tail } = slot
  if (tail === null) return false
  if (write === 'PEXPIREAT') return slot.expiry !== '' && args.length === 1 && args[0] === slot.expiry
  if (tail.write !== write || tail.count + args.length > OP_ARGS_MAX) return false
  const added = joinable(write, args, tail)
  if (added === null) return false
  tail.parts.push(added)
  tail.count += added.length
  return true
}

/** The addition of a write to a command of its kind; null if it needs its own command. */
function joinable(write: Write, args: readonly Arg[], { parts, count }: Joined): readonly Arg[] | null {
  if (write === 'HSET') return isPaired(args.length) && isPaired(count) ? args : null
  if (write === 'HDEL' || write === 'ZREM') return args.length > 0 && count > 0 ? args : null
  if (write !== 'ZADD') return null
  const flag = flagOf(args)
  if (flag !== flagOf(parts[0] ?? [])) return null
  if (flag === '') return isPaired(args.length) && isPaired(count) ? args : null
  return isPaired(args.length - 1) && isPaired(count - 1) ? args.slice(1) : null
}

function isPaired(count: number): boolean {
  return count > 0 && count % 2 === 0
}

function flagOf([first]: readonly Arg[]): string {
  return first === 'XX' || first === 'NX' || first === 'LT' || first === 'GT' ? first : ''
}
