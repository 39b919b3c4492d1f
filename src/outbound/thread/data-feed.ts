/**
 * feed - a message as a stream that holds back its end, so that the final dot is sent only when it may be.
 *
 * The first read means that the server has answered 354. The end is given once every byte before it has left for the
 * kernel, right after `mayFinish` said yes: between that and the dot there is no wait.
 */

import { Readable } from 'node:stream'

const CHUNK_BYTES = 65_536
/** How often a slow connection is looked at for what it has still to send. */
const DRAIN_STEP_MS = 5

export interface FeedInput {
  readonly message: Buffer
  /** Bytes that were read from the feed and have not left yet. */
  pendingBytes(): number
  mayFinish(): boolean
  /** The server wants the message. */
  onStart(): void
  /** Bytes went on; called at least once per chunk. */
  onProgress(): void
  /** The final dot follows at once. */
  onEnd(): void
  /** `mayFinish` said no: the end will never be given. */
  onFenced(): void
}

/** The stream; destroying it ends every look at the connection. */
export function makeFeed(input: FeedInput): Readable {
  let sentBytes = 0
  let isClosing = false
  let pendingBefore = Number.POSITIVE_INFINITY

  const close = () => {
    if (feed.destroyed) return
    const pending = input.pendingBytes() + feed.readableLength
    if (pending < pendingBefore) input.onProgress()
    pendingBefore = pending
    if (pending > 0) setTimeout(close, DRAIN_STEP_MS)
    else if (!input.mayFinish()) input.onFenced()
    else {
      input.onEnd()
      feed.push(null)
    }
  }

  const feed = new Readable({
    highWaterMark: CHUNK_BYTES,
    read() {
      if (isClosing) return
      if (sentBytes === 0) input.onStart()
      input.onProgress()
      const chunk = input.message.subarray(sentBytes, sentBytes + CHUNK_BYTES)
      sentBytes += chunk.length
      if (sentBytes >= input.message.length) {
        isClosing = true
        setImmediate(close)
      }
      feed.push(chunk)
    },
  })
  return feed
}
