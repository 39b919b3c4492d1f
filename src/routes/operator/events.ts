/**
 * events - GET /v1/operator/servers/{serverId}/events: a server's events from now on
 *
 * The owner of the server's shard publishes each event as it commits, for a minute per request. It publishes a
 * reference, from which the event is read back, received mail as a reference too, so the operator sees no content
 * here.
 *
 * Guarantee: a feed ends within a few seconds of its key, its session or its server.
 *
 * Spec operator.events, operator.session
 */

import { homeShard, shardOf } from '../../../cluster/id.ts'
import { accountTopic, serverTopic } from '../../actors/webhook/announce.ts'
import { LISTEN_MS, type ListenReply } from '../../actors/webhook/listen.ts'
import type { HandlerOf } from '../../http/request.ts'
import { type Feed, type FeedSink, refusalReply } from '../../http/respond.ts'
import type { ServerState } from '../../state/server.ts'
import { type EventReference, parseReference } from '../../state/webhook/item.ts'
import { isOperatorLive } from '../../views/account.ts'
import type { OperatorKey } from '../../views/key.ts'
import { giveOrder, type Replied } from '../answer.ts'
import { asOperator } from '../as-operator.ts'
import { EVENTS_AT_ONCE, type EventFeedDeps } from '../events.ts'

/**
 * An empty line keeps proxies from ending the connection and detects a disconnected client; the key is checked again
 * with each.
 */
const BEAT_MS = 5_000
/** Events waiting to be read back; a client that is further behind is disconnected. */
const WAITING_MAX = 1_000

/** GET /v1/operator/servers/{serverId}/events */
export function makeReadEvents(deps: EventFeedDeps): HandlerOf<'readEvents'> {
  return asOperator(deps.read, async ({ params, key }) => {
    const serverId = (params.serverId ?? '').toLowerCase()
    if (shardOf(serverId) === null) return refusalReply('not_found')
    const { reply, answer } = await listen(deps, serverId)
    return answer ?? makeFeed(deps, reply.server, key)
  })
}

function listen(deps: EventFeedDeps, serverId: string): Promise<Replied<ListenReply>> {
  return giveOrder(deps, homeShard(serverId), { name: 'listen', body: { serverId } })
}

function makeFeed(deps: EventFeedDeps, server: ServerState, key: OperatorKey): Feed {
  return {
    start(sink) {
      const lines = makeLines(deps, server, sink)
      const renew = async (): Promise<void> => {
        if ((await listen(deps, server.serverId)).refused != null) sink.end()
      }
      // A store that does not answer is asked again with the next beat.
      const look = async (): Promise<void> => {
        if ((await isOperatorLive(deps.read, key)) === false) sink.end()
      }
      const timers = [
        setInterval(() => void renew(), LISTEN_MS / 2),
        setInterval(() => {
          sink.send(': beat\n\n')
          void look()
        }, BEAT_MS),
      ]
      const topics = [serverTopic(server.serverId), accountTopic(server.accountId, server.mode)]
      const heard = topics.map((topic) => deps.hear(topic, lines.take))
      return () => {
        lines.end()
        for (const timer of timers) clearInterval(timer)
        for (const one of heard) void one.then((leave) => leave())
      }
    },
  }
}

/** Reads events back, and sends them in the order in which they were received. */
function makeLines(deps: EventFeedDeps, server: ServerState, sink: FeedSink) {
  const owner = { ...server, inboundContent: 'reference' } as const
  const waiting: EventReference[] = []
  let isReading = false
  let isOver = false
  const work = async (): Promise<void> => {
    isReading = true
    while (waiting.length > 0 && !isOver) {
      const some = waiting.splice(0, EVENTS_AT_ONCE)
      const events = await Promise.all(some.map((one) => deps.readEvent(owner, one, deps.nowMs())))
      for (const event of events) {
        const body = event === null || event === undefined ? null : { id: deps.newEventId(), attempt: 1, ...event }
        if (body !== null) sink.send(`data: ${JSON.stringify(body)}\n\n`)
      }
    }
    isReading = false
  }
  return {
    take(text: string): void {
      if (waiting.length >= WAITING_MAX) {
        sink.end()
        return
      }
      waiting.push(parseReference(text))
      if (!isReading) void work()
    },
    end(): void {
      isOver = true
    },
  }
}
