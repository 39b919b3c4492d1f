/** batches - fills the product through `POST /v1/email/batch`, four requests of a hundred messages at once */

import { type Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Target } from './message.ts'

const BATCH = 100
const SEEDERS = 4

/** Posts a body to a path; throws Error for any answer but 200. */
export type Client = (path: string, body: object) => Promise<unknown>

/** A client over kept connections, which uses the keys in turn. */
export function makeClient({ port, keys }: Pick<Target, 'port' | 'keys'>, agent: Agent): Client {
  let turn = 0
  return postTo({ port, agent, headersOf: () => ({ authorization: `Bearer ${keys[turn++ % keys.length]}` }) })
}

/** A client that authenticates each request in its own way. */
export function postTo({
  port,
  agent,
  headersOf,
}: {
  readonly port: number
  readonly agent: Agent
  readonly headersOf: () => Readonly<Record<string, string>>
}): Client {
  return async (path, body) => {
    const headers = { ...headersOf(), 'content-type': 'application/json' }
    const asked = request({ port, path, method: 'POST', agent, headers })
    asked.end(JSON.stringify(body))
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      asked.once('response', resolve).once('error', reject)
    })
    const said = await text(answer)
    if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${said}`)
    return JSON.parse(said)
  }
}

/** Sends messages 0 to `count` - 1; resolves when all are accepted. */
export async function sendBatches(client: Client, count: number, messageOf: (n: number) => object): Promise<void> {
  let next = 0
  const seeder = async () => {
    while (next < count) {
      const first = next
      next += BATCH
      const length = Math.min(BATCH, count - first)
      await client('/v1/email/batch', { messages: Array.from({ length }, (_, place) => messageOf(first + place)) })
    }
  }
  await Promise.all(Array.from({ length: SEEDERS }, seeder))
}
