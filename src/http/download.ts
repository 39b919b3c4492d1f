/**
 * download - an answer of many bytes: read as the client takes them, piece by piece
 *
 * States: sending -> waiting for the client -> sending -> done, or cut. A client that reads nothing for half a minute
 * is disconnected. If the source fails, so is the client, whose Content-Length then shows that bytes are missing.
 *
 * Guarantees: one piece is held for a client, for any size of the answer; nothing is written after the end; the source
 * is always closed.
 */

import type { AnswerHead, ResponseSocket } from './engine/engine.ts'
import { parseRange } from './range.ts'
import type { ListenerContext } from './request.ts'
import type { Download } from './respond.ts'

/** A connection that reads nothing for this long is closed. */
export const STALLED_MS_MAX = 30_000

export interface DownloadOptions {
  readonly download: Download
  readonly requestId: string
  /** The request's `Range`; '' if it has none. */
  readonly range: string
  readonly isHead: boolean
  /** Called once, when the answer is over; with `fault` if its bytes could not be read. */
  readonly done: (fault?: unknown) => void
  /** In place of our own. */
  readonly stalledMsMax?: number
}

/**
 * Starts an answer. Takes a response that is neither aborted nor answered. Returns a function that ends it when the
 * client is gone.
 */
export function startDownload(
  wire: ResponseSocket,
  desk: Pick<ListenerContext, 'isClosing'>,
  options: DownloadOptions,
): () => void {
  const { download, range, isHead, stalledMsMax = STALLED_MS_MAX } = options
  const done = (fault?: unknown): void => {
    download.end?.()
    options.done(fault)
  }
  const { size } = download
  const asked = range === '' ? null : parseRange(range, size)
  const span = asked === null || asked === 'none' ? { from: 0, length: size } : asked
  const head = makeHead(options, asked)
  if (isHead || asked === 'none' || span.length === 0) {
    const length = asked === 'none' ? 0 : span.length
    wire.answer(head, '', { isHead, closes: desk.isClosing, length })
    done()
    return () => undefined
  }
  let isOver = false
  let hasBegun = false
  /** From then on the response is the library's again, and must not be touched. */
  let isWhole = false
  let resume: (() => void) | null = null
  const over = (): void => {
    isOver = true
    resume?.()
  }
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
  wire.onWritable(() => resume?.())
  /** Sends a piece, in as many steps as the client needs. Returns false if it is gone. */
  const send = async (piece: Uint8Array, sent: number): Promise<boolean> => {
    while (!isOver) {
      const at = hasBegun ? wire.getWriteOffset() - sent : 0
      let isTaken = false
      wire.cork(() => {
        if (!hasBegun) wire.begin(head)
        hasBegun = true
        ;[isTaken, isWhole] = wire.tryEnd(piece.subarray(at), span.length)
      })
      if (isTaken || isWhole) return true
      if (!(await writable())) return false
    }
    return false
  }
  const run = async (): Promise<void> => {
    let sent = 0
    for await (const piece of download.read(span.from, span.length)) {
      if (piece.length > 0 && !(await send(piece, sent))) return
      sent += piece.length
    }
    if (sent !== span.length) throw new Error('The answer is shorter than its Content-Length')
  }
  const finish = (fault?: unknown): void => {
    const isCut = !isOver && !isWhole
    isOver = true
    if (isCut) wire.close()
    done(fault)
  }
  run().then(() => finish(), finish)
  return over
}

function makeHead({ download, requestId }: DownloadOptions, asked: ReturnType<typeof parseRange>): AnswerHead {
  const { size, contentType, headers } = download
  const all = { 'Accept-Ranges': 'bytes', ...headers }
  if (asked === null) return { status: 200, requestId, contentType, headers: all }
  if (asked === 'none')
    return { status: 416, requestId, contentType: null, headers: { ...all, 'Content-Range': `bytes */${size}` } }
  const range = `bytes ${asked.from}-${asked.from + asked.length - 1}/${size}`
  return { status: 206, requestId, contentType, headers: { ...all, 'Content-Range': range } }
}
