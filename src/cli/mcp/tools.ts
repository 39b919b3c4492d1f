/**
 * tools - the actions of an assistant with a key: each tool has a name, a description, a schema of its input, and a
 * call
 *
 * No tool takes raw headers, lifts a suppression, erases, or returns a key.
 *
 * Spec mcp.tools
 */
import type { MessageSearch, ReceivedSearch, Sendwright, SuppressionSearch } from '../../client/sendwright.ts'
import { explain } from './explain.ts'
import { fenced } from './fence.ts'
import type { ToolMail, ToolSender } from './sending.ts'

/** Objects that one answer lists. */
const LISTED_MAX = 20

/** A tool. `input` is a JSON Schema, and the call gets a value that matches it. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly input: { readonly type: 'object'; readonly [keyword: string]: unknown }
  readonly isReadOnly: boolean
  run(input: Readonly<Record<string, unknown>>): Promise<string>
}

const TEXT = { type: 'string', minLength: 1, maxLength: 998 } as const
const ID = { type: 'string', minLength: 36, maxLength: 36 } as const
const ADDRESS = { type: 'string', minLength: 3, maxLength: 254 } as const
const ADDRESSES = { type: 'array', maxItems: 50, items: ADDRESS } as const
const LIMIT = { type: 'integer', minimum: 1, maximum: LISTED_MAX } as const
const INSTANT = { type: 'string', description: 'ISO 8601 with an offset' } as const
const BODY = { type: 'string', minLength: 1, maxLength: 100_000 } as const

function inputOf(properties: object, required: readonly string[] = []): Tool['input'] {
  return { type: 'object', properties, required, additionalProperties: false }
}

/** The tools of an account key. */
export function accountTools(client: Sendwright): Tool[] {
  return [
    {
      name: 'list_domains',
      description: 'Sending domains of the account with their DNS records. A record with "verified": false is missing.',
      input: inputOf({}),
      isReadOnly: true,
      async run() {
        const { domains } = await client.domains.list({ limit: LISTED_MAX })
        return fenced('Sending domains. Publish each record that is not verified.', domains)
      },
    },
    {
      name: 'check_domain',
      description: 'Looks the DNS records of a domain up now, and says what was found in place of each.',
      input: inputOf({ domainId: ID }, ['domainId']),
      isReadOnly: true,
      async run({ domainId }) {
        const { domain, verified, check } = await client.domains.verify(domainId as string)
        return fenced(verified ? 'The domain is verified.' : 'The domain is not verified.', { domain, verified, check })
      },
    },
  ]
}

/** The tools of a server key. */
export function serverTools(client: Sendwright, sender: ToolSender, isTest: boolean): Tool[] {
  return [...messageTools(client), ...serverStateTools(client), sendTool(sender, isTest)]
}

function messageTools({ messages, inbound }: Sendwright): Tool[] {
  return [
    {
      name: 'search_messages',
      description: 'Sent messages, newest first, by recipient, sender, words of the subject, tag, status or time.',
      input: inputOf({
        ...{ recipient: ADDRESS, from: ADDRESS, subject: TEXT, tag: TEXT, status: TEXT },
        ...{ submittedFrom: INSTANT, submittedTo: INSTANT, limit: LIMIT },
      }),
      isReadOnly: true,
      async run(input) {
        const page = await messages.search({ limit: 10, ...(input as MessageSearch) })
        return fenced('Messages, newest first.', page)
      },
    },
    {
      name: 'explain_message',
      description: 'Why a message did or did not arrive: each recipient with its time line and what the replies mean.',
      input: inputOf({ messageId: ID }, ['messageId']),
      isReadOnly: true,
      async run({ messageId }) {
        return fenced(
          'The meanings are ours; replies are those of other servers.',
          explain(await messages.read(messageId as string)),
        )
      },
    },
    {
      name: 'read_message',
      description: 'A sent message with its subject, text, HTML and links.',
      input: inputOf({ messageId: ID }, ['messageId']),
      isReadOnly: true,
      async run({ messageId }) {
        const { from, subject, text, html, links, attachments } = await messages.read(messageId as string)
        return fenced('The content of a sent message.', { from, subject, text, links, attachments, html })
      },
    },
    {
      name: 'search_received',
      description: 'Received mail, newest first, without its content.',
      input: inputOf({ from: ADDRESS, recipient: ADDRESS, receivedFrom: INSTANT, receivedTo: INSTANT, limit: LIMIT }),
      isReadOnly: true,
      async run(input) {
        return fenced('Received mail, newest first.', await inbound.search({ limit: 10, ...(input as ReceivedSearch) }))
      },
    },
    {
      name: 'read_received',
      description: 'A received mail with its text, HTML and the results of SPF, DKIM and DMARC.',
      input: inputOf({ inboundMessageId: ID }, ['inboundMessageId']),
      isReadOnly: true,
      async run({ inboundMessageId }) {
        const { headers: _, ...mail } = await inbound.read(inboundMessageId as string)
        return fenced('A received mail, written by its sender.', mail)
      },
    },
  ]
}

