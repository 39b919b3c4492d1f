/**
 * fill - how full the store is, so that a send need not ask
 *
 * The last part of its memory is for what finishes or frees accepted mail: from 85 % on new mail is refused, and from
 * 70 % on the operator is told that it is filling up.
 *
 * Spec send.room
 */

/** Share of `maxmemory` from which on new mail is refused. */
export const FULL_SHARE = 0.85
/** Share of `maxmemory` from which on the operator is told. */
export const FILLING_SHARE = 0.7
/** What comes and goes by itself in a store that stands at a bound repeats no line of the log. */
const SLACK = 0.02

/** What new mail has no room in: the store's memory, or a disk. */
export type RoomLack = 'memory' | 'disk'

/** How full a store is, as it is told. */
export type FillLevel = 'roomy' | 'filling' | 'full'

/** Used share of `maxmemory`. In: what INFO says. */
export function fillOf(info: string): number {
  const [, used = '0'] = /^used_memory:(\d+)/m.exec(info) ?? []
  const [, max = '0'] = /^maxmemory:(\d+)/m.exec(info) ?? []
  return max === '0' ? 0 : Number(used) / Number(max)
}

/**
 * The level of a share: a higher one at once, a lower one a little below its bound. In: the level before; from where it
 * is full.
 */
export function fillLevel(share: number, before: FillLevel, fullShare = FULL_SHARE): FillLevel {
  const slack = (level: FillLevel): number => (before === level ? SLACK : 0)
  if (share >= fullShare - slack('full')) return 'full'
  const filling = before === 'full' ? SLACK : slack('filling')
  return share >= FILLING_SHARE - filling ? 'filling' : 'roomy'
}
