/**
 * memory-pressure - the store's fill level, cached so that a send need not query it
 *
 * The last part of its memory is for work that finishes or frees accepted mail: from 85 % on new mail is refused, and
 * from 70 % on a warning is logged.
 *
 * Spec send.room
 */

/** Share of `maxmemory` from which on new mail is refused. */
export const FULL_SHARE = 0.85
/** Share of `maxmemory` from which on a warning is logged. */
export const FILLING_SHARE = 0.7
/** Small changes of a store near a bound repeat no log line. */
const SLACK = 0.02

/** The resource that new mail lacks: the store's memory, or a disk. */
export type CapacityShortage = 'memory' | 'disk'

/** Fill level of a store, as it is reported. */
export type FillLevel = 'roomy' | 'filling' | 'full'

/** Used share of `maxmemory`. Takes the text of INFO. */
export function parseFill(info: string): number {
  const [, used = '0'] = /^used_memory:(\d+)/m.exec(info) ?? []
  const [, max = '0'] = /^maxmemory:(\d+)/m.exec(info) ?? []
  return max === '0' ? 0 : Number(used) / Number(max)
}

/**
 * The level of a share, which rises at once and falls a little below its bound. Takes the previous level, and the
 * share from which it is full.
 */
export function fillLevel(share: number, before: FillLevel, fullShare = FULL_SHARE): FillLevel {
  const slack = (level: FillLevel): number => (before === level ? SLACK : 0)
  if (share >= fullShare - slack('full')) return 'full'
  const filling = before === 'full' ? SLACK : slack('filling')
  return share >= FILLING_SHARE - filling ? 'filling' : 'roomy'
}
