/**
 * store-fill - how full the store is, so that a send need not ask
 *
 * The last part of its memory is for what finishes or frees accepted mail: from 85 % on new mail is refused.
 *
 * Spec send.room
 */

/** Share of `maxmemory` from which on new mail is refused. */
export const FULL_SHARE = 0.85

/** Used share of `maxmemory`. In: what INFO says. */
export function fillOf(info: string): number {
  const [, used = '0'] = /^used_memory:(\d+)/m.exec(info) ?? []
  const [, max = '0'] = /^maxmemory:(\d+)/m.exec(info) ?? []
  return max === '0' ? 0 : Number(used) / Number(max)
}
