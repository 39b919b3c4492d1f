/** events - a server's events as they happen: `sendwright tail` prints them, `sendwright listen <url>` forwards them too.
 *
 *  Both go on when the service goes away and comes back; what happened in between is not told.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { eventHeaders, SECRET_PREFIX } from '../webhooks/sign-event.ts'
import { type Client, type ClientOptions, firstServerId, makeClient } from './client.ts'
import { CommandFailure } from './failure.ts'

const RETRY_MS = 500
const RETRY_MS_MAX = 5_000
/** The service says something every five seconds. */
const SILENT_MS_MAX = 20_000
/** As a receiver of a webhook has. */
const FORWARD_MS_MAX = 10_000
const LINE_CHARS_MAX = 16 * 1024 * 1024

export interface TailOptions extends ClientOptions {
  server?: string
}

export interface ListenOptions extends TailOptions {
  secret?: string
}

interface EventBody {
  readonly id: string
  readonly event: string
  readonly occurredAt?: string
  readonly receivedAt?: string
  readonly recipient?: string
  readonly messageId?: string
  readonly details?: object
}

/** Prints the events of a server until it is interrupted. */
export async function tailEvents(options: TailOptions): Promise<number> {
  await follow(options, async (text) => console.log(options.json ? text : formatEvent(JSON.parse(text) as EventBody)))
  return 0
}

/** Prints the events of a server and posts each to `url`, signed as a webhook would be, until it is interrupted. */
export async function listenEvents(url: string, options: ListenOptions): Promise<number> {
  const secret = options.secret ?? `${SECRET_PREFIX}${randomBytes(32).toString('base64')}`
  console.error(`Forwarding to ${url}, signed with ${secret}`)
  await follow(options, async (text) => {
    const event = JSON.parse(text) as EventBody
    const answer = await forward(url, { text, event, secret })
    console.log(options.json ? JSON.stringify({ answer, event }) : `${formatEvent(event)}  -> ${answer}`)
  })
  return 0
}

async function follow(options: TailOptions, tell: (text: string) => Promise<void>): Promise<void> {
  const serverId = options.server ?? firstServerId()
  if (serverId === null)
    throw new CommandFailure('No server: give --server, or run where DATA_DIR holds first-run.json')
  const client = makeClient(options, 'operator')
  // Wrong calls are told once; what only fails for a while is tried again, until the command is interrupted.
  for (let waitMs = RETRY_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    const reason = await readEvents(client, serverId, async (text) => {
      waitMs = RETRY_MS
      await tell(text)
    })
    console.error(`Connection to the service ended (${reason}): trying again`)
    await pause(waitMs)
  }
}

/** Reads until the connection ends; out: why it did. */
async function readEvents(client: Client, serverId: string, tell: (text: string) => Promise<void>): Promise<string> {
  const silence = new AbortController()
  let timer = setTimeout(() => silence.abort(), SILENT_MS_MAX)
  try {
    const source = await client.open(`/v1/operator/servers/${serverId}/events`, silence.signal)
    console.error(`Listening to the events of server ${serverId}`)
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of source) {
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(), SILENT_MS_MAX)
      rest += decoder.decode(chunk, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > LINE_CHARS_MAX) return 'a line is too long'
      for (const line of lines) if (line.startsWith('data: ')) await tell(line.slice('data: '.length))
    }
    return 'closed'
  } catch (error) {
    // A refusal will be one again; but for 503, which the service says while it starts and stops.
    if (error instanceof CommandFailure && !error.message.includes(' 503 ')) throw error
    return reasonOf(error as Error)
  } finally {
    clearTimeout(timer)
  }
}

function reasonOf(error: Error): string {
  const cause = error.cause as NodeJS.ErrnoException | undefined
  return error.name === 'AbortError' ? 'silent' : (cause?.code ?? cause?.message ?? error.message)
}

/** Posts an event as a webhook would; out: the status, or why there was none. */
async function forward(
  url: string,
  { text, event, secret }: { text: string; event: EventBody; secret: string },
): Promise<string> {
  const unixSeconds = Math.floor(Date.now() / 1000)
  const headers = eventHeaders({ deliveryId: event.id, event: event.event, body: text, secrets: [secret], unixSeconds })
  const posted = fetch(url, {
    method: 'POST',
    headers,
    body: text,
    redirect: 'manual',
    signal: AbortSignal.timeout(FORWARD_MS_MAX),
  })
  return posted.then(
    (response) => {
      void response.body?.cancel()
      return String(response.status)
    },
    (error: Error) => reasonOf(error),
  )
}

function formatEvent({ event, occurredAt, receivedAt, recipient, messageId, details, ...rest }: EventBody): string {
  const about =
    recipient === undefined ? JSON.stringify(rest) : `${recipient}  ${messageId}  ${JSON.stringify(details)}`
  return `${occurredAt ?? receivedAt ?? ''}  ${event}  ${about}`
}
