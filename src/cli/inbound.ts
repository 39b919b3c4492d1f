/**
 * inbound - `sendwright inbound list|show|raw|attachment|send`: received mail, and a mail put into the listener to try
 * it.
 */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { ReceivedMessage, ReceivedSummary } from '../../schemas/inbound.ts'
import type { Stream } from '../../schemas/stream.ts'
import { readConfig } from '../process/config.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { download } from './console/download.ts'
import { CommandFailure } from './console/failure.ts'
import { parseInstant, parseInteger, withServerOptions } from './console/options.ts'
import { type Ended, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/inbound'
const LIMIT_DEFAULT = 20
/** Pages that may hold nothing although there is more. */
const PAGES_MAX = 100
const SEND_MS_MAX = 60_000
const SENDER_DEFAULT = 'sender@simulator.test'

interface ReceivedListAnswer {
  messages: ReceivedSummary[]
  next: string | null
}

interface ListOptions extends ClientOptions {
  from?: string
  recipient?: string
  mailboxHash?: string
  stream?: string
  since?: string
  until?: string
  limit?: number
}

interface SendOptions extends ClientOptions {
  to?: string
  from: string
  host?: string
  port?: number
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addInboundCommands(program: Command, ended: Ended): void {
  const inbound = program.command('inbound').description('received mail of a server')
  withServerOptions(inbound.command('list'))
    .description('list received messages, newest first')
    .option('--from <address>', 'from this address, in the envelope or in the header')
    .option('--recipient <address>', 'to this inbound address')
    .option('--mailbox-hash <text>', 'received at an address with this text after the plus sign')
    .option('--stream <id>', 'on this stream')
    .option('--since <instant>', 'received at or after this', parseInstant)
    .option('--until <instant>', 'received before this', parseInstant)
    .option('--limit <n>', `maximum number (default: ${LIMIT_DEFAULT})`, parseInteger)
    .action(async (options) => ended(await listReceived(options)))
  withServerOptions(inbound.command('show <inboundMessageId>'))
    .description('print a received message')
    .action(async (id, options) => {
      const answer = await makeClient(options, 'server').get<ReceivedMessage>(`${PATH}/${encodeURIComponent(id)}`)
      ended(print(options, answer, formatReceivedText))
    })
  withServerOptions(inbound.command('raw <inboundMessageId>'))
    .description('print the raw received message')
    .option('--output <file>', 'write to this file instead')
    .action(async (id, options) => ended(await download(options, `${PATH}/${encodeURIComponent(id)}/raw`)))
  withServerOptions(inbound.command('attachment <inboundMessageId> <position>'))
    .description('print an attachment of a received message')
    .option('--output <file>', 'write to this file instead')
    .action(async (id, position, options) =>
      ended(await download(options, `${PATH}/${encodeURIComponent(id)}/attachments/${encodeURIComponent(position)}`)),
    )
  withServerOptions(inbound.command('send [file]'))
    .description(
      'send a message from a file or standard input to the inbound listener, to test inbound streams without DNS',
    )
    .option('--to <address>', 'inbound address (default: that of the live inbound stream of the server)')
    .option('--from <address>', 'envelope sender', SENDER_DEFAULT)
    .option('--host <host>', 'host of the listener (default: SMTP_HOST)')
    .option('--port <port>', 'its port (default: MX_PORT)', parseInteger)
    .action(async (file, options) => ended(await sendInbound(file, options)))
}

async function listReceived(options: ListOptions): Promise<number> {
  const { from, recipient, mailboxHash, stream, since, until, limit = LIMIT_DEFAULT } = options
  const client = makeClient(options, 'server')
  const asked = { from, recipient, mailboxHash, streamId: stream, receivedFrom: since, receivedTo: until }
  const found: ReceivedListAnswer = { messages: [], next: null }
  for (let page = 0; page < PAGES_MAX && found.messages.length < limit; page += 1) {
    const rest = Math.min(100, limit - found.messages.length)
    const after = found.next === null ? {} : { after: found.next }
    const answer = await client.post<ReceivedListAnswer>(`${PATH}/search`, { ...asked, limit: rest, ...after })
    found.messages.push(...answer.messages)
    found.next = answer.next
    if (answer.next === null) break
  }
  return print(options, found, ({ messages }) =>
    formatTable(
      ['received', 'from', 'subject', 'issue', 'id'],
      messages.map((one) => [
        one.receivedAt,
        one.from?.address ?? '',
        one.subject ?? '',
        one.parseIssue ?? '',
        one.inboundMessageId,
      ]),
    ),
  )
}

function formatReceivedText(message: ReceivedMessage): string {
  const { authentication, from, attachments } = message
  const verdicts = Object.entries(authentication).map(([name, value]) => `${name} ${value ?? '-'}`)
  const fields = [
    ['message', message.inboundMessageId],
    ['to', message.envelopeRecipient],
    ['from', from === null ? '' : from.name === null ? from.address : `${from.name} <${from.address}>`],
    ['subject', message.subject ?? ''],
    ['received', message.receivedAt],
    ['bytes', String(message.sizeBytes)],
    ['checks', verdicts.join(', ')],
    ['issue', message.parseIssue ?? ''],
    ['content until', message.contentExpiresAt],
  ]
  const files = attachments.map((one) => [String(one.position), one.name ?? '', one.contentType, String(one.size)])
  return [
    formatTable(['field', 'value'], fields),
    ...(files.length === 0 ? [] : ['', formatTable(['attachment', 'name', 'type', 'bytes'], files)]),
    ...(message.text === null ? [] : ['', message.text]),
  ].join('\n')
}

async function sendInbound(file: string | undefined, options: SendOptions): Promise<number> {
  const raw = file === undefined || file === '-' ? Buffer.from(await text(process.stdin)) : await readFile(file)
  const settings = readConfig()
  const host = options.host ?? (settings.ok ? settings.config.smtpHost : '127.0.0.1')
  const port = options.port ?? (settings.ok ? settings.config.mxPort : 0)
  if (port === 0) throw new CommandFailure('No listener: MX_PORT is 0 or invalid; give --port')
  const to = options.to ?? (await liveAddress(options))
  const answer = await transmit({ host, port }, { from: options.from, to, raw })
  return print(options, { to, answer }, () => `${to}: ${answer}`)
}

/** The address of the server's live inbound stream. */
async function liveAddress(options: ClientOptions): Promise<string> {
  const path = '/v1/streams?kind=inbound&archived=false'
  const { streams } = await makeClient(options, 'server').get<{ streams: Stream[] }>(path)
  const address = streams[0]?.inboundAddress
  if (typeof address === 'string') return address
  throw new CommandFailure(
    'The server has no inbound stream. Create one on a live server: `sendwright stream create --live --kind inbound <name>`',
  )
}

/** Transmits a mail. Returns the last reply. Throws CommandFailure with the refusing one. */
async function transmit(
  { host, port }: { host: string; port: number },
  { from, to, raw }: { from: string; to: string; raw: Buffer },
): Promise<string> {
  const { default: SMTPConnection } = await import('nodemailer/lib/smtp-connection')
  const connection = new SMTPConnection({ host, port, ignoreTLS: true, socketTimeout: SEND_MS_MAX })
  try {
    return await new Promise<string>((resolve, reject) => {
      connection.on('error', reject)
      connection.connect(() => {
        connection.send({ from, to: [to], size: raw.length }, raw, (error, info) =>
          error ? reject(error) : resolve(info.response),
        )
      })
    })
  } catch (error) {
    throw new CommandFailure(`Refused by ${host}:${port}: ${(error as Error).message}`)
  } finally {
    connection.quit()
  }
}
