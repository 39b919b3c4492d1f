/** inspect-message - `sendwright inspect message <id>`: how a message fares, found by its id alone. */
import type { FoundMessage } from '../../../schemas/operator/message.ts'
import { type ClientOptions, makeClient } from '../console/client.ts'
import { print } from '../console/print.ts'
import { formatRoute } from '../console/route.ts'
import { formatTable } from '../console/table.ts'

export interface InspectOptions extends ClientOptions {
  reveal?: boolean
  note?: string
}

/** Prints a message. Returns 0. Throws CommandFailure if it does not exist. */
export async function inspectMessage(id: string, options: InspectOptions): Promise<number> {
  const { reveal, note } = options
  const client = makeClient(options, 'operator')
  const path = `/v1/operator/messages/${encodeURIComponent(id)}`
  const found = reveal
    ? await client.post<FoundMessage>(`${path}/reveal`, note === undefined ? {} : { note })
    : await client.get<FoundMessage>(path)
  return print(options, found, formatFound)
}

/** The reads of Redis behind an answer, as commands of redis-cli. */
export function formatReads(reads: readonly string[]): string {
  return ['\nRead, as redis-cli takes it:', ...reads.map((read) => `  ${read}`)].join('\n')
}

function formatFound(found: FoundMessage): string {
  const { recipients, reads, revealed, ...rest } = found
  const fields = Object.entries(rest).map(([name, value]) => [name, String(value ?? '-')])
  const addresses = revealed?.recipients.map(({ recipient }) => recipient) ?? []
  const rows = recipients.map((one, index) => [
    addresses[index] ?? String(one.index),
    one.status,
    String(one.attempts),
    one.lane ?? (one.heldBy === null ? '-' : `held (${one.heldBy})`),
    one.dueAt ?? '-',
    one.worker ?? '-',
    one.response ?? '',
  ])
  return [
    formatTable(['field', 'value'], fields),
    '',
    formatTable(['recipient', 'status', 'attempts', 'lane', 'due', 'process', 'last answer'], rows),
    '',
    formatEvents(recipients),
    ...(revealed === null ? [] : ['', formatRevealed(revealed)]),
    formatReads(reads),
  ].join('\n')
}

function formatEvents(recipients: FoundMessage['recipients']): string {
  const events = recipients.flatMap(({ index, events: own }) => own.map((event) => ({ index, ...event })))
  const sorted = events.sort((one, other) => one.occurredAt.localeCompare(other.occurredAt))
  const rows = sorted.map(({ occurredAt, index, event, classification, response, route }) => {
    return [occurredAt, String(index), event, classification ?? '', response ?? '', formatRoute(route)]
  })
  return formatTable(['when', 'recipient', 'event', 'class', 'answer', 'route'], rows)
}

function formatRevealed({ from, subject, text, html }: NonNullable<FoundMessage['revealed']>): string {
  const sender = from.name === null ? from.email : `${from.name} <${from.email}>`
  return [`From: ${sender}`, `Subject: ${subject ?? ''}`, '', text ?? html ?? '(its text is no longer kept)'].join('\n')
}
