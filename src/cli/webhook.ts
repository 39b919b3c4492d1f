/** webhook - `sendwright webhook ...` for the webhooks of a server, and their deliveries. */
import { type Command, Option } from 'commander'
import type { WebhookHealth } from '../../schemas/counts/webhook-health.ts'
import { DELIVERIES_PAGE_DEFAULT } from '../../schemas/limits.ts'
import {
  type Delivery,
  type DeliveryList,
  EVENTS,
  type EventName,
  WEBHOOK_FORMATS,
  type Webhook,
} from '../../schemas/webhook.ts'
import { type Client, type ClientOptions, makeClient, readAll } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import { collect, collectPair, parseInstant, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print, printJson } from './console/print.ts'
import { formatTable } from './console/table.ts'

/** The service looks at some thousands of deliveries for each page: that is several millions. */
const DELIVERY_PAGES_MAX = 1000
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

interface CreateOptions extends ClientOptions {
  event?: EventName[]
  stream?: string
  reference?: boolean
  raw?: boolean
  tag?: string
  metadata?: Record<string, string>
  format?: string
}

interface DeliveriesOptions extends ClientOptions {
  status?: string
  event?: string
  limit?: string
}

interface ReplayOptions extends ClientOptions {
  since?: string
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addWebhookCommands(program: Command, ended: Ended): void {
  const webhook = program.command('webhook').description('webhooks of a server, each identified by its URL or id')
  withServerOptions(webhook.command('create <url>'))
    .description('register a URL and print its signing secret')
    .option('--event <name>', 'an event to send; may be given several times (default: every event)', collect)
    .option('--stream <id>', 'only message events of one stream')
    .option('--tag <tag>', 'only message events with this tag')
    .option('--metadata <key=value>', 'only message events with this metadata entry', collectPair)
    .option('--reference', 'received messages without their content')
    .addOption(
      new Option('--raw', 'received messages with their source, for the format postmark').conflicts('reference'),
    )
    .addOption(new Option('--format <format>', 'whose shape the bodies have').choices(WEBHOOK_FORMATS))
    .action(async (url, options) => ended(await createWebhook(url, options)))
  withServerOptions(webhook.command('list'))
    .description('list the webhooks of the server')
    .action(async (options) => ended(await listWebhooks(options)))
  withServerOptions(webhook.command('health'))
    .description('print the pending and dead deliveries of each webhook, and its last result')
    .action(async (options) => ended(await showHealth(options)))
  withServerOptions(webhook.command('show <webhook>'))
    .description('print one webhook')
    .action(async (name, options) => ended(await actOn(name, options, { method: 'get', tell: formatFields })))
  withServerOptions(webhook.command('remove <webhook>'))
    .description('remove a webhook and its pending deliveries')
    .action(async (name, options) =>
      ended(await actOn(name, options, { method: 'delete', tell: () => `Removed ${name}` })),
    )
  for (const [act, does] of [
    ['enable', 'switch a webhook on'],
    ['disable', 'disable a webhook: pending deliveries become dead and can be replayed'],
  ] as const)
    withServerOptions(webhook.command(`${act} <webhook>`))
      .description(does)
      .action(async (name, options) => {
        const tell = (answer: object) => `${name} is ${(answer as Webhook).enabled ? 'on' : 'off'}`
        ended(await actOn(name, options, { method: 'post', path: `/${act}`, tell }))
      })
  withServerOptions(webhook.command('test <webhook>'))
    .description('send an example event to a webhook')
    .addOption(new Option('--event <name>', 'which event').choices(EVENTS).default('delivered'))
    .action(async (name, { event, ...options }) => {
      const tell = (answer: object) => `Queued an example of ${event}: delivery ${(answer as Delivery).deliveryId}`
      ended(await actOn(name, options, { method: 'post', path: '/test', body: { event }, tell }))
    })
  addSecretCommands(webhook, ended)
  addDeliveryCommands(webhook, ended)
}

function addSecretCommands(webhook: Command, ended: Ended): void {
  withServerOptions(webhook.command('add-secret <webhook>'))
    .description('add a second signing secret and print it: posts are signed with both')
    .action(async (name, options) => {
      const tell = (answer: object) => (answer as { secret: string }).secret
      ended(await actOn(name, options, { method: 'post', path: '/secrets', tell }))
    })
  withServerOptions(webhook.command('remove-secret <webhook> <secretId>'))
    .description('remove a signing secret (its id: webhook show)')
    .action(async (name, secretId, options) => {
      const path = `/secrets/${encodeURIComponent(secretId)}`
      ended(await actOn(name, options, { method: 'delete', path, tell: () => `Removed ${secretId}` }))
    })
}

function addDeliveryCommands(webhook: Command, ended: Ended): void {
  withServerOptions(webhook.command('deliveries <webhook>'))
    .description('list the newest deliveries of a webhook')
    .option('--status <status>', 'pending, delivered or dead')
    .option('--event <name>', 'only of one event')
    .option('--limit <n>', 'maximum number, up to 1000 (default: 100)')
    .action(async (name, options) => ended(await listDeliveries(name, options)))
  withServerOptions(webhook.command('delivery <webhook> <deliveryId>'))
    .description('print one delivery with its payload')
    .action(async (name, id, options) => {
      const path = `/deliveries/${encodeURIComponent(id)}`
      ended(await actOn(name, options, { method: 'get', path, tell: formatFields }))
    })
  withServerOptions(webhook.command('replay <webhook> [delivery]'))
    .description('replay a delivery, or with --since all dead deliveries')
    .option('--since <instant>', 'all dead deliveries created at or after this time', parseInstant)
    .action(async (name, delivery, options) => ended(await replayDeliveries(name, delivery, options)))
}

interface Act {
  readonly method: 'get' | 'post' | 'delete'
  readonly path?: string
  readonly body?: object
  readonly tell: (answer: object) => string
}

/** Asks for one thing about a webhook and prints the answer. */
async function actOn(webhook: string, options: ClientOptions, { method, path = '', body, tell }: Act): Promise<number> {
  const client = makeClient(options, 'server')
  const at = `/v1/webhooks/${await findWebhookId(client, webhook)}${path}`
  if (method === 'get') return print(options, await client.get<object>(at), tell)
  if (method === 'post') return print(options, await client.post<object>(at, body), tell)
  await client.delete(at)
  return print(options, { webhook, removed: true }, tell)
}

/** Registers a URL and prints its secret, which is shown this once. */
async function createWebhook(url: string, options: CreateOptions): Promise<number> {
  const { event, stream, reference, raw, tag, metadata, format } = options
  const body = {
    url,
    ...(event !== undefined && { events: event }),
    ...(stream !== undefined && { streamId: stream }),
    ...(reference === true && { inboundContent: 'reference' }),
    ...(raw === true && { inboundContent: 'raw' }),
    ...(tag !== undefined && { tag }),
    ...(metadata !== undefined && { metadata }),
    ...(format !== undefined && { format }),
  }
  const made = await makeClient(options, 'server').post<Webhook & { secret: string }>('/v1/webhooks', body)
  if (options.json) return printJson(made)
  console.log(`Registered ${made.url} (${made.webhookId}) for ${made.events.join(', ')}`)
  console.log(`Its signing secret, shown this once: ${made.secret}`)
  return 0
}

/** Prints every webhook of the server, newest first. */
async function listWebhooks(options: ClientOptions): Promise<number> {
  const webhooks = await allWebhooks(makeClient(options, 'server'))
  const rows = webhooks.map((one) => [one.url, one.enabled ? 'yes' : 'no', one.events.join(','), one.webhookId])
  return print(options, { webhooks }, () => formatTable(['url', 'enabled', 'events', 'id'], rows))
}

/** Prints the health of every webhook of the server, newest first. */
async function showHealth(options: ClientOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const urls = new Map((await allWebhooks(client)).map(({ webhookId, url }) => [webhookId, url]))
  const webhooks = await readAll<WebhookHealth>(client, '/v1/webhooks/health', 'webhooks')
  const rows = webhooks.map(({ webhookId, pending, dead, attempted, delivered, last }) => [
    urls.get(webhookId) ?? webhookId,
    String(pending),
    String(dead),
    `${delivered} of ${attempted}`,
    last === null ? '' : (last.lastError ?? String(last.lastStatusCode ?? '')),
  ])
  const titles = ['url', 'pending', 'dead', 'delivered recently', 'last answer']
  return print(options, { webhooks }, () => formatTable(titles, rows))
}

/** Prints the newest deliveries of a webhook (its URL or its id). */
async function listDeliveries(webhook: string, options: DeliveriesOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const list = await readDeliveries(client, `/v1/webhooks/${await findWebhookId(client, webhook)}/deliveries`, options)
  if (options.json) return printJson(list)
  console.log(formatTable(['created', 'event', 'status', 'attempts', 'last answer', 'id'], list.deliveries.map(rowOf)))
  return 0
}

/** Queues one delivery again, or with `--since` all that are dead. */
async function replayDeliveries(
  webhook: string,
  delivery: string | undefined,
  options: ReplayOptions,
): Promise<number> {
  const client = makeClient(options, 'server')
  const path = `/v1/webhooks/${await findWebhookId(client, webhook)}`
  if (delivery !== undefined) {
    const queued = await client.post<Delivery>(`${path}/deliveries/${delivery}/replay`)
    if (options.json) return printJson(queued)
    console.log(`Queued ${queued.deliveryId} again, after ${queued.attempts} attempts`)
    return 0
  }
  if (options.since === undefined) throw new CommandFailure('Give a delivery id, or --since to replay dead deliveries')
  const body = { createdFrom: options.since, status: 'dead' }
  const answer = await client.post<{ queued: number }>(`${path}/replay`, body)
  if (options.json) return printJson(answer)
  console.log(`Queued ${answer.queued} dead deliveries again`)
  return 0
}

/** The newest matching deliveries, page after page, because a page may be empty and yet not the last. */
async function readDeliveries(client: Client, path: string, options: DeliveriesOptions): Promise<DeliveryList> {
  const query = new URLSearchParams()
  for (const name of ['status', 'event', 'limit'] as const)
    if (options[name] !== undefined) query.set(name, options[name])
  const limit = Number(options.limit ?? DELIVERIES_PAGE_DEFAULT)
  const list: DeliveryList = { deliveries: [], next: null }
  for (let page = 0; page < DELIVERY_PAGES_MAX; page++) {
    const { deliveries, next } = await client.get<DeliveryList>(`${path}?${query}`)
    list.deliveries.push(...deliveries)
    list.next = next
    if (next === null || list.deliveries.length >= limit) break
    query.set('after', next)
    query.set('limit', String(limit - list.deliveries.length))
  }
  return list
}

async function findWebhookId(client: Client, webhook: string): Promise<string> {
  if (UUID.test(webhook)) return webhook
  const href = URL.canParse(webhook) ? new URL(webhook).href : webhook
  const found = (await allWebhooks(client)).find(({ url }) => url === href)
  if (!found) throw new CommandFailure(`No webhook ${webhook} on this server`)
  return found.webhookId
}

function allWebhooks(client: Client): Promise<Webhook[]> {
  return readAll<Webhook>(client, '/v1/webhooks', 'webhooks')
}

function rowOf({ createdAt, event, status, attempts, lastStatusCode, lastError, deliveryId }: Delivery): string[] {
  return [createdAt, event, status, String(attempts), lastError ?? String(lastStatusCode ?? ''), deliveryId]
}
