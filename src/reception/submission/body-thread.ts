/** body-thread - the body of the thread that reads large submitted messages. */

import { parentPort } from 'node:worker_threads'
import type { ThreadMessage } from '../../process/job-thread.ts'
import { readSubmittedBody, type SubmittedBody } from '../../sending/submitted-body.ts'
import type { BodyInput } from './body-room.ts'

const port = parentPort!
const post = (message: ThreadMessage<SubmittedBody>): void => port.postMessage(message)

post({ ready: true })
port.on('message', ({ edited, isKeyed }: BodyInput) => {
  try {
    const bytes = Buffer.from(edited.buffer, edited.byteOffset, edited.byteLength)
    post({ done: readSubmittedBody({ edited: bytes, isKeyed }) })
  } catch {
    post({ failed: true })
  }
})
