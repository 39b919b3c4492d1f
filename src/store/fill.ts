/**
 * store-fill - how full the store is, looked at every two seconds, so that a send need not ask
 *
 * The last part of its memory is for what finishes or frees accepted mail: from 85 % on new mail is refused.
 *
 * Spec send.room
 */

import type { Redis } from 'ioredis'
import type { Log } from '../process/log.ts'

/** Share of `maxmemory` from which on new mail is refused. */
export const FULL_SHARE = 0.85
const LOOK_MS = 2_000

export interface StoreFill {
  /** Used share of `maxmemory` when last seen; 0 where it has none. */
  readonly share: number
  /** Whether there is room for new mail. */
  readonly hasRoom: boolean
  stop(): void
}

interface FillOptions {
  readonly redis: () => Redis
  readonly log: Pick<Log, 'info' | 'warn'>
  /** In place of our own. */
  readonly fullShare?: number
}

/** Looks at once, and again until it is stopped. A store that does not answer is as full as it was. */
export async function watchFill({ redis, log, fullShare = FULL_SHARE }: FillOptions): Promise<StoreFill> {
  let share = 0
  async function look(): Promise<void> {
    const info = await redis()
      .info('memory')
      .catch(() => null)
    if (info === null) return
    const before = share
    share = fillOf(info)
    if (share >= fullShare && before < fullShare) log.warn({ share }, 'Store is nearly full: new mail is refused')
    if (share < fullShare && before >= fullShare) log.info({ share }, 'Store has room again')
  }
  await look()
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  return {
    get share() {
      return share
    },
    get hasRoom() {
      return share < fullShare
    },
    stop: () => clearInterval(timer),
  }
}

/** Used share of `maxmemory`. In: what INFO says. */
export function fillOf(info: string): number {
  const [, used = '0'] = /^used_memory:(\d+)/m.exec(info) ?? []
  const [, max = '0'] = /^maxmemory:(\d+)/m.exec(info) ?? []
  return max === '0' ? 0 : Number(used) / Number(max)
}
