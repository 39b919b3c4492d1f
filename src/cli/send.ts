/** send - `sendwright send` and `sendwright batch`: messages through the API, and with `--wait` the outcome of one. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { text as readAllText } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import type { EmailAnswer } from '../../schemas/email.ts'
import type { Message, MessageEvent } from '../../schemas/message.ts'
import { type Client, type ClientOptions, makeClient } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import {
  collect,
  collectHeader,
  collectPair,
  parseInstant,
  parseInteger,
  withServerOptions,
} from './console/options.ts'
import { type Ended, print, printJson } from './console/print.ts'
import { formatTable } from './console/table.ts'
import { coloured, type Terminal, thisTerminal, timeOfDay } from './console/terminal.ts'

const WAIT_SECONDS = 60
const POLL_MS = 250
/** States in which something is still to happen. */
const OPEN: readonly string[] = ['accepted', 'scheduled', 'deferred']
/** Characters of an event's name and of an address before the column gives way. */
const EVENT_WIDTH = 14
const SIMULATOR = 'simulator.test'

interface SendOptions extends ClientOptions {
  from: string
  to: string[]
  cc?: string[]
  bcc?: string[]
  subject: string
  text?: string
  html?: string
  htmlFile?: string
  attach?: string[]
  header?: Record<string, string>
  tag?: string
  metadata?: Record<string, string>
  stream?: string
  at?: string
  idempotencyKey?: string
  /** Seconds; true for the default. */
  wait?: number | true
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addSendCommands(program: Command, ended: Ended): void {
  const send = withServerOptions(program.command('send'))
    .description('send one message and print its id; without --text and --html its text is read from standard input')
    .requiredOption('--from <address>', 'sender, on a verified sending domain: a@b.example or "Name <a@b.example>"')
    .requiredOption('--to <address>', 'recipient; may be given several times', collect)
    .option('--cc <address>', 'recipient of a copy; may be given several times', collect)
    .option('--bcc <address>', 'recipient that the others do not see; may be given several times', collect)
    .requiredOption('--subject <text>', 'subject')
    .option('--text <text>', 'plain text; - reads it from standard input')
    .option('--html <html>', 'HTML text')
    .option('--html-file <path>', 'a file with the HTML text')
    .option('--attach <path>', 'a file to attach; may be given several times', collect)
    .option('--header <name: value>', 'a custom header; may be given several times', collectHeader)
    .option('--tag <tag>', 'a tag to search by')
    .option('--metadata <key=value>', 'metadata, which events carry; may be given several times', collectPair)
    .option('--stream <id>', "a stream of the server; without it the server's default one")
    .option('--at <instant>', 'time at which to send it, with an offset', parseInstant)
    .option('--idempotency-key <key>', 'a second call with the same key within 24 hours sends nothing')
    .option(
      '--wait [seconds]',
      `print events until every recipient reaches a final state, for up to ${WAIT_SECONDS} seconds or the given number; exit 1 unless all were delivered`,
      parseInteger,
    )
    .action(async (options: SendOptions) => {
      const body = await readBodyOptions(options)
      if (body.text === undefined && body.html === undefined) send.error('error: give --text or --html')
      ended(await sendMessage(options, body))
    })
  withServerOptions(program.command('batch <path>'))
    .description(
      'send up to 100 messages from a JSON file with the body of POST /v1/email/batch, or its list. All are accepted or none, unless the body has "partial": true',
    )
    .option('--idempotency-key <key>', 'a second call with the same key within 24 hours sends nothing')
    .action(async (path, { idempotencyKey, ...options }) => {
      const content: unknown = parse(path)
      const body = Array.isArray(content) ? { messages: content } : (content as object)
      const client = makeClient(options, 'server')
      const answer = await client.post<BatchAnswer>('/v1/email/batch', body, keyHeader(idempotencyKey))
      const code = print(options, answer, ({ messages }) => messages.map(formatOutcome).join('\n'))
      ended(answer.messages.some((one) => 'error' in one) ? 1 : code)
    })
}

/** The answer of a batch; only a partial one has refusals. */
interface BatchAnswer {
  messages: (EmailAnswer | { error: string; message: string })[]
}

function formatOutcome(outcome: BatchAnswer['messages'][number]): string {
  return 'error' in outcome ? `${outcome.error}: ${outcome.message}` : outcome.messageId
}

/** The body of the request; absent options are undefined, and JSON leaves those out. */
async function readBodyOptions(options: SendOptions) {
  const { from, to, cc, bcc, subject, html, htmlFile, attach, header, tag, metadata, stream, at } = options
  const hasHtml = html !== undefined || htmlFile !== undefined
  const text =
    options.text === '-' || (options.text === undefined && !hasHtml) ? await readStandardInput() : options.text
  return {
    from: parseAddress(from),
    to: to.map(parseAddress),
    cc: cc?.map(parseAddress),
    bcc: bcc?.map(parseAddress),
    subject,
    text,
    html: html ?? (htmlFile === undefined ? undefined : readFile(htmlFile).toString('utf8')),
    attachments: attach?.map((path) => ({ name: basename(path), content: readFile(path).toString('base64') })),
    headers: header,
    tag,
    metadata,
    streamId: stream,
    sendAt: at,
  }
}

/** `Name <a@b>` as the API takes it. */
function parseAddress(text: string): string | { email: string; name: string } {
  const [, name, email] = /^\s*"?([^<"]*[^<"\s])"?\s*<([^<>]+)>\s*$/.exec(text) ?? []
  return name === undefined || email === undefined ? text : { email, name }
}

/** Piped standard input; empty on a terminal, if no one knows that input is expected. */
async function readStandardInput(): Promise<string | undefined> {
  if (process.stdin.isTTY === true) return undefined
  const text = await readAllText(process.stdin)
  return text === '' ? undefined : text
}

function readFile(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new CommandFailure(`Cannot read ${path}: ${(error as Error).message}`)
  }
}

