/**
 * queue - GET /v1/operator/queue, /v1/operator/queue/messages and /v1/operator/queue/accounts, and POST
 * /v1/operator/queue/{retry,hold,release,drop}
 *
 * An order is logged first, then carried out lane by lane, because mail of one destination is on many shards.
 *
 * Spec queue.list, queue.messages, queue.accounts, queue.order
 */

import { domainToASCII } from 'node:url'
import { QUEUE_ORDER_MAX } from '../../../schemas/limits.ts'
import type {
  DropItemBody,
  DropItemReply,
  OrderQueueBody,
  OrderQueueReply,
  RetryLaneBody,
  RetryLaneReply,
} from '../../actors/message/operate-queue.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import { HOLDS_SHARD } from '../../state/keys.ts'
import {
  countDestinations,
  type LanePlace,
  laneOfDestination,
  readLane,
  readQueue,
} from '../../views/operator/queue.ts'
import { readQueueAccounts } from '../../views/operator/queue-accounts.ts'
import { readQueuedMessages } from '../../views/operator/queued-messages.ts'
import type { ReadKeys } from '../../views/read-keys.ts'
import { giveOrder, parsePage, type Replied } from '../answer.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** Steps of one retry, and items that are ordered at once. */
const STEPS_MAX = 1000
const AT_ONCE = 200

export interface QueueDeps extends OperatorDeps {
  readonly readKeys: ReadKeys
  readonly siteOf: (destination: string) => Promise<string | null>
  /** Reads again which destinations are held, and which are due to be tried. */
  readonly refreshHolds: () => Promise<void>
}

/** GET /v1/operator/queue */
export function makeListQueue({ read, readKeys, nowMs, siteOf }: QueueDeps): HandlerOf<'listQueue'> {
  return asOperator(read, async ({ query }) => {
    const { limit, after } = parsePage(query)
    const queue = await readQueue(readKeys, { limit, after, nowMs: nowMs() }, siteOf)
    return queue === null ? refusalReply('unavailable') : { status: 200, json: queue }
  })
}

/** GET /v1/operator/queue/messages. Spec queue.messages */
export function makeListQueuedMessages({ read, readKeys, nowMs }: QueueDeps): HandlerOf<'listQueuedMessages'> {
  return asOperator(read, async ({ query }) => {
    const { limit } = parsePage(query)
    const destination = destinationOf(query.domain ?? '')
    const messages = await readQueuedMessages(readKeys, { destination, limit, nowMs: nowMs() })
    return messages === null ? refusalReply('unavailable') : { status: 200, json: { messages } }
  })
}

/** GET /v1/operator/queue/accounts. Spec queue.accounts */
export function makeListQueueAccounts({ read, readKeys, nowMs }: QueueDeps): HandlerOf<'listQueueAccounts'> {
  return asOperator(read, async ({ query }) => {
    const { limit } = parsePage(query)
    const destination = query.domain === undefined ? null : destinationOf(query.domain)
    const seen = await readQueueAccounts({ read, readKeys }, { destination, limit, nowMs: nowMs() })
    return seen === null ? refusalReply('unavailable') : { status: 200, json: seen }
  })
}

function destinationOf(domain: string): string {
  return domain === 'relay' ? domain : domainToASCII(domain.toLowerCase())
}

/** POST /v1/operator/queue/hold */
export function makeHoldQueue(deps: QueueDeps): HandlerOf<'holdQueue'> {
  return makeOrder(deps, 'hold', async (destination) => {
    await deps.refreshHolds()
    return countWaiting(deps, destination)
  })
}

/** POST /v1/operator/queue/release */
export function makeReleaseQueue(deps: QueueDeps): HandlerOf<'releaseQueue'> {
  return makeOrder(deps, 'release', async (destination) => {
    await deps.refreshHolds()
    return countWaiting(deps, destination)
  })
}

/** POST /v1/operator/queue/retry */
export function makeRetryQueue(deps: QueueDeps): HandlerOf<'retryQueue'> {
  return makeOrder(deps, 'retry', async (destination) => {
    await deps.refreshHolds()
    return sumOver(deps, destination, (place, max) => retryPlace(deps, place, max))
  })
}

/** POST /v1/operator/queue/drop */
export function makeDropQueue(deps: QueueDeps): HandlerOf<'dropQueue'> {
  return makeOrder(deps, 'drop', (destination) =>
    sumOver(deps, destination, (place, max) => dropPlace(deps, place, max)),
  )
}

type QueueRoute = 'holdQueue' | 'releaseQueue' | 'retryQueue' | 'dropQueue'

/** Logs an order, then carries it out; `perform` answers how many recipients it concerned, null when it could not. */
function makeOrder(
  deps: QueueDeps,
  order: OrderQueueBody['order'],
  perform: (destination: string) => Promise<number | null>,
): HandlerOf<QueueRoute> {
  return asOperator(deps.read, async ({ body }, by) => {
    const { domain } = body
    const destination = domainToASCII(domain).toLowerCase() || domain.toLowerCase()
    const ordered: OrderQueueBody = { destination, order, by }
    const { answer, reply } = await giveOrder<OrderQueueReply>(deps, HOLDS_SHARD, {
      name: 'order-queue',
      body: ordered,
    })
    if (answer !== undefined) return answer
    const recipients = await perform(destination)
    return recipients === null ? refusalReply('unavailable') : { status: 200, json: { recipients, held: reply.isHeld } }
  })
}

async function countWaiting({ readKeys }: QueueDeps, destination: string): Promise<number | null> {
  const counted = await countDestinations(readKeys)
  return counted === null ? null : (counted.get(destination)?.waiting ?? 0)
}

/** Carries an order out in every lane of the destination, up to its bound. */
async function sumOver(
  deps: QueueDeps,
  destination: string,
  perform: (place: LanePlace, max: number) => Promise<number | null>,
): Promise<number | null> {
  const counted = await countDestinations(deps.readKeys)
  if (counted === null) return null
  let sum = 0
  for (const { shard } of counted.get(destination)?.places ?? []) {
    if (sum >= QUEUE_ORDER_MAX) break
    const done = await perform({ shard, lane: laneOfDestination(destination) }, QUEUE_ORDER_MAX - sum)
    if (done === null) return null
    sum += done
  }
  return sum
}

async function retryPlace(deps: QueueDeps, { shard, lane }: LanePlace, max: number): Promise<number | null> {
  let sum = 0
  let fromMs: number | null = deps.nowMs() + 1
  for (let steps = 0; steps < STEPS_MAX && fromMs !== null && sum < max; steps += 1) {
    const body: RetryLaneBody = { lane, fromMs }
    const { reply }: Replied<RetryLaneReply> = await giveOrder(deps, shard, { name: 'retry-lane', body })
    if (reply === undefined) return null
    sum += reply.recipients
    fromMs = reply.nextMs
  }
  return sum
}

async function dropPlace(deps: QueueDeps, place: LanePlace, max: number): Promise<number | null> {
  const items = await readLane(deps.readKeys, place, max)
  if (items === null) return null
  let sum = 0
  for (let start = 0; start < items.length; start += AT_ONCE) {
    const results = await Promise.all(
      items.slice(start, start + AT_ONCE).map((item) => {
        const body: DropItemBody = { lane: place.lane, item }
        return giveOrder<DropItemReply>(deps, place.shard, { name: 'drop-item', body })
      }),
    )
    if (results.some(({ reply }) => reply === undefined)) return null
    sum += results.filter(({ reply }) => reply?.kind === 'dropped').length
  }
  return sum
}
