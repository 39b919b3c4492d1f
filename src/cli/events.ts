/**
 * events - a server's events as they happen: `sendwright tail` prints them, `sendwright listen <url>` forwards them
 * too.
 *
 * With a server's key they come from the public listener, and a lost connection resumes at its end; with `--server`
 * they come from the operator's, beginning now.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { EVENTS } from '../../schemas/webhook.ts'
import { eventHeaders, SECRET_PREFIX } from '../webhooks/sign-event.ts'
import { type Client, type ClientOptions, makeClient } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import { collect, parseUrl, withServerOptions } from './console/options.ts'
import type { Ended } from './console/print.ts'
import { coloured, type Terminal, thisTerminal, timeOfDay } from './console/terminal.ts'

const RETRY_MS = 500
const RETRY_MS_MAX = 5_000
/** The service sends a line every five seconds. */
const SILENT_MS_MAX = 20_000
/** As a receiver of a webhook has. */
const FORWARD_MS_MAX = 10_000
const LINE_CHARS_MAX = 16 * 1024 * 1024
/** Widths of the columns of a terminal. */
const EVENT_WIDTH = 14
const RECIPIENT_WIDTH = 32

interface TailOptions extends ClientOptions {
  server?: string
  event?: string[]
}

interface ListenOptions extends TailOptions {
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
  readonly [field: string]: unknown
}

/** A line of the feed. */
interface Told {
  readonly text: string
  readonly event: EventBody
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addEventCommands(program: Command, ended: Ended): void {
  withEventOptions(program.command('tail'))
    .description("print a server's events as they happen; goes on when the service comes back")
    .action(async (options) => ended(await tailEvents(options)))
  withEventOptions(program.command('listen <url>'))
    .description("post a server's events to a local URL, signed as a webhook's, and print them")
    .option('--secret <secret>', 'signing secret (default: derived from the key, and printed)')
    .action(async (url, options) => ended(await listenEvents(parseUrl(url), options)))
}

function withEventOptions(command: Command): Command {
  const event = new Option('--event <name>', 'only this event; may be given several times').argParser(collect)
  return withServerOptions(command)
    .option('--server <id>', 'the server, by the operator (default: the server of the key)')
    .addOption(event)
}

async function tailEvents(options: TailOptions): Promise<number> {
  const terminal = thisTerminal()
  const client = clientOf(options)
  await follow(client, options, async ({ text, event }) =>
    console.log(options.json === true ? text : formatEvent(event, terminal)),
  )
  return 0
}

async function listenEvents(url: string, options: ListenOptions): Promise<number> {
  const terminal = thisTerminal()
  const client = clientOf(options)
  const secret = options.secret ?? `${SECRET_PREFIX}${client.derive('sendwright listen').toString('base64')}`
  console.error(`Forwarding to ${url}, signed with ${secret}`)
  await follow(client, options, async ({ text, event }) => {
    const answer = await forward(url, { text, event, secret })
    const line = `${formatEvent(event, terminal)}  -> ${answer}`
    console.log(options.json === true ? JSON.stringify({ answer, event }) : line)
  })
  return 0
}

function clientOf(options: TailOptions): Client {
  const unknown = options.event?.find((name) => !(EVENTS as readonly string[]).includes(name))
  if (unknown !== undefined) throw new CommandFailure(`Unknown event ${unknown}: the events are ${EVENTS.join(', ')}`)
  return makeClient(options, options.server === undefined ? 'server' : 'operator')
}

async function follow(client: Client, options: TailOptions, tell: (told: Told) => Promise<void>): Promise<void> {
  const { server, event: wanted } = options
  const path = server === undefined ? '/v1/events' : `/v1/operator/servers/${encodeURIComponent(server)}/events`
  const feed = { path, lastId: null as string | null }
  // Wrong usage is reported once; temporary failures are retried, until the command is interrupted.
  for (let waitMs = RETRY_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    const reason = await readEvents(client, feed, async (text) => {
      waitMs = RETRY_MS
      const event = JSON.parse(text) as EventBody
      if (wanted === undefined || wanted.includes(event.event)) await tell({ text, event })
    })
    console.error(`Connection to the service ended (${reason}): trying again`)
    await pause(waitMs)
  }
}

/** The address of a feed, and its last event id. */
interface FeedPlace {
  readonly path: string
  lastId: string | null
}

/** Reads until the connection ends; out: why it did. */
async function readEvents(client: Client, feed: FeedPlace, tell: (text: string) => Promise<void>): Promise<string> {
  const silence = new AbortController()
  let timer = setTimeout(() => silence.abort(), SILENT_MS_MAX)
  try {
    const headers: Record<string, string> = feed.lastId === null ? {} : { 'last-event-id': feed.lastId }
    const source = await client.open(feed.path, silence.signal, { headers })
    console.error('Listening to events')
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of source) {
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(), SILENT_MS_MAX)
      rest += decoder.decode(chunk, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > LINE_CHARS_MAX) return 'a line is too long'
      for (const line of lines) {
        if (line.startsWith('data: ')) await tell(line.slice('data: '.length))
        else if (line.startsWith('id: ')) feed.lastId = line.slice('id: '.length)
      }
    }
    return 'closed'
  } catch (error) {
    return reasonToGoOn(error as Error, feed)
  } finally {
    clearTimeout(timer)
  }
}

/** Why a connection ended, if it should be retried; throws if a retry would fail the same way. */
function reasonToGoOn(error: Error, feed: FeedPlace): string {
  if (!(error instanceof CommandFailure)) return reasonOf(error)
  if (error.message.includes(' 410 ')) {
    feed.lastId = null
    return 'events since the last one are no longer kept: some were missed'
  }
  // Refusals are final, except 503, which the service answers while it starts and stops.
  if (error.message.includes(' 503 ')) return error.message
  throw error
}

function reasonOf(error: Error): string {
  const cause = error.cause as NodeJS.ErrnoException | undefined
  return error.name === 'AbortError' ? 'silent' : (cause?.code ?? cause?.message ?? error.message)
}

/** Posts an event like a webhook; returns the status, or the reason for a failure. */
async function forward(url: string, { text, event, secret }: Told & { secret: string }): Promise<string> {
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

/** One line: a summary in a terminal, the whole event for other programs. */
function formatEvent(body: EventBody, terminal: Terminal): string {
  const { event, occurredAt, receivedAt, recipient, messageId, details, ...rest } = body
  const at = timeOfDay(occurredAt ?? receivedAt ?? '', terminal)
  if (terminal.columns === null) {
    const about =
      recipient === undefined ? JSON.stringify(rest) : `${recipient}  ${messageId}  ${JSON.stringify(details)}`
    return `${at}  ${event}  ${about}`
  }
  const name = coloured(event, terminal, event.padEnd(EVENT_WIDTH))
  const who = (recipient ?? String(body.envelopeRecipient ?? body.scope ?? '')).padEnd(RECIPIENT_WIDTH)
  return `${at}  ${name}  ${who}  ${gist(body)}`.slice(0, Math.max(terminal.columns, 1) + name.length).trimEnd()
}

/** Details of an event apart from its recipient. */
function gist({ details, used, cap, sizeBytes }: EventBody): string {
  if (used !== undefined) return `${used} of ${cap}`
  if (details === undefined) return `${sizeBytes} bytes`
  const { response, feedbackType, source } = details as Readonly<Record<string, string | null | undefined>>
  return response ?? feedbackType ?? source ?? ''
}
