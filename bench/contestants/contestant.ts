/** contestant - the contestants of `accept`, and the count of the messages that each has stored */

import type { Redis } from 'ioredis'
import { keysOf, sumOf } from '../store.ts'
import type { HostName } from './host.ts'
import type { HostOrder } from './host-side.ts'

export interface Contestant {
  readonly id: 'a' | 'b' | 'b2' | 'c' | 'c1' | 'c2' | 'cn' | 'd'
  readonly label: string
  readonly host: HostName
  readonly order: Partial<Pick<HostOrder, 'accounts' | 'engine' | 'isHeld' | 'workers'>>
  /** Messages that its store holds. */
  readonly count: (client: Redis) => Promise<number>
}

const ACCOUNTS = 1000

export const CONTESTANTS: readonly Contestant[] = [
  {
    id: 'a',
    label: 'floor: uWebSockets.js + Ajv + XADD',
    host: 'floor',
    order: {},
    count: (client) => client.xlen('floor'),
  },
  {
    id: 'b',
    label: 'uWebSockets.js + Ajv + BullMQ add',
    host: 'bullmq',
    order: {},
    count: (client) => client.llen('bull:mail:wait'),
  },
  {
    id: 'b2',
    label: 'the same with BullMQ addBulk',
    host: 'bullmq-bulk',
    order: {},
    count: (client) => client.llen('bull:mail:wait'),
  },
  {
    id: 'c',
    label: 'product, effects held, 1,000 accounts',
    host: 'product',
    order: { accounts: ACCOUNTS, isHeld: true },
    count: countLog,
  },
  {
    id: 'c1',
    label: 'product, effects held, one account',
    host: 'product',
    order: { accounts: 1, isHeld: true },
    count: countLog,
  },
  {
    id: 'c2',
    label: 'product, simulator runs, 1,000 accounts',
    host: 'product',
    order: { accounts: ACCOUNTS, isHeld: false },
    count: countLog,
  },
  {
    id: 'cn',
    label: 'as (c), HTTP_ENGINE=node',
    host: 'product',
    order: { accounts: ACCOUNTS, isHeld: true, engine: 'node' },
    count: countLog,
  },
  {
    id: 'd',
    label: 'product as http and actors, effects held',
    host: 'product',
    order: { accounts: ACCOUNTS, isHeld: true, workers: 1 },
    count: countLog,
  },
]

/** The product with one process that listens and `workers` with the actors. */
export function apart(workers: number): Contestant {
  const label = `http and ${workers} actors`
  return { id: 'd', label, host: 'product', order: { accounts: ACCOUNTS, isHeld: true, workers }, count: countLog }
}

/** Entries of every message log. */
export async function countLog(client: Redis): Promise<number> {
  const logs = await keysOf(client, '{s*}:log:*')
  return sumOf(client, logs, (pipeline, key) => pipeline.xlen(key))
}
