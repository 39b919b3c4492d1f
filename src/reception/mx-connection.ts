/**
 * mx-connection - one session of the MX listener: the library's dialogue, bounded in commands, and DATA as RFC 5321 has
 * it
 *
 * Spec mx.idle, mx.dots
 */

import type { Socket } from 'node:net'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'
import { MX_COMMANDS_MAX, MX_MAILLESS_MINUTES_MAX, MX_SESSION_MINUTES_MAX } from '../../schemas/limits.ts'

const MINUTE_MS = 60_000

/** A session. States: idle -> (a mail in hand -> idle)* -> closed. */
export class MxConnection extends SMTPConnection {
  /** The accepted socket, which holds the place, also under TLS. */
  readonly place: Socket = this._socket as Socket
  /** A mail is being received, or is in the handler's hands. */
  isBusy = false
  /** The session has ended, under TLS too. */
  onGone: () => void = () => undefined
  readonly #openedMs = performance.now()
  /** When the last mail was done, or the session was opened. */
  #sinceMs = performance.now()
  #commands = 0

  /** A mail was answered. */
  mailDone(): void {
    this.isBusy = false
    this.#sinceMs = performance.now()
    this.#commands = 0
  }

  /** Whether the session's time is over, which never holds while a mail is in hand. */
  isOver(nowMs: number): boolean {
    if (this.isBusy) return false
    const isMailless = nowMs - this.#sinceMs >= MX_MAILLESS_MINUTES_MAX * MINUTE_MS
    return isMailless || nowMs - this.#openedMs >= MX_SESSION_MINUTES_MAX * MINUTE_MS
  }

  override _onClose(): void {
    super._onClose()
    this.onGone()
  }

  override _onCommand(command: Buffer, callback?: () => void): void {
    this.#commands += 1
    if (this.#commands <= MX_COMMANDS_MAX) super._onCommand(command, callback)
    else this.send(421, '4.7.0 Too many commands without a mail')
  }

  // The library's constructor calls this before the fields of this class exist.
  override _createParser(): SMTPStream {
    const parser = new MxStream({ maxCommandLength: this._server.options.maxCommandLength })
    parser.oncommand = (command, callback) => this._onCommand(command, callback)
    parser.on('error', (error: Error) => this.send(421, `Error: ${error.message}`))
    return parser
  }
}

const CR = 0x0d
const LF = 0x0a
const DOT = 0x2e

/** The position of the next octet in a line of DATA. `dot` and `dot-cr` follow a dot at the start of the line. */
type Place = 'text' | 'cr' | 'start' | 'dot' | 'dot-cr'

/** The place after a CR, an LF and a dot, by the place before it. Any other octet leads to `text`. */
const NEXT_PLACES: Readonly<Record<Place, { readonly [octet: number]: Place | 'end' }>> = {
  text: { [CR]: 'cr' },
  cr: { [CR]: 'cr', [LF]: 'start' },
  start: { [CR]: 'cr', [DOT]: 'dot' },
  dot: { [CR]: 'dot-cr' },
  'dot-cr': { [CR]: 'cr', [LF]: 'end' },
}

/**
 * The library also removes a dot after a bare LF, which is not the end of a line (RFC 5321 2.3.8): the mail then loses
 * an octet, and its signature breaks. Here a line ends only in CRLF, and a leading dot followed by other characters is
 * removed (4.5.2).
 */
class MxStream extends SMTPStream {
  #place: Place = 'start'

  override startDataMode(...args: Parameters<SMTPStream['startDataMode']>): ReturnType<SMTPStream['startDataMode']> {
    this.#place = 'start'
    return super.startDataMode(...args)
  }

  override _feedDataStream(chunk: Buffer, done: (error?: Error | null) => void): void {
    const kept: Buffer[] = []
    let from = 0
    for (let at = 0; at < chunk.length; at += 1) {
      const place = NEXT_PLACES[this.#place][chunk[at] as number] ?? 'text'
      if (place === 'end') {
        this.#emit(kept)
        this._endDataMode(false, chunk.subarray(at + 1), done)
        return
      }
      if (this.#place === 'dot-cr') kept.push(HELD_CR)
      if (place === 'dot') kept.push(chunk.subarray(from, at))
      // The dot is removed. A CR after it is held back: with LF it ends the mail, otherwise it is text.
      if (place === 'dot' || place === 'dot-cr') from = at + 1
      if (place === 'text') at = skipText(chunk, at)
      this.#place = place
    }
    kept.push(chunk.subarray(from))
    this.#whenDrained(this.#emit(kept), done)
  }

  /** Whether the reader takes more now. */
  #emit(pieces: readonly Buffer[]): boolean {
    const bytes = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
    this._countDataBytes(bytes.length)
    return bytes.length === 0 || this._dataStream?.writable !== true || this._dataStream.write(bytes)
  }

  #whenDrained(isReady: boolean, done: () => void): void {
    const stream = this._dataStream
    if (isReady || stream === null || stream.destroyed) {
      done()
      return
    }
    // A stream that is destroyed never drains, it only closes.
    const go = () => {
      stream.off('drain', go)
      stream.off('close', go)
      done()
    }
    stream.once('drain', go)
    stream.once('close', go)
  }
}

const HELD_CR = Buffer.of(CR)

/** Skips to the last octet before the next CR, because other octets do not change the state. */
function skipText(chunk: Buffer, at: number): number {
  const cr = chunk.indexOf(CR, at)
  return (cr < 0 ? chunk.length : cr) - 1
}
