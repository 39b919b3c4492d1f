/**
 * download - an answer of many bytes: read as the client takes them, piece by piece
 *
 * States: sending -> waiting for the client -> sending -> done, or cut. A client that takes nothing for half a minute
 * is let go, and so is one whose bytes cannot be read any more: its Content-Length tells it that something is missing.
 *
 * Guarantees: one piece is held for a client, whatever the answer's size; nothing is written after the end; the source
 * is closed whatever ends the answer.
 */

import { parseRange } from './range.ts'
import type { Desk } from './request.ts'
import type { Download } from './respond.ts'
import { STATUS_LINES, type Wire } from './wire.ts'

/** A connection that takes nothing for so long is given up. */
export const STALLED_MS_MAX = 30_000

export interface DownloadOptions {
  readonly download: Download
  readonly requestId: string
  /** The request's `Range`; '' where it has none. */
  readonly range: string
  readonly isHead: boolean
  /** Called once, when the answer is over; `fault` where its bytes could not be read. */
  readonly done: (fault?: unknown) => void
  /** In place of our own. */
  readonly stalledMsMax?: number
}

/** Starts an answer. In: a response that is neither aborted nor answered. Out: what ends it when the client is gone. */
export function startDownload(wire: Wire, desk: Pick<Desk, 'isClosing'>, options: DownloadOptions): () => void {
  const { download, range, isHead, done, stalledMsMax = STALLED_MS_MAX } = options
  const { size } = download
  const asked = range === '' ? null : parseRange(range, size)
  const span = asked === null || asked === 'none' ? { from: 0, length: size } : asked
  const head = () => writeHead(wire, options, asked)
  if (isHead || asked === 'none' || span.length === 0) {
    wire.cork(() => {
      head()
      if (isHead && asked !== 'none') {
        wire.writeHeader('Content-Length', String(span.length))
        wire.endWithoutBody()
      } else wire.end('', desk.isClosing)
    })
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
  /** Resolves once the client takes more; false where it does not, or is gone. */
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
    resume?.()
    return true
  })
  /** Hands a piece over, in as many steps as the client wants. Out: false where it is gone. */
  const send = async (piece: Uint8Array, sent: number): Promise<boolean> => {
    while (!isOver) {
      const at = hasBegun ? wire.getWriteOffset() - sent : 0
      let isTaken = false
      wire.cork(() => {
        if (!hasBegun) head()
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
    if (sent !== span.length) throw new Error('The answer is shorter than it was said to be')
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

function writeHead(wire: Wire, { download, requestId }: DownloadOptions, asked: ReturnType<typeof parseRange>): void {
  const { size, contentType, headers = {} } = download
  if (asked !== null) wire.writeStatus(STATUS_LINES[asked === 'none' ? 416 : 206] as string)
  wire.writeHeader('Request-Id', requestId)
  wire.writeHeader('Accept-Ranges', 'bytes')
  if (asked === 'none') wire.writeHeader('Content-Range', `bytes */${size}`)
  else {
    wire.writeHeader('Content-Type', contentType)
    if (asked !== null)
      wire.writeHeader('Content-Range', `bytes ${asked.from}-${asked.from + asked.length - 1}/${size}`)
  }
  for (const [name, value] of Object.entries(headers)) wire.writeHeader(name, value)
}
