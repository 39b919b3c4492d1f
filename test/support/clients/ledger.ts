/**
 * ledger - clients that send until they get an answer, and the answers that they got.
 *
 * Every message has its own Idempotency-Key, and a client repeats it until it gets a 200. Whatever is killed
 * meanwhile, each key must lead to one message, each message to one outcome per recipient, and each counter must be
 * exact.
 */
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { until } from '../machine/until.ts'

const TRY_MS_MAX = 8_000
const TRIES_MAX = 6_000
const AGAIN_MS = 25
/** While no process listens. A starting process must not share the processor with clients that keep connecting. */
const UNHEARD_AGAIN_MS = 100
const PASS_MS_MAX = 30_000

export interface Answered {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly startedAtMs: number
  readonly tookMs: number
}

/** A request that got no answer. */
export interface Cut {
  /** The code of the error, such as ECONNRESET. */
  readonly code: string
  /** Whether there was a connection. False if no process listened. */
  readonly connected: boolean
  /** Whether it went over a connection that had served another request before. */
  readonly reused: boolean
}

export interface Ledger {
  /** Key -> ids of the messages in its answers. */
  readonly told: Map<string, Set<string>>
  /** Statuses by how often they came; 0 for no answer. */
  readonly statuses: Map<number, number>
  /** Answers other than 200, with how long they took. */
  readonly refusals: Answered[]
  /** Requests without an answer. */
  readonly cuts: Cut[]
  /** Keys that were refused without ever being left unanswered, and yet led to a message: a false refusal. */
  readonly falselyRefused: string[]
}

/** A message that has its 200. */
export interface Accepted {
  readonly key: string
  readonly messageId: string
  readonly token: string
}

/** An answer other than 200, or (status 0) none. */
export interface Refusal {
  readonly status: number
  readonly token: string
  readonly body: string
  /** When the try was begun, by `performance.now()`. */
  readonly startedAtMs: number
}

export interface LoadOptions {
  /** The target. With several, each try goes to the next one. */
  readonly port: number | readonly number[]
  /** Key of a server; of several, message n goes by key n modulo their number. */
  readonly token: string | readonly string[]
  readonly clients: number
  readonly recipient: (n: number) => string
  /** Sender of every message; the simulator's own domain by default. */
  readonly from?: string
  /** Further fields of a message. */
  readonly fields?: (n: number) => object
  /** The Idempotency-Key of a message; a new one by default. */
  readonly keyOf?: (n: number) => string
  /** The pause of a client between two messages, in ms. */
  readonly everyMs?: number
  /** How long a client waits for an answer, in ms. */
  readonly tryMsMax?: number
  /** Called for each message that got its 200, before its client continues. */
  readonly accepted?: (message: Accepted) => Promise<void>
  /** Told of each other answer, and of a try without one that had a connection. */
  readonly refused?: (refusal: Refusal) => void
  /** Asked before each new message. */
  goOn(sent: number): boolean
}

/** A load that runs. */
export interface Load {
  /** Waits until so many more messages have been begun. */
  passes(count: number): Promise<void>
  /** Begins no more messages. Resolves when each has its 200. */
  end(): Promise<Ledger>
}

export interface Desk {
  readonly port: number
  readonly token: string
  readonly agent?: Agent
  /** Told of a request that gets no answer. */
  readonly cut?: (cut: Cut) => void
  /** How long to wait for an answer, in ms. */
  readonly tryMsMax?: number
}