function parse(path: string): unknown {
  const text = readFile(path).toString('utf8')
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CommandFailure(`${path} is not JSON: ${(error as Error).message}`)
  }
}

function keyHeader(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { 'idempotency-key': key }
}

/** Sends a message and prints its id. Returns 0, or with `wait` 1 if delivery to a recipient failed. */
async function sendMessage(options: SendOptions, body: object): Promise<number> {
  const client = makeClient(options, 'server')
  const answer = await client.post<EmailAnswer>('/v1/email', body, keyHeader(options.idempotencyKey))
  if (options.wait === undefined) return print(options, answer, ({ messageId }) => messageId)
  if (options.json !== true) console.log(answer.messageId)
  const terminal = thisTerminal()
  const seconds = options.wait === true ? WAIT_SECONDS : options.wait
  const watched = { messageId: answer.messageId, waitMs: seconds * 1000 }
  const message = await watch(client, watched, (event) => {
    if (options.json !== true) console.log(formatEvent(event, terminal))
  })
  const isOver = message.recipients.every(({ status }) => !OPEN.includes(status))
  if (options.json === true) printJson(message)
  else tellEnd(message, isOver)
  if (!isOver) console.error(`Not every recipient has ended within ${seconds} s`)
  return message.recipients.every(({ status }) => status === 'delivered') ? 0 : 1
}

/**
 * Prints each event as it comes. Returns the message once every recipient has reached a final state, or in its state
 * after the longest wait.
 */
async function watch(
  client: Client,
  { messageId, waitMs }: { readonly messageId: string; readonly waitMs: number },
  tell: (event: MessageEvent) => void,
): Promise<Message> {
  const startMs = performance.now()
  const told = new Set<string>()
  for (;;) {
    const message = await client.get<Message>(`/v1/messages/${messageId}`)
    for (const event of message.events) {
      const name = `${event.event} ${event.recipient} ${event.occurredAt}`
      if (!told.has(name)) tell(event)
      told.add(name)
    }
    if (message.recipients.every(({ status }) => !OPEN.includes(status))) return message
    if (performance.now() - startMs >= waitMs) return message
    await pause(POLL_MS)
  }
}

function formatEvent({ occurredAt, event, recipient, details }: MessageEvent, terminal: Terminal): string {
  const { response } = details as { response?: string | null }
  const name = coloured(event, terminal, event.padEnd(EVENT_WIDTH))
  return [timeOfDay(occurredAt, terminal), name, recipient, response ?? ''].join('  ').trimEnd()
}

/** Details missing in the events: recipients still pending, and why nothing was sent to a simulator's address. */
function tellEnd({ recipients, events }: Message, isOver: boolean): void {
  if (!isOver) {
    const open = recipients.filter(({ status }) => OPEN.includes(status))
    const rows = open.map((one) => [one.recipient, one.status, String(one.attempts), one.nextAttemptAt ?? ''])
    console.log(`\n${formatTable(['recipient', 'status', 'attempts', 'next attempt'], rows)}`)
  }
  for (const { recipient } of events.filter(({ details }) => isSuppressed(details))) {
    const [local = '', domain = ''] = recipient.split('@')
    const fresh =
      domain === SIMULATOR ? `; ${local.split('+')[0]}+1@${domain} is a fresh address with the same outcome` : ''
    console.error(
      `${recipient} is on the suppression list, so nothing was sent to it (sendwright suppression list)${fresh}`,
    )
  }
}

function isSuppressed(details: MessageEvent['details']): boolean {
  return (details as { classification?: string | null }).classification === 'Suppressed'
}
