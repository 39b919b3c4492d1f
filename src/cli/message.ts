/**
 * message - `sendwright message search|bounces|wait|outcomes|show|raw|attachment|check|deliveries|cancel|reschedule`:
 * sent messages and scheduled ones.
 */
import type { Command } from 'commander'
import type { Checks } from '../../schemas/checks.ts'
import { type Outcomes, sumOutcomes } from '../../schemas/counts/outcomes.ts'
import { WAIT_SECONDS_MAX } from '../../schemas/limits.ts'
import type { Message, MessageSummary } from '../../schemas/message.ts'
import type { MessageDeliveryList } from '../../schemas/webhook.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { type CsvOptions, exportCsv, withCsv } from './console/csv.ts'
import { download } from './console/download.ts'
import { CommandFailure } from './console/failure.ts'
import { collectPair, parseInstant, parseInteger, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatRoute } from './console/route.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/messages'
const LIMIT_DEFAULT = 20
/** Pages that may hold nothing although there is more. */
const PAGES_MAX = 100

interface MessageListAnswer {
  messages: MessageSummary[]
  next: string | null
}

interface SearchOptions extends CsvOptions {
  recipient?: string
  recipientContains?: string
  from?: string
  subject?: string
  tag?: string
  metadata?: Record<string, string>
  status?: string
  event?: string
  site?: string
  class?: string
  broadcast?: string
  stream?: string
  since?: string
  until?: string
}

