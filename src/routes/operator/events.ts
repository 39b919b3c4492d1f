/**
 * operator-events - GET /v1/operator/servers/{serverId}/events: a server's events from now on
 *
 * The owner of the server's shard is asked to say each event as it commits, for a minute at a time; what it says is a
 * reference, and the event is read back for it.
 *
 * Spec operator.events
 */

import { homeShard, shardOf } from '../../../cluster/id.ts'
import { accountTopic, serverTopic } from '../../actors/webhook/announce.ts'
import { LISTEN_MS, type ListenReply } from '../../actors/webhook/listen.ts'
import type { HandlerOf } from '../../http/request.ts'
import { type Feed, type FeedSink, refuse } from '../../http/respond.ts'
import type { ServerState } from '../../state/server.ts'
import { type EventReference, parseReference } from '../../state/webhook/item.ts'
import { giveOrder, type Replied } from '../answer.ts'
import { asOperator } from '../as-operator.ts'
import { EVENTS_AT_ONCE, type EventFeedDeps } from '../events.ts'

/** A line that says nothing keeps proxies from ending the connection, and notices a client that is gone. */
const BEAT_MS = 5_000
/** Events that wait to be read back; whoever is that far behind is let go. */
const WAITING_MAX = 1_000

/** GET /v1/operator/servers/{serverId}/events */
export function makeReadEvents(deps: EventFeedDeps): HandlerOf<'readEvents'> {
  return asOperator(deps.read, async ({ params }) => {
    const serverId = (params.serverId ?? '').toLowerCase()
    if (shardOf(serverId) === null) return refuse('not_found')
    const { reply, answer } = await listen(deps, serverId)
    return answer ?? feedOf(deps, reply.server)
  })
}

function listen(deps: EventFeedDeps, serverId: string): Promise<Replied<ListenReply>> {
  return giveOrder(deps, homeShard(serverId), { name: 'listen', body: { serverId } })
}

function feedOf(deps: EventFeedDeps, server: ServerState): Feed {
  return {
    start(sink) {
      const lines = makeLines(deps, server, sink)
      const renewal = setInterval(() => void listen(deps, server.serverId), LISTEN_MS / 2)
      const beat = setInterval(() => sink.send(': beat\n\n'), BEAT_MS)
      const topics = [serverTopic(server.serverId), accountTopic(server.accountId, server.mode)]
      const heard = topics.map((topic) => deps.hear(topic, lines.take))
      return () => {
        lines.end()
        clearInterval(renewal)
        clearInterval(beat)
        for (const one of heard) void one.then((leave) => leave())
      }
    },
  }
}

/** Reads events back, and says them in the order in which they came. */
function makeLines(deps: EventFeedDeps, server: ServerState, sink: FeedSink) {
  const waiting: EventReference[] = []
  let isReading = false
  let isOver = false
  const work = async (): Promise<void> => {
    isReading = true
    while (waiting.length > 0 && !isOver) {
      const some = waiting.splice(0, EVENTS_AT_ONCE)
      const events = await Promise.all(some.map((one) => deps.readEvent(server, one, deps.nowMs())))
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
