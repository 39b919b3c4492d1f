/**
 * data-feed - a message as a stream that withholds its end until the final dot may be sent.
 *
 * The first read means that the server has answered 354. The end is released once every earlier byte has left for the
 * kernel, directly after `mayFinish` returned open, so there is no wait between the check and the dot. While it
 * returns held, the end waits, because the store does not answer and the server's reply could not be recorded.
 */

import { Readable } from 'node:stream'
import type { FenceState } from '../../../cluster/fence.ts'

const CHUNK_BYTES = 65_536
/** How often a slow connection is checked for unsent bytes. */
const DRAIN_STEP_MS = 5
const HELD_STEP_MS = 50
/**
 * Servers wait three minutes for a part of the message (RFC 5321 4.5.3.2.5); the connection is of use to others too.
 */
const HELD_MS_MAX = 20_000

export interface FeedInput {
  readonly message: Buffer
  /** Bytes that were read from the feed and have not left yet. */
  pendingBytes(): number
  mayFinish(): FenceState
  /** The server wants the message. */
  onStart(): void
  /** Bytes went on; called at least once per chunk. */
  onProgress(): void
  /** The final dot follows at once. */
  onEnd(): void
  /** `mayFinish` returned shut, or held for too long: the end is never released. */
  onFenced(): void
}

/** The stream; destroying it ends every look at the connection. */
export function makeFeed(input: FeedInput): Readable {
  let sentBytes = 0
  let isClosing = false
  let heldMs = 0
  let pendingBefore = Number.POSITIVE_INFINITY

  const close = () => {
    if (feed.destroyed) return
    const pending = input.pendingBytes() + feed.readableLength
    if (pending < pendingBefore) input.onProgress()
    pendingBefore = pending
    if (pending > 0) setTimeout(close, DRAIN_STEP_MS)
    else end(input.mayFinish())
  }

  const end = (state: FenceState) => {
    if (state === 'open') {
      input.onEnd()
      feed.push(null)
    } else if (state === 'held' && heldMs < HELD_MS_MAX) {
      heldMs += HELD_STEP_MS
      setTimeout(close, HELD_STEP_MS)
    } else input.onFenced()
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
