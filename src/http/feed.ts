/**
 * feed - an answer that goes on: events as they come (server-sent events), until one side ends it
 *
 * Guarantees: nothing is written after the end; a client that does not read is let go once a megabyte waits for it; a
 * listener that closes ends its feeds.
 *
 * Spec operator.events
 */

import type { Desk } from './request.ts'
import type { Feed } from './respond.ts'
import type { Wire } from './wire.ts'

/** Bytes that may wait for a client that does not read. */
const WAITING_BYTES_MAX = 1024 * 1024

/** Starts a feed. In: a response that is neither aborted nor answered. Out: what ends it when the client is gone. */
export function startFeed(wire: Wire, desk: Desk, { feed, requestId }: { feed: Feed; requestId: string }): () => void {
  let isOver = false
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
    wire.cork(() => wire.end('', true))
  }
  const send = (text: string): void => {
    if (isOver) return
    let isFlowing = true
    wire.cork(() => {
      isFlowing = wire.write(text)
    })
    waitingBytes = isFlowing ? 0 : waitingBytes + text.length
    if (waitingBytes > WAITING_BYTES_MAX) {
      leave()
      wire.close()
    }
  }
  wire.onWritable(() => {
    waitingBytes = 0
    return true
  })
  desk.feeds.add(end)
  wire.cork(() => {
    wire.writeHeader('Request-Id', requestId)
    wire.writeHeader('Content-Type', 'text/event-stream')
    wire.writeHeader('Cache-Control', 'no-store')
    wire.write(': listening\n\n')
  })
  stop = feed.start({ send, end })
  if (isOver) stop()
  return () => {
    if (!isOver) leave()
  }
}