/** One POST /v1/email. Null if there is no answer. */
export function postEmail(
  { port, token, agent, cut, tryMsMax = TRY_MS_MAX }: Desk,
  body: object | string,
  key: string | null,
): Promise<Answered | null> {
  const startedAtMs = performance.now()
  return new Promise((resolve) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    let connected = false
    const fail = (error: NodeJS.ErrnoException): void => {
      cut?.({ code: error.code ?? error.message, connected, reused: sent.reusedSocket })
      resolve(null)
    }
    const sent = request(
      {
        port,
        host: '127.0.0.1',
        path: '/v1/email',
        method: 'POST',
        agent: agent ?? false,
        timeout: tryMsMax,
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
          resolve({ status: answer.statusCode ?? 0, body: said, headers: answer.headers, startedAtMs, tookMs })
        })
        answer.on('error', fail)
      },
    )
    sent.on('socket', (socket) => {
      connected = !socket.connecting
      if (!connected) socket.once('connect', () => (connected = true))
    })
    sent.on('timeout', () => sent.destroy(new Error('No answer in time')))
    sent.on('error', fail)
    sent.end(text)
  })
}

/** Sends with all clients until `goOn` returns false. Each message is repeated until it has its 200. */
export async function sendAll(options: LoadOptions): Promise<Ledger> {
  const ledger: Ledger = { told: new Map(), statuses: new Map(), refusals: [], cuts: [], falselyRefused: [] }
  const agent = new Agent({ keepAlive: true, maxSockets: options.clients })
  let sent = 0
  const client = async (): Promise<void> => {
    while (options.goOn(sent)) {
      sent += 1
      await sendOne(options, { ledger, agent, n: sent })
      if (options.everyMs !== undefined) await pause(options.everyMs)
    }
  }
  await Promise.all(Array.from({ length: options.clients }, client))
  agent.destroy()
  return ledger
}

/** Starts a load that runs until it is ended. If a client gives up, the next wait on the load throws its error. */
export function startLoad(options: Omit<LoadOptions, 'goOn'>): Load {
  let going = true
  let begun = 0
  let failure: Error | null = null
  const all = sendAll({
    ...options,
    goOn(sent) {
      begun = sent
      return going
    },
  })
  all.catch((error: Error) => (failure = error))
  return {
    async passes(count) {
      const from = begun
      await until(() => {
        if (failure !== null) throw failure
        return begun > from + count
      }, PASS_MS_MAX)
    },
    end() {
      going = false
      return all
    },
  }
}

async function sendOne(
  {
    port,
    token,
    recipient,
    from = 'you@simulator.test',
    fields = () => ({}),
    keyOf = () => randomUUID(),
    tryMsMax = TRY_MS_MAX,
    accepted,
    refused,
  }: LoadOptions,
  { ledger, agent, n }: { ledger: Ledger; agent: Agent; n: number },
): Promise<void> {
  const key = keyOf(n)
  const mine = typeof token === 'string' ? token : (token[n % token.length] as string)
  const body = { from, to: [recipient(n)], subject: `Number ${n}`, text: 'A text.', ...fields(n) }
  const ids = new Set<string>()
  ledger.told.set(key, ids)
  let wasSent = true
  const cut = (one: Cut): void => {
    ledger.cuts.push(one)
    wasSent = one.connected
  }
  let isInDoubt = false
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const at = typeof port === 'number' ? port : (port[(n + tries) % port.length] as number)
    const startedAtMs = performance.now()
    const answer = await postEmail({ port: at, token: mine, agent, cut, tryMsMax }, body, key)
    const status = answer?.status ?? 0
    ledger.statuses.set(status, (ledger.statuses.get(status) ?? 0) + 1)
    if (answer === null) isInDoubt = true
    else if (status === 200) {
      const { messageId } = JSON.parse(answer.body) as { messageId: string }
      ids.add(messageId)
      await accepted?.({ key, messageId, token: mine })
      if (answer.headers['idempotent-replayed'] !== undefined && !isInDoubt) ledger.falselyRefused.push(key)
      return
    } else ledger.refusals.push(answer)
    if (answer !== null || wasSent) refused?.({ status, token: mine, body: answer?.body ?? '', startedAtMs })
    await pause(answer === null && !wasSent ? UNHEARD_AGAIN_MS : AGAIN_MS)
  }
  throw new Error('A message got no 200 in all its tries')
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
