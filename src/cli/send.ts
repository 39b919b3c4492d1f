/** send - `sendwright send`: one message through the API, and with `--wait` what became of it. */
import { setTimeout as pause } from 'node:timers/promises'
import type { EmailAnswer } from '../../schemas/email.ts'
import type { Message } from '../../schemas/message.ts'
import { type Client, type ClientOptions, makeClient } from './client.ts'
import { CommandFailure } from './failure.ts'
import { formatTable } from './table.ts'

const WAIT_MS_MAX = 60_000
const POLL_MS = 250
/** States in which something is still to happen. */
const OPEN: readonly string[] = ['accepted', 'deferred']

export interface SendOptions extends ClientOptions {
  from: string
  to: string[]
  subject: string
  text?: string
  html?: string
  stream?: string
  idempotencyKey?: string
  wait?: boolean
}

/**
 * Sends a message and prints its id.
 * @returns 0; with `wait` 1 when a recipient ended otherwise than delivered
 */
export async function sendMessage(options: SendOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const { from, to, subject, text, html, stream: streamId, idempotencyKey } = options
  const headers: Record<string, string> = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
  // Absent options are undefined, and JSON leaves those out.
  const answer = await client.post<EmailAnswer>('/v1/email', { from, to, subject, text, html, streamId }, headers)
  if (!options.wait) {
    console.log(options.json ? JSON.stringify(answer) : answer.messageId)
    return 0
  }
  if (!options.json) console.log(answer.messageId)
  const message = await endOf(client, answer.messageId)
  console.log(options.json ? JSON.stringify(message) : formatEvents(message))
  return message.recipients.every(({ status }) => status === 'delivered') ? 0 : 1
}

/** The message once every recipient has ended. */
async function endOf(client: Client, messageId: string): Promise<Message> {
  const startMs = performance.now()
  while (performance.now() - startMs < WAIT_MS_MAX) {
    const message = await client.get<Message>(`/v1/messages/${messageId}`)
    if (message.recipients.every(({ status }) => !OPEN.includes(status))) return message
    await pause(POLL_MS)
  }
  throw new CommandFailure(`Not every recipient of ${messageId} has ended within ${WAIT_MS_MAX / 1000} s`)
}

function formatEvents({ events }: Message): string {
  const rows = events.map((event) => {
    const { response } = event.details as { response?: string | null }
    return [event.occurredAt, event.event, event.recipient, response ?? '']
  })
  return formatTable(['when', 'event', 'recipient', 'answer'], rows)
}
