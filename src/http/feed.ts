/**
 * feed - a streamed answer: events as they come (server-sent events), until one side ends it
 *
 * Guarantees: nothing is written after the end; unread data is buffered, at most a megabyte or the maximum of its
 * feed, and is written as soon as the client reads; a client with more is disconnected; a closing listener ends its
 * feeds.
 *
 * Spec operator.events
 */

import type { ResponseSocket } from './engine/engine.ts'
import type { ListenerContext } from './request.ts'
import type { Feed } from './respond.ts'

/** Maximum buffered bytes for a stalled client, unless its feed has a lower maximum. */
const WAITING_BYTES_MAX = 1024 * 1024
/** An empty comment line. */
const NOTHING = ':\n\n'

const HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  // A proxy that gathers answers would hold each event back until there are many.
  'X-Accel-Buffering': 'no',
}

/**
 * Starts a feed. Takes a response that is neither aborted nor answered. Returns a function that ends it when the
 * client is gone.
 */
export function startFeed(
  wire: ResponseSocket,
  desk: ListenerContext,
  { feed, requestId }: { feed: Feed; requestId: string },
): () => void {
  let isOver = false
  /**
   * False while the library buffers unread data. It gets no more then, because it does not report how much it buffers.
   */
  let isFlowing = true
  const waitingBytesMax = feed.waitingBytesMax ?? WAITING_BYTES_MAX
  const waiting: string[] = []
  let waitingBytes = 0
  let stop: (() => void) | null = null
  const leave = (): void => {
    isOver = true
    desk.feeds.delete(end)
    stop?.()
  }
  const end = (): void => {
    if (isOver) return
    leave()
    wire.cork(() => wire.end(waiting.join('')))
  }
  const write = (text: string): void => {
    wire.cork(() => {
      isFlowing = wire.write(text)
    })
  }
  const send = (text: string): void => {
    if (isOver) return
    if (isFlowing) {
      write(text)
      return
    }
    waiting.push(text)
    waitingBytes += Buffer.byteLength(text)
    if (waitingBytes <= waitingBytesMax) return
    leave()
    wire.close()
  }
  wire.onWritable(() => {
    if (isOver) return
    // The library sends its buffer only with the next write.
    if (!isFlowing) write(NOTHING)
    while (isFlowing && waiting.length > 0) {
      const text = waiting.shift() as string
      waitingBytes -= Buffer.byteLength(text)
      write(text)
    }
  })
  desk.feeds.add(end)
  wire.cork(() => {
    wire.begin({ status: 200, requestId, contentType: 'text/event-stream', headers: HEADERS })
    wire.write(': listening\n\n')
  })
  stop = feed.start({ send, end })
  if (isOver) stop()
  return () => {
    if (!isOver) leave()
  }
}
