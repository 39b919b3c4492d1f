/**
 * ledger - clients that send until they have an answer, and what they were told.
 *
 * Every message has an Idempotency-Key of its own, and a client tries again with it until it gets a 200: whatever is
 * killed meanwhile, each key must have made one message, each message one outcome for each recipient, each counter the
 * exact number.
 */
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'

const TRY_MS_MAX = 8_000
const TRIES_MAX = 400

export interface Answered {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly tookMs: number
}

export interface Ledger {
  /** Key -> ids of the messages that it was told of. */
  readonly told: Map<string, Set<string>>
  /** Statuses by how often they came; 0 for no answer. */
  readonly statuses: Map<number, number>
  /** Answers other than 200, with how long they took. */
  readonly refusals: Answered[]
}

export interface LoadOptions {
  readonly port: number
  readonly token: string
  readonly clients: number
  readonly recipient: (n: number) => string
  /** Asked before each new message. */
  goOn(sent: number): boolean
}

/** One POST /v1/email. Null: no answer. */
export function postEmail(
  { port, token, agent }: { port: number; token: string; agent?: Agent },
  body: object,
  key: string | null,
): Promise<Answered | null> {
  const startedAtMs = performance.now()
  return new Promise((resolve) => {
    const text = JSON.stringify(body)
    const sent = request(
      {
        port,
        host: '127.0.0.1',
        path: '/v1/email',
        method: 'POST',
        agent: agent ?? false,
        timeout: TRY_MS_MAX,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
          ...(key !== null && { 'idempotency-key': key }),
        },
      },
      (answer) => {
        let said = ''
        answer.on('data', (piece: Buffer) => (said += piece))
        answer.on('end', () => {
          const tookMs = performance.now() - startedAtMs
          resolve({ status: answer.statusCode ?? 0, body: said, headers: answer.headers, tookMs })
        })
        answer.on('error', () => resolve(null))
        answer.on('aborted', () => resolve(null))
      },
    )
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(null))
    sent.end(text)
  })
}

/** Sends with all clients until `goOn` says no; each message until it has its 200. */
export async function sendAll(options: LoadOptions): Promise<Ledger> {
  const ledger: Ledger = { told: new Map(), statuses: new Map(), refusals: [] }
  const agent = new Agent({ keepAlive: true, maxSockets: options.clients })
  let sent = 0
  const client = async (): Promise<void> => {
    while (options.goOn(sent)) {
      sent += 1
      await sendOne(options, { ledger, agent, n: sent })
    }
  }
  await Promise.all(Array.from({ length: options.clients }, client))
  agent.destroy()
  return ledger
}

async function sendOne(
  { port, token, recipient }: LoadOptions,
  { ledger, agent, n }: { ledger: Ledger; agent: Agent; n: number },
): Promise<void> {
  const key = randomUUID()
  const body = { from: 'you@simulator.test', to: [recipient(n)], subject: `Number ${n}`, text: 'A text.' }
  const ids = new Set<string>()
  ledger.told.set(key, ids)
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const answer = await postEmail({ port, token, agent }, body, key)
    const status = answer?.status ?? 0
    ledger.statuses.set(status, (ledger.statuses.get(status) ?? 0) + 1)
    if (answer !== null && status === 200) {
      ids.add((JSON.parse(answer.body) as { messageId: string }).messageId)
      return
    }
    if (answer !== null) ledger.refusals.push(answer)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error('A message got no 200 in all its tries')
}
