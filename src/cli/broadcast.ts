/**
 * broadcast - `sendwright broadcast send|preview|list|show|cancel|pause|resume` for one message to many recipients.
 */
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Broadcast, BroadcastPreview } from '../../schemas/broadcast.ts'
import { BROADCAST_MESSAGES_MAX } from '../../schemas/limits.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import { parseInstant, parseInteger, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/broadcasts'
const PAGE_MAX = 100
const LIMIT_DEFAULT = 50
const PAGES_MAX = 1000
const LOOK_MS = 1000
/** The pace may be slow, but nothing is released after 30 days. */
const LOOKS_MAX = 31 * 86_400
/** Columns of a CSV file for the recipient; every other one is a value for a placeholder. */
const ADDRESS_COLUMNS = ['email', 'to', 'address']
const NAME_COLUMN = 'recipient_name'

interface ContentOptions extends ClientOptions {
  from: string
  subject: string
  csv: string
  textFile?: string
  htmlFile?: string
}

interface PreviewOptions extends ContentOptions {
  row?: number
}

interface SendOptions extends ContentOptions {
  tag?: string
  at?: string
  idempotencyKey?: string
  wait?: true
}

interface ListOptions extends ClientOptions {
  stream?: string
  status?: string
  limit?: number
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addBroadcastCommands(program: Command, ended: Ended): void {
  const broadcast = program.command('broadcast').description('one message to many people, released at a pace')
  withContentOptions(broadcast.command('send <streamId>'))
    .description('send to everyone in a CSV file whose first line names the columns')
    .option('--tag <text>', 'tag of every message')
    .option('--at <instant>', 'time at which the release begins, with an offset', parseInstant)
    .option('--idempotency-key <key>', 'the same key sends the same broadcast once')
    .option('--wait', 'show progress until it ends')
    .action(async (streamId, options) => ended(await sendBroadcast(streamId, options)))
  withContentOptions(broadcast.command('preview <streamId>'))
    .description('print the message for one recipient of a CSV file; nothing is sent')
    .option('--row <n>', 'number of the recipient, from 1 without the header line (default: 1)', parseInteger)
    .action(async (streamId, options) => ended(await previewBroadcast(streamId, options)))
  withServerOptions(broadcast.command('list'))
    .description('list broadcasts, newest first')
    .option('--stream <id>', 'on this stream')
    .option('--status <status>', 'accepted, processing, completed or cancelled')
    .option('--limit <n>', `maximum number (default: ${LIMIT_DEFAULT})`, parseInteger)
    .action(async (options) => ended(await listBroadcasts(options)))
  withServerOptions(broadcast.command('show <broadcastId>'))
    .description('print a broadcast and its progress')
    .action(async (id, options) => {
      const seen = await makeClient(options, 'server').get<Broadcast>(`${PATH}/${encodeURIComponent(id)}`)
      ended(print(options, seen, formatFields))
    })
  for (const [order, what] of [
    ['cancel', 'never release what is left'],
    ['pause', 'release nothing until it is resumed'],
    ['resume', 'resume a paused broadcast'],
  ] as const)
    withServerOptions(broadcast.command(`${order} <broadcastId>`))
      .description(what)
      .action(async (id, options) => {
        const path = `${PATH}/${encodeURIComponent(id)}/${order}`
        ended(print(options, await makeClient(options, 'server').post<Broadcast>(path), formatFields))
      })
}

function withContentOptions(command: Command): Command {
  return withServerOptions(command)
    .requiredOption('--from <address>', 'sender: an address, or "Name <address>"')
    .requiredOption('--subject <text>', 'subject; {{column}} stands for a value of the file')
    .requiredOption('--csv <file>', `file with a column ${ADDRESS_COLUMNS.join(', ')}; the others fill placeholders`)
    .option('--text-file <file>', 'text, with placeholders')
    .option('--html-file <file>', 'HTML, with placeholders')
}

async function readContent(streamId: string, { from, subject, csv, textFile, htmlFile }: ContentOptions) {
  const [text, html, messages] = await Promise.all([readText(textFile), readText(htmlFile), readRecipients(csv)])
  return { streamId, from: parseSender(from), subject, text, html, messages }
}

async function previewBroadcast(streamId: string, options: PreviewOptions): Promise<number> {
  const { row = 1 } = options
  const content = await readContent(streamId, options)
  const count = content.messages.length
  if (row < 1 || row > count)
    throw new CommandFailure(`--row must be from 1 to ${count}, the number of rows in ${options.csv}`)
  const client = makeClient(options, 'server')
  const seen = await client.post<BroadcastPreview>(`${PATH}/preview`, { ...content, index: row - 1 })
  return print(options, seen, ({ from, to, subject, text, html, sizeBytes }) =>
    [formatFields({ from, to, subject, sizeBytes }), text, html].filter((part) => part !== null).join('\n\n'),
  )
}

async function sendBroadcast(streamId: string, options: SendOptions): Promise<number> {
  const { tag, at, idempotencyKey } = options
  const client = makeClient(options, 'server')
  const body = { ...(await readContent(streamId, options)), tag, ...(at !== undefined && { sendAt: at }) }
  const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
  const sent = await client.post<Broadcast>(PATH, body, headers)
  if (options.wait !== true) return print(options, sent, formatFields)
  let seen = sent
  for (let looks = 0; seen.completedAt === null && looks < LOOKS_MAX; looks += 1) {
    await pause(LOOK_MS)
    seen = await client.get<Broadcast>(`${PATH}/${sent.broadcastId}`)
    if (options.json !== true) process.stderr.write(`\r${seen.released + seen.failed} of ${seen.total}`)
  }
  if (options.json !== true) process.stderr.write('\n')
  return print(options, seen, formatFields)
}

async function listBroadcasts(options: ListOptions): Promise<number> {
  const { stream, status, limit = LIMIT_DEFAULT } = options
  const client = makeClient(options, 'server')
  const broadcasts: Broadcast[] = []
  let next: string | null = null
  for (let page = 0; page < PAGES_MAX && broadcasts.length < limit; page += 1) {
    const query = new URLSearchParams({ limit: String(Math.min(PAGE_MAX, limit - broadcasts.length)) })
    if (stream !== undefined) query.set('streamId', stream)
    if (status !== undefined) query.set('status', status)
    if (next !== null) query.set('after', next)
    const answer: { broadcasts: Broadcast[]; next: string | null } = await client.get(`${PATH}?${query}`)
    broadcasts.push(...answer.broadcasts)
    next = answer.next
    if (next === null) break
  }
  return print(options, { broadcasts, next }, () =>
    formatTable(
      ['submitted', 'status', 'released', 'failed', 'total', 'subject', 'id'],
      broadcasts.map((one) => [
        one.submittedAt,
        one.pausedAt === null ? one.status : `${one.status}, paused`,
        String(one.released),
        String(one.failed),
        String(one.total),
        one.subject ?? '',
        one.broadcastId,
      ]),
    ),
  )
}

async function readText(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : readFile(file, 'utf8')
}

/** The recipients of a CSV file (RFC 4180). Throws CommandFailure if it is not a CSV file, or names no recipient. */
async function readRecipients(file: string): Promise<object[]> {
  const { parse } = await import('csv-parse/sync')
  let rows: Record<string, string>[]
  try {
    rows = parse(await readFile(file), { columns: true, bom: true, trim: true, skip_empty_lines: true })
  } catch (error) {
    throw new CommandFailure(`${file}: ${(error as Error).message}`)
  }
  if (rows.length > BROADCAST_MESSAGES_MAX)
    throw new CommandFailure(`${file} has ${rows.length} recipients: a broadcast can have ${BROADCAST_MESSAGES_MAX}`)
  return rows.map((row, index) => {
    const column = ADDRESS_COLUMNS.find((name) => Object.hasOwn(row, name))
    const email = column === undefined ? '' : row[column]
    if (!email)
      throw new CommandFailure(`${file}: no address in row ${index + 1}; name a column ${ADDRESS_COLUMNS.join(', ')}`)
    const name = row[NAME_COLUMN]
    const others = Object.entries(row).filter(([key]) => key !== column && key !== NAME_COLUMN)
    return { to: name ? { email, name } : email, substitutions: Object.fromEntries(others) }
  })
}

/** `Name <address>`, or an address alone. */
function parseSender(text: string): string | { email: string; name: string } {
  const [, name, email] = /^\s*"?([^"<]+?)"?\s*<([^<>]+)>\s*$/.exec(text) ?? []
  return name === undefined || email === undefined ? text.trim() : { email, name }
}
