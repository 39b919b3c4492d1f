/**
 * data - the bytes of a message as DATA brings them: gathered within the bounds, their lines checked on the way
 *
 * A message whose lines do not all end in CRLF is refused as a whole: if two servers disagree on the end of a message,
 * the rest could be read as commands (SMTP smuggling). NUL ends the text for some, and a bare LF breaks signatures.
 *
 * Guarantees: excess bytes and messages that are refused anyway are discarded; held bytes are released once.
 *
 * Spec submission.lines, submission.held, send.size
 */

import type { SMTPServerDataStream } from 'smtp-server'
import type { HeldBytes } from '../../process/held-bytes.ts'

const NUL = 0x00
const LF = 0x0a
const CR = 0x0d

/** The result. `gone`: the client disconnected before the end. `crowded`: too much is held already. */
export type Gathered =
  | { readonly kind: 'whole'; readonly bytes: Buffer; readonly release: () => void }
  | { readonly kind: 'gone' | 'crowded' | 'bad_lines' | 'too_large' }

/** Gathers a message. Never rejects. The caller that gets a whole message calls `release` after use. */
export function gatherMessage(stream: SMTPServerDataStream, held: HeldBytes): Promise<Gathered> {
  return new Promise((resolve) => {
    const lines = new LineCheck()
    const chunks: Buffer[] = []
    let bytes = 0
    let refused: 'crowded' | 'bad_lines' | 'too_large' | null = null
    const forget = () => {
      held.give(bytes)
      bytes = 0
      chunks.length = 0
    }
    const refuse = (kind: 'crowded' | 'bad_lines' | 'too_large') => {
      refused = kind
      forget()
    }
    stream.on('data', (chunk: Buffer) => {
      if (refused !== null) return
      if (stream.sizeExceeded) refuse('too_large')
      else if (!lines.push(chunk)) refuse('bad_lines')
      else if (!held.take(chunk.length)) refuse('crowded')
      else {
        bytes += chunk.length
        chunks.push(chunk)
      }
    })
    stream.once('end', () => {
      if (refused === null && !lines.isWhole) refuse('bad_lines')
      if (stream.sizeExceeded) refuse('too_large')
      if (refused !== null) resolve({ kind: refused })
      else resolve({ kind: 'whole', bytes: Buffer.concat(chunks, bytes), release: once(forget) })
    })
    // The library destroys the stream when the client disconnects; without a listener that would end the process.
    stream.once('error', () => undefined)
    stream.once('close', () => {
      if (stream.readableEnded) return
      forget()
      resolve({ kind: 'gone' })
    })
  })
}

/** Checks that all lines end in CRLF, without any other CR, LF or NUL. RFC 5321 2.3.8 */
export class LineCheck {
  #isAfterCr = false

  /** Looks at the next bytes; false: they are refused. */
  push(chunk: Uint8Array): boolean {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (bytes.length === 0) return true
    if (bytes.includes(NUL)) return false
    let at = 0
    if (this.#isAfterCr) {
      if (bytes[0] !== LF) return false
      at = 1
    }
    this.#isAfterCr = false
    for (;;) {
      const cr = bytes.indexOf(CR, at)
      const lf = bytes.indexOf(LF, at)
      if (cr < 0) return lf < 0
      if (cr === bytes.length - 1) {
        this.#isAfterCr = true
        return lf < 0
      }
      if (lf !== cr + 1) return false
      at = lf + 1
    }
  }

  /** Whether the last line has its end. */
  get isWhole(): boolean {
    return !this.#isAfterCr
  }
}

function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}
