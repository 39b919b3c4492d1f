/**
 * order-queue - what the operator orders of a destination: logged, and for hold and release kept.
 *
 * The list of held destinations and the log of these orders lie on one shard, whatever shards the mail lies on; what an
 * order does to the mail itself is done lane by lane after it is logged.
 *
 * Keys: `holds` hash on shard 0, destination -> ms since when; `wakes` hash, destination -> ms of a retry, the last minute's
 *
 * Spec queue.order, queue.hold, operator.audit
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'
import { holdsKey, wakesKey } from '../../state/keys.ts'
import { type Refused, refuse } from '../order/refusal.ts'

/** Destinations that can be held; who holds more wants another tool. */
export const HOLDS_MAX = 10_000
/** What processes hear when the list has changed, or a destination is to be tried. */
export const HOLDS_TOPIC = 'holds'
/** How long a retry is told to the other processes; each looks every few seconds besides. */
const WAKE_LIFE_MS = 60_000
/** Entries that are forgotten at once: arguments of one write are bounded. */
const WAKES_MAX = 1000
/** The shard of the list. */
export const HOLDS_SHARD = 0

export interface OrderQueueBody {
  /** The recipients' domain in lower case, or `relay`. */
  readonly destination: string
  readonly order: 'retry' | 'hold' | 'release' | 'drop'
  readonly by: OperatorAct
}

export interface OrderQueueReply {
  readonly kind: 'ordered'
}

export const orderQueue: CommandType<OrderQueueBody, OrderQueueReply | Refused> = {
  name: 'order-queue',
  entities: () => [],
  counters: () => [],
  facts: () => [
    { read: 'hash', key: holdsKey() },
    { read: 'hash', key: wakesKey() },
  ],
  decide({ destination, order, by }, _states, facts, context) {
    const holds = facts.hash(holdsKey())
    const wasHeld = holds.has(destination)
    if (order === 'hold' && !wasHeld && holds.size >= HOLDS_MAX) return refuse('limit_too_high', { max: HOLDS_MAX })
    const isHeld = order === 'hold' || (wasHeld && order !== 'release')
    const ops: Op[] = []
    if (isHeld && !wasHeld) ops.push({ key: holdsKey(), write: 'HSET', args: [destination, String(context.nowMs)] })
    if (!isHeld && wasHeld) ops.push({ key: holdsKey(), write: 'HDEL', args: [destination] })
    if (order === 'retry') ops.push(...wakeOps(facts.hash(wakesKey()), destination, context.nowMs))
    const subject = { targets: { domain: destination }, before: { held: wasHeld }, after: { held: isHeld } }
    const signals = ops.length > 0 ? [{ topic: HOLDS_TOPIC, text: '' }] : []
    return { kind: 'done', reply: { kind: 'ordered' }, ops: [...ops, ...auditOps(context, by, subject)], signals }
  },
}

/** Writes that tell every process to try a destination now; what all have seen by now is forgotten. */
function wakeOps(wakes: ReadonlyMap<string, string>, destination: string, nowMs: number): Op[] {
  const seen = [...wakes].filter(([, atMs]) => Number(atMs) < nowMs - WAKE_LIFE_MS).map(([name]) => name)
  const ops: Op[] = [{ key: wakesKey(), write: 'HSET', args: [destination, String(nowMs)] }]
  if (seen.length > 0) ops.unshift({ key: wakesKey(), write: 'HDEL', args: seen.slice(0, WAKES_MAX) })
  return ops
}
