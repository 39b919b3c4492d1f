/**
 * storm - 64 requests with one Idempotency-Key at once, each repeated until it has its 200. All answers must name one
 * message.
 */
import { type Accepted, postEmail } from '../support/clients/ledger.ts'

const REQUESTS = 64
const TRIES_MAX = 2_400
const AGAIN_MS = 50

export interface Storm {
  readonly ports: readonly number[]
  readonly token: string
  readonly key: string
  readonly accepted: (message: Accepted) => Promise<void>
}

/** Returns the number of requests whose answer named another message than the first. */
export async function storm({ ports, token, key, accepted }: Storm): Promise<{ differing: number }> {
  const body = { from: 'you@simulator.test', to: ['storm@example.com'], subject: 'Storm', text: 'A text.' }
  const one = async (n: number): Promise<string> => {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const answer = await postEmail({ port: ports[(n + tries) % ports.length] as number, token }, body, key)
      if (answer?.status === 200) return (JSON.parse(answer.body) as { messageId: string }).messageId
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
    throw new Error('A request of the storm got no 200 in all its tries')
  }
  const ids = await Promise.all(Array.from({ length: REQUESTS }, (_, n) => one(n)))
  const [messageId = ''] = ids
  await accepted({ key, messageId, token })
  return { differing: ids.filter((id) => id !== messageId).length }
}
