/** cmd-id - ids of commands: eight characters of time (ms, base 36), then ten of chance. */

const TIME_CHARS = 8
/** Characters of a command id. */
export const CMD_ID_CHARS = 18
const TAIL_SPAN = 36 ** 5

/** A new command id at `nowMs`; `random` answers a number in [0, 1). 18 characters of `0-9a-z`. */
export function newCmdId(nowMs: number, random: () => number): string {
  return nowMs.toString(36).padStart(TIME_CHARS, '0') + tail(random) + tail(random)
}

/** The milliseconds in a command id. */
export function msOfCmdId(cmdId: string): number {
  return Number.parseInt(cmdId.slice(0, TIME_CHARS), 36)
}

function tail(random: () => number): string {
  return Math.floor(random() * TAIL_SPAN)
    .toString(36)
    .padStart(5, '0')
}