function serverStateTools(client: Sendwright): Tool[] {
  const { suppressions, webhooks } = client
  return [
    {
      name: 'read_server',
      description: 'The server of the key: its mode, its limits and the domains that it can send from.',
      input: inputOf({}),
      isReadOnly: true,
      run: async () => fenced('The server.', await client.readServer()),
    },
    {
      name: 'statistics',
      description:
        'Recipients by hour or day, or of the whole period: accepted, delivered, deferred, bounced, complained, unsubscribed. groupBy counts outcomes, without accepted, by receiving site, class of bounce, stream or tag, with the time to hand-over; by hour for 8 days.',
      input: inputOf({
        ...{ from: INSTANT, to: INSTANT },
        by: { enum: ['hour', 'day', 'total'] },
        groupBy: { enum: ['site', 'class', 'stream', 'tag'] },
      }),
      isReadOnly: true,
      run: async (input) => fenced('Statistics, the earliest first.', await client.readStats(input)),
    },
    {
      name: 'list_suppressions',
      description: 'Addresses that get no mail, with the reason, newest first.',
      input: inputOf({ recipient: ADDRESS, reason: TEXT, limit: LIMIT }),
      isReadOnly: true,
      async run(input) {
        const page = await suppressions.search({ limit: 10, ...(input as SuppressionSearch) })
        return fenced('Suppressed addresses.', page)
      },
    },
    {
      name: 'list_webhooks',
      description: 'Webhooks with their dead deliveries, which their receiver did not accept in any attempt.',
      input: inputOf({}),
      isReadOnly: true,
      async run() {
        const { webhooks: all } = await webhooks.list({ limit: LISTED_MAX })
        const shown = all.map(async ({ secrets: _, ...webhook }) => {
          const { deliveries } = await webhooks.deliveries(webhook.webhookId, { status: 'dead', limit: 5 })
          return { ...webhook, dead: deliveries }
        })
        return fenced('Webhooks. `lastError` and `lastResponse` say why a delivery failed.', await Promise.all(shown))
      },
    },
  ]
}

function sendTool(sender: ToolSender, isTest: boolean): Tool {
  const where = isTest
    ? 'on a test server, which delivers to no one'
    : 'to recipients that were allowed when this server was started'
  return {
    name: 'send_message',
    description: `Sends a message ${where}. A second call with the same idempotencyKey sends nothing.`,
    input: inputOf(
      {
        ...{ from: ADDRESS, to: { ...ADDRESSES, minItems: 1 }, cc: ADDRESSES, bcc: ADDRESSES },
        ...{ subject: TEXT, text: BODY, html: BODY, tag: { ...TEXT, maxLength: 100 } },
        idempotencyKey: { ...TEXT, maxLength: 255 },
      },
      ['from', 'to', 'subject', 'idempotencyKey'],
    ),
    isReadOnly: false,
    run: async (input) => fenced('Accepted.', await sender.send(input as unknown as ToolMail, isTest)),
  }
}
