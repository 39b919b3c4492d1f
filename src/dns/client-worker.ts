/** client-worker - the body of the thread that asks the DNS: each question is answered once, in any order */

import { parentPort, workerData } from 'node:worker_threads'
import { type ClientOptions, openClient } from './client.ts'
import type { DnsQuestion, DnsReply } from './threaded-client.ts'

const port = parentPort!
const client = openClient(workerData as ClientOptions)

port.on('message', ({ id, type, name }: DnsQuestion) => {
  void client.query(type, name).then((answer) => port.postMessage({ id, answer } satisfies DnsReply))
})