interface WaitOptions extends SearchOptions {
  timeout?: number
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addMessageCommands(program: Command, ended: Ended): void {
  const message = program.command('message').description('messages of a server and their status')
  withCsv(withStatus(message.command('search')))
    .description('list messages, newest first')
    .option('--until <instant>', 'sent before this', parseInstant)
    .option('--limit <n>', `maximum number (default: ${LIMIT_DEFAULT})`, parseInteger)
    .action(async (options) => ended(await searchMessages(options)))
  withCsv(withFilters(message.command('bounces')))
    .description('print bounced recipients as CSV, newest message first')
    .option('--until <instant>', 'sent before this', parseInstant)
    .action(async (options) =>
      ended(await exportCsv(options, { owner: 'server', path: '/v1/bounces/export', body: bodyOf(options) })),
    )
  withStatus(message.command('wait'))
    .description('wait for a message and print it; exit code 1 if none comes in time')
    .option('--timeout <seconds>', `how long to wait (default: ${WAIT_SECONDS_MAX})`, parseInteger)
    .action(async (options) => ended(await waitForMessage(options)))
  withStatus(message.command('outcomes'))
    .description('count the recipients of messages by status, complaint and class of bounce')
    .option('--until <instant>', 'sent before this', parseInstant)
    .option('--broadcast <id>', 'of this broadcast')
    .action(async (options) => ended(await countOutcomes(options)))
  withServerOptions(message.command('show <messageId>'))
    .description('print a message with its recipients and its events')
    .action(async (id, options) => {
      const answer = await makeClient(options, 'server').get<Message>(`${PATH}/${encodeURIComponent(id)}`)
      ended(print(options, answer, formatMessage))
    })
  addDownloads(message, ended)
  addCheck(message, ended)
  withServerOptions(message.command('cancel <messageId>'))
    .description('cancel a scheduled message before its first attempt')
    .action(async (id, options) => {
      const path = `${PATH}/${encodeURIComponent(id)}/cancel`
      ended(print(options, await makeClient(options, 'server').post<Message>(path), formatMessage))
    })
  withServerOptions(message.command('reschedule <messageId>'))
    .description('reschedule a message')
    .requiredOption('--at <instant>', 'the new time, with an offset', parseInstant)
    .action(async (id, { at, ...options }) => {
      const path = `${PATH}/${encodeURIComponent(id)}`
      ended(print(options, await makeClient(options, 'server').patch<Message>(path, { sendAt: at }), formatMessage))
    })
  withServerOptions(message.command('deliveries <messageId>'))
    .description('list its webhook deliveries, newest first')
    .action(async (id, options) => ended(await listDeliveries(id, options)))
}

function addDownloads(message: Command, ended: Ended): void {
  withServerOptions(message.command('raw <messageId>'))
    .description('print a message as it is sent')
    .option('--output <file>', 'write to this file instead')
    .action(async (id, options) => ended(await download(options, `${PATH}/${encodeURIComponent(id)}/raw`)))
  withServerOptions(message.command('attachment <messageId> <position>'))
    .description('print an attachment of a message; positions begin at 0')
    .option('--output <file>', 'write to this file instead')
    .action(async (id, position, options) =>
      ended(await download(options, `${PATH}/${encodeURIComponent(id)}/attachments/${encodeURIComponent(position)}`)),
    )
}

function addCheck(message: Command, ended: Ended): void {
  withServerOptions(message.command('check <messageId>'))
    .description('check a message as mail clients will show it; exit code 1 if something is found')
    .option('--links', 'also request its links, on a test server')
    .action(async (id, { links = false, ...options }) => {
      const path = `${PATH}/${encodeURIComponent(id)}/checks`
      const checks = await makeClient(options, 'server').post<Checks>(path, { links })
      print(options, checks, formatChecks)
      const isBroken = checks.links.some(({ result }) => result === 'broken' || result === 'timeout')
      ended(isBroken || checks.findings.length > 0 ? 1 : 0)
    })
}

function formatChecks({ findings, links }: Checks): string {
  const found = findings.map(({ check, line, message }) => [line === null ? '' : String(line), check, message])
  const checked = links.map(({ line, part, result, status, reason, href }) => {
    return [`${part} ${line}`, [result, status, reason].filter((one) => one !== null).join(' '), href]
  })
  return [formatTable(['line', 'check', 'finding'], found), '', formatTable(['line', 'link', 'address'], checked)].join(
    '\n',
  )
}

/** The filters of a search. */
function withFilters(command: Command): Command {
  return withServerOptions(command)
    .option('--recipient <address>', 'to this address')
    .option('--recipient-contains <text>', 'with this text in the address or name of a recipient: @gmail.com')
    .option('--from <address>', 'from this address')
    .option('--subject <words>', 'with these words in the subject')
    .option('--tag <tag>', 'with this tag')
    .option('--metadata <key=value>', 'with this entry', collectPair)
    .option('--event <event>', 'with a recipient that has had this event: bounced, deferred, ...')
    .option('--site <name>', 'to this receiving site: google, or the domain of a mail server')
    .option('--class <name>', 'with a bounce of this class: SpamBlock, ...')
    .option('--stream <id>', 'on this stream')
    .option('--since <instant>', 'sent at or after this', parseInstant)
}

function withStatus(command: Command): Command {
  const text = 'with a recipient in this state: delivered, bounced, deferred, ...'
  return withFilters(command).option('--status <status>', text)
}

function bodyOf({ stream, since, until, ...options }: SearchOptions) {
  const { recipient, from, subject, tag, metadata, status, event, site, broadcast } = options
  const { recipientContains } = options
  const filters = {
    recipient,
    recipientContains,
    from,
    subject,
    tag,
    metadata,
    status,
    event,
    site,
    broadcastId: broadcast,
  }
  return { ...filters, classification: options.class, streamId: stream, submittedFrom: since, submittedTo: until }
}

/** Waits for a matching message; the newest of several. Returns exit code 0, or 1 if none arrived in time. */
async function waitForMessage(options: WaitOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const endAtMs = performance.now() + (options.timeout ?? WAIT_SECONDS_MAX) * 1000
  for (;;) {
    const leftSeconds = Math.max(0, Math.ceil((endAtMs - performance.now()) / 1000))
    const waitSeconds = Math.min(WAIT_SECONDS_MAX, leftSeconds)
    const asked = { ...bodyOf(options), limit: 1, waitSeconds }
    const [found] = (await client.post<MessageListAnswer>(`${PATH}/search`, asked)).messages
    if (found !== undefined)
      return print(options, await client.get<Message>(`${PATH}/${found.messageId}`), formatMessage)
    if (leftSeconds === 0) throw new CommandFailure('No message in time')
  }
}

async function listDeliveries(id: string, options: ClientOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const found: MessageDeliveryList = { deliveries: [], next: null }
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const after = found.next === null ? '' : `&after=${found.next}`
    const path = `${PATH}/${encodeURIComponent(id)}/deliveries?limit=100${after}`
    const answer = await client.get<MessageDeliveryList>(path)
    found.deliveries.push(...answer.deliveries)
    found.next = answer.next
    if (answer.next === null) break
  }
  return print(options, found, ({ deliveries }) =>
    formatTable(
      ['when', 'event', 'recipient', 'status', 'attempts', 'last answer', 'webhook', 'id'],
      deliveries.map((one) => [
        one.occurredAt,
        one.event,
        one.recipient,
        one.status,
        String(one.attempts),
        [one.lastError ?? one.lastStatusCode, one.lastResponse].filter((part) => part !== null).join(' '),
        one.webhookId,
        one.deliveryId,
      ]),
    ),
  )
}

