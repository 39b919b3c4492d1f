/**
 * pieces - an answer of unknown length: made as the client takes it, piece by piece
 *
 * States: sending -> waiting for the client -> sending -> done, or cut. A client that reads nothing for half a minute
 * is disconnected, and so is one that has not read everything after `msMax`. If the source fails, the connection ends
 * without the last chunk, from which the client sees that bytes are missing. A closing listener ends it in the same
 * way.
 *
 * Guarantees: one piece is held for a client; nothing is written after the end; the source is always closed.
 */

import { STALLED_MS_MAX } from './download.ts'
import type { ResponseSocket } from './engine/engine.ts'
import type { ListenerContext } from './request.ts'
import type { Pieces } from './respond.ts'

export interface PiecesOptions {
  readonly answer: Pieces
  readonly requestId: string
  /** Called once, when the answer is over; with `fault` if its pieces could not be made. */
  readonly done: (fault?: unknown) => void
  /** In place of our own. */
  readonly stalledMsMax?: number
}

/**
 * Starts an answer. Takes a response that is neither aborted nor answered. Returns a function that ends it when the
 * client is gone.
 */
export function startPieces(
  wire: ResponseSocket,
  desk: Pick<ListenerContext, 'feeds'>,
  options: PiecesOptions,
): () => void {
  const { answer, requestId, done, stalledMsMax = STALLED_MS_MAX } = options
  let isOver = false
  let hasBegun = false
  /** False while the library buffers unread data. */
  let isFlowing = true
  let resume: (() => void) | null = null
  const over = (): void => {
    isOver = true
    resume?.()
  }
  const cut = (): void => {
    if (isOver) return
    over()
    wire.close()
  }
  const deadline = setTimeout(cut, answer.msMax)
  /** Resolves once the client takes more; false if it does not, or is gone. */
  const writable = (): Promise<boolean> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), stalledMsMax)
      resume = () => {
        clearTimeout(timer)
        resume = null
        resolve(!isOver)
      }
    })
  wire.onWritable(() => {
    isFlowing = true
    resume?.()
  })
  const begin = (): void => {
    if (!hasBegun) wire.begin({ status: 200, requestId, contentType: answer.contentType, headers: answer.headers })
    hasBegun = true
  }
  const run = async (): Promise<boolean> => {
    for await (const piece of answer.pieces()) {
      if (isOver) return false
      wire.cork(() => {
        begin()
        isFlowing = wire.write(piece)
      })
      if (!isFlowing && !(await writable())) return false
    }
    return !isOver
  }
  const finish = (isWhole: boolean, fault?: unknown): void => {
    clearTimeout(deadline)
    desk.feeds.delete(cut)
    if (!isWhole) cut()
    isOver = true
    if (isWhole) {
      wire.cork(() => {
        begin()
        wire.end('')
      })
    }
    answer.end(isWhole)
    done(fault)
  }
  desk.feeds.add(cut)
  run().then(finish, (fault) => finish(false, fault))
  return over
}
