/** event-search - `sendwright events search` lists the events of a server in the last 30 days, oldest first. */
import { type Command, Option } from 'commander'
import { EVENTS } from '../../schemas/webhook.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { collectPair, parseInstant, parseInteger, withServerOptions } from './console/options.ts'
import { type Ended, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const LIMIT_DEFAULT = 100
const PAGE_MAX = 1_000
/** Pages that may hold nothing although there is more. */
const PAGES_MAX = 1_000

interface EventListAnswer {
  events: { id: string; event: string; [field: string]: unknown }[]
  next: string | null
}

interface SearchOptions extends ClientOptions {
  event?: string
  stream?: string
  tag?: string
  metadata?: Record<string, string>
  message?: string
  recipient?: string
  since?: string
  until?: string
  limit?: number
  after?: string
}

/** Adds the commands. `ended` gets the exit code of the one that ran. */
export function addEventSearchCommands(program: Command, ended: Ended): void {
  const events = program.command('events').description('events of the mail of a server')
  withServerOptions(events.command('search'))
    .description('list the events of the last 30 days in the order in which they occurred')
    .addOption(new Option('--event <name>', 'only this event').choices(EVENTS))
    .option('--stream <id>', 'on this stream')
    .option('--tag <tag>', 'only of messages with this tag')
    .option('--metadata <key=value>', 'only of messages with this metadata', collectPair)
    .option('--message <id>', 'only of one message')
    .option('--recipient <address>', 'only of one recipient')
    .option('--since <instant>', 'at or after this', parseInstant)
    .option('--until <instant>', 'before this', parseInstant)
    .option('--after <id>', 'after this event')
    .option('--limit <n>', `maximum number (default: ${LIMIT_DEFAULT})`, parseInteger)
    .action(async (options) => ended(await searchEvents(options)))
}

async function searchEvents(options: SearchOptions): Promise<number> {
  const { event, stream, tag, metadata, message, recipient, since, until, limit = LIMIT_DEFAULT } = options
  const client = makeClient(options, 'server')
  const asked = { event, streamId: stream, tag, metadata, messageId: message, recipient, from: since, to: until }
  const found: EventListAnswer = { events: [], next: options.after ?? null }
  for (let page = 0; page < PAGES_MAX && found.events.length < limit; page += 1) {
    const rest = Math.min(PAGE_MAX, limit - found.events.length)
    const after = found.next === null ? {} : { after: found.next }
    const answer = await client.post<EventListAnswer>('/v1/events/search', { ...asked, limit: rest, ...after })
    found.events.push(...answer.events)
    found.next = answer.next
    if (answer.next === null) break
  }
  return print(options, found, ({ events }) =>
    formatTable(
      ['when', 'event', 'recipient', 'message', 'id'],
      events.map(({ id, event: name, occurredAt, receivedAt, recipient: to, envelopeRecipient, ...rest }) => [
        String(occurredAt ?? receivedAt),
        name,
        String(to ?? envelopeRecipient ?? rest.scope ?? ''),
        String(rest.messageId ?? rest.inboundMessageId ?? ''),
        id,
      ]),
    ),
  )
}