/** Adds up the counts of all pages. */
async function countOutcomes(options: SearchOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const asked = bodyOf(options)
  const pages: Outcomes[] = []
  for (let after = {}; pages.length < PAGES_MAX; ) {
    const page = await client.post<Outcomes>(`${PATH}/outcomes`, { ...asked, ...after })
    pages.push(page)
    if (page.next === null) break
    after = { after: page.next }
  }
  return print(options, sumOutcomes(pages), ({ messages, recipients, complained, unsubscribed, classifications }) =>
    formatFields({ messages, ...recipients, complained, unsubscribed, ...classifications }),
  )
}

async function searchMessages(options: SearchOptions): Promise<number> {
  if (options.csv !== undefined)
    return exportCsv(options, { owner: 'server', path: `${PATH}/export`, body: bodyOf(options) })
  const { limit = LIMIT_DEFAULT } = options
  const client = makeClient(options, 'server')
  const asked = bodyOf(options)
  const found: MessageListAnswer = { messages: [], next: null }
  for (let page = 0; page < PAGES_MAX && found.messages.length < limit; page += 1) {
    const rest = Math.min(100, limit - found.messages.length)
    const after = found.next === null ? {} : { after: found.next }
    const answer = await client.post<MessageListAnswer>(`${PATH}/search`, { ...asked, limit: rest, ...after })
    found.messages.push(...answer.messages)
    found.next = answer.next
    if (answer.next === null) break
  }
  return print(options, found, ({ messages }) =>
    formatTable(
      ['sent', 'status', 'to', 'subject', 'id'],
      messages.map(({ submittedAt, status: state, recipients, subject, messageId }) => [
        submittedAt,
        state,
        `${recipients[0]?.recipient ?? ''}${recipients.length > 1 ? ` +${recipients.length - 1}` : ''}`,
        subject ?? '',
        messageId,
      ]),
    ),
  )
}

function formatMessage({ messageId, from, subject, submittedAt, sendAt, status, recipients, events }: Message): string {
  return [
    formatTable(
      ['field', 'value'],
      [
        ['message', messageId],
        ['from', from.name === null ? from.email : `${from.name} <${from.email}>`],
        ['subject', subject ?? ''],
        ['sent', submittedAt],
        ...(sendAt === null ? [] : [['scheduled for', sendAt]]),
        ['status', status],
      ],
    ),
    '',
    formatTable(
      ['recipient', 'status', 'attempts', 'next attempt', 'answer'],
      recipients.map((one) => [
        one.recipient,
        one.status,
        String(one.attempts),
        one.nextAttemptAt ?? '',
        one.response ?? '',
      ]),
    ),
    '',
    formatEvents(events),
  ].join('\n')
}

function formatEvents(events: Message['events']): string {
  const rows = events.map(({ occurredAt, event, recipient, details, route }) => [
    occurredAt,
    event,
    recipient,
    (details as { response?: string | null }).response ?? '',
    formatRoute(route),
  ])
  return formatTable(['when', 'event', 'recipient', 'answer', 'route'], rows)
}
