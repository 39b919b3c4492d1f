/**
 * body-room - reads submitted messages: small ones here, large ones in a thread, each within its time and memory
 *
 * Spec submission.log
 */

import { ThreadRoom } from '../../process/thread-room.ts'
import { readSubmittedBody, type SubmittedBody } from '../../sending/submitted-body.ts'

/** A message of up to this much is read within a millisecond, which is less than the way to a thread. */
const SMALL_BYTES_MAX = 32 * 1024
const READ_MS_MAX = 20_000
const HEAP_MB_MAX = 256

export interface BodyInput {
  readonly edited: Buffer
  readonly isKeyed: boolean
}

export interface BodyRoom {
  /**
   * Reads a message. `busy`: too much is waiting, it took too long, or the thread ended; the message may well be read
   * at the next try. Never rejects.
   */
  read(input: BodyInput): SubmittedBody | Promise<SubmittedBody | 'busy'>
  close(): Promise<void>
}

/** Makes the room; its thread begins with the first large message. */
export function makeBodyRoom(readMsMax: number = READ_MS_MAX): BodyRoom {
  const room = new ThreadRoom<BodyInput, SubmittedBody>({
    body: new URL('./body-thread.js', import.meta.url),
    jobMsMax: readMsMax,
    heapMbMax: HEAP_MB_MAX,
  })
  return {
    read(input) {
      if (input.edited.length <= SMALL_BYTES_MAX) return readSubmittedBody(input)
      return room.run(input).then((run) => (run.how === 'done' ? run.result : 'busy'))
    },
    close: () => room.close(),
  }
}
