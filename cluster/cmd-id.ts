/** cmd-id - ids of commands: eight characters of time (ms, base 36), then ten of chance. */
import { base36 } from './id.ts'

const TIME_CHARS = 8
/** Characters of a command id. */
export const CMD_ID_CHARS = 18
const FOUR_SPAN = 36 ** 4
const TAIL_SPAN = 36 ** 5
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

/** The time that an id was made at last, as text: several are made in a millisecond. */
const timed = { ms: 0, text: '00000000' }

/** A new command id at `nowMs`; `random` answers a number in [0, 1). 18 characters of `0-9a-z`. */
export function newCmdId(nowMs: number, random: () => number): string {
  if (timed.ms !== nowMs) {
    const high = Math.floor(nowMs / FOUR_SPAN)
    timed.text = base36(high) + base36(nowMs - high * FOUR_SPAN)
    timed.ms = nowMs
  }
  return timed.text + tail(random) + tail(random)
}

/** The milliseconds in a command id. */
export function msOfCmdId(cmdId: string): number {
  return Number.parseInt(cmdId.slice(0, TIME_CHARS), 36)
}

/** Five digits. */
function tail(random: () => number): string {
  const value = Math.floor(random() * TAIL_SPAN)
  const first = Math.floor(value / FOUR_SPAN)
  return DIGITS[first]! + base36(value - first * FOUR_SPAN)
}
