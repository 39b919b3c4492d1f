/**
 * mail-memory - mails that come into memory, within a bound for all of them and a smaller one for each client
 *
 * A slow sender holds only the bytes that have come. Once a mail is whole, its bytes are in memory that threads share.
 */

import { HeldBytes } from '../../process/held-bytes.ts'

/** Bytes of all mails, and the share of one client. */
const BYTES_MAX = 96 * 1024 * 1024
const CLIENT_BYTES_MAX = 32 * 1024 * 1024

export interface KeptMail {
  readonly bytes: Uint8Array
  /** Gives the memory back. Must be called once. */
  release(): void
}

export class MailMemory {
  readonly #mailBytesMax: number
  readonly #all = new HeldBytes(BYTES_MAX)
  readonly #clients = new Map<string, number>()

  constructor(mailBytesMax: number) {
    this.#mailBytesMax = mailBytesMax
  }

  /** Takes a mail of a client, or says why not. Rejects if the mail is cut off. */
  async keep(pieces: AsyncIterable<Buffer>, client: string): Promise<KeptMail | 'too_large' | 'full'> {
    const kept: Buffer[] = []
    let bytes = 0
    const release = () => this.#give(client, bytes)
    try {
      for await (const piece of pieces) {
        const refusal = bytes + piece.length > this.#mailBytesMax ? 'too_large' : this.#take(client, piece.length)
        if (refusal !== null) {
          release()
          return refusal
        }
        bytes += piece.length
        kept.push(piece)
      }
    } catch (error) {
      release()
      throw error
    }
    return { bytes: shared(kept, bytes), release }
  }

  #take(client: string, bytes: number): 'full' | null {
    const own = (this.#clients.get(client) ?? 0) + bytes
    if (own > CLIENT_BYTES_MAX || !this.#all.take(bytes)) return 'full'
    this.#clients.set(client, own)
    return null
  }

  #give(client: string, bytes: number): void {
    this.#all.give(bytes)
    const own = (this.#clients.get(client) ?? 0) - bytes
    if (own > 0) this.#clients.set(client, own)
    else this.#clients.delete(client)
  }
}

function shared(pieces: readonly Buffer[], bytes: number): Uint8Array {
  const whole = new Uint8Array(new SharedArrayBuffer(bytes))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
