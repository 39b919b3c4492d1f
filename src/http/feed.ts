/**
 * feed - an answer that goes on: events as they come (server-sent events), until one side ends it
 *
 * Guarantees: nothing is written after the end; what a client has not taken waits for it, a megabyte at most or as
 * much as its feed says, and is written as soon as the client reads on; one that lets more wait is let go; a listener
 * that closes ends its feeds.
 *
 * Spec operator.events
 */

import type { Wire } from './engine/engine.ts'
import type { Desk } from './request.ts'
import type { Feed } from './respond.ts'

/** Bytes that may wait for a client that does not read, where its feed names no fewer. */
const WAITING_BYTES_MAX = 1024 * 1024
/** A line that says nothing. */
const NOTHING = ':\n\n'

const HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  // A proxy that gathers answers would hold each event back until there are many.
  'X-Accel-Buffering': 'no',
}

/** Starts a feed. In: a response that is neither aborted nor answered. Out: what ends it when the client is gone. */
export function startFeed(wire: Wire, desk: Desk, { feed, requestId }: { feed: Feed; requestId: string }): () => void {
  let isOver = false
  /**
   * False: the library holds what the client has not taken. It gets no more then, for it says not how much it holds.
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
    // The library hands on what it holds with the next write alone.
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
