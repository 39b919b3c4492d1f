/**
 * start-lock - the lock under which one process at a time makes the first account
 *
 * Key: `{cl}:first-start`, the holder's nonce; it ends by itself, so that a holder that died is waited out.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Nodes } from './nodes.ts'

const LOCK_KEY = '{cl}:first-start'
/** Longer than a first start can take. */
const LOCK_LIFE_MS = 30_000
const LOCK_STEP_MS = 50
const LOCK_STEPS_MAX = 1200
const UNLOCK_SCRIPT = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('UNLINK', KEYS[1]) end`

/** Takes the lock; returns a function that releases it. Throws if it stays taken for a minute. */
export async function lockFirstStart(nodes: Nodes): Promise<() => Promise<void>> {
  const nonce = randomUUID()
  for (let step = 0; step < LOCK_STEPS_MAX; step++) {
    const taken = await nodes.common().set(LOCK_KEY, nonce, 'PX', LOCK_LIFE_MS, 'NX')
    if (taken === 'OK') return () => unlock(nodes, nonce)
    await pause(LOCK_STEP_MS)
  }
  throw new Error('Another process holds the lock of the first start')
}

async function unlock(nodes: Nodes, nonce: string): Promise<void> {
  await nodes.common().eval(UNLOCK_SCRIPT, 1, LOCK_KEY, nonce)
}
