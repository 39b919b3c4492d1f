/** webhook - `sendwright webhook create|list|deliveries|replay`: the webhooks of a server. */
import { DELIVERIES_PAGE_DEFAULT } from '../../schemas/limits.ts'
import type { Delivery, DeliveryList, EventName, Webhook } from '../../schemas/webhook.ts'
import { type Client, type ClientOptions, makeClient } from './client.ts'
import { CommandFailure } from './failure.ts'
import { formatTable } from './table.ts'

const PAGE = 100
/** 10,000 webhooks: more than any server has. */
const PAGES_MAX = 100
/** The service looks at some thousands of deliveries for each page: that is several millions. */
const DELIVERY_PAGES_MAX = 1000
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export interface CreateOptions extends ClientOptions {
  event?: EventName[]
  stream?: string
  reference?: boolean
}

export interface DeliveriesOptions extends ClientOptions {
  status?: string
  event?: string
  limit?: string
}

export interface ReplayOptions extends ClientOptions {
  since?: string
}

/** Registers a URL and prints its secret, which is shown this once. */
export async function createWebhook(url: string, options: CreateOptions): Promise<number> {
  const { event, stream, reference } = options
  const body = {
    url,
    ...(event !== undefined && { events: event }),
    ...(stream !== undefined && { streamId: stream }),
    ...(reference === true && { inboundContent: 'reference' }),
  }
  const made = await makeClient(options, 'server').post<Webhook & { secret: string }>('/v1/webhooks', body)
  if (options.json) return printJson(made)
  console.log(`Registered ${made.url} (${made.webhookId}) for ${made.events.join(', ')}`)
  console.log(`Its signing secret, shown this once: ${made.secret}`)
  return 0
}

/** Prints every webhook of the server, newest first. */
export async function listWebhooks(options: ClientOptions): Promise<number> {
  const webhooks = await allWebhooks(makeClient(options, 'server'))
  if (options.json) return printJson({ webhooks })
  const rows = webhooks.map((one) => [one.url, one.enabled ? 'yes' : 'no', one.events.join(','), one.webhookId])
  console.log(formatTable(['url', 'enabled', 'events', 'id'], rows))
  return 0
}

/** Prints the newest deliveries of a webhook (its URL or its id). */
export async function listDeliveries(webhook: string, options: DeliveriesOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const list = await readDeliveries(client, `/v1/webhooks/${await idOf(client, webhook)}/deliveries`, options)
  if (options.json) return printJson(list)
  console.log(formatTable(['created', 'event', 'status', 'attempts', 'last answer', 'id'], list.deliveries.map(rowOf)))
  return 0
}

/** Queues one delivery again, or with `--since` all that are dead. */
export async function replayDeliveries(
  webhook: string,
  delivery: string | undefined,
  options: ReplayOptions,
): Promise<number> {
  const client = makeClient(options, 'server')
  const path = `/v1/webhooks/${await idOf(client, webhook)}`
  if (delivery !== undefined) {
    const queued = await client.post<Delivery>(`${path}/deliveries/${delivery}/replay`)
    if (options.json) return printJson(queued)
    console.log(`Queued ${queued.deliveryId} again, after ${queued.attempts} attempts`)
    return 0
  }
  if (options.since === undefined) throw new CommandFailure('Name a delivery, or give --since to replay what is dead')
  const body = { createdFrom: new Date(options.since).toISOString(), status: 'dead' }
  const answer = await client.post<{ queued: number }>(`${path}/replay`, body)
  if (options.json) return printJson(answer)
  console.log(`Queued ${answer.queued} dead deliveries again`)
  return 0
}

/** The newest deliveries that are asked for, page after page: a page may hold none of them and yet not be the last. */
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

async function idOf(client: Client, webhook: string): Promise<string> {
  if (UUID.test(webhook)) return webhook
  const href = URL.canParse(webhook) ? new URL(webhook).href : webhook
  const found = (await allWebhooks(client)).find(({ url }) => url === href)
  if (!found) throw new CommandFailure(`No webhook ${webhook} on this server`)
  return found.webhookId
}

async function allWebhooks(client: Client): Promise<Webhook[]> {
  const webhooks: Webhook[] = []
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const list = await client.get<{ webhooks: Webhook[]; next: string | null }>(`/v1/webhooks?limit=${PAGE}${after}`)
    webhooks.push(...list.webhooks)
    if (list.next === null) break
    after = `&after=${list.next}`
  }
  return webhooks
}

function rowOf({ createdAt, event, status, attempts, lastStatusCode, lastError, deliveryId }: Delivery): string[] {
  return [createdAt, event, status, String(attempts), lastError ?? String(lastStatusCode ?? ''), deliveryId]
}

function printJson(value: unknown): number {
  console.log(JSON.stringify(value))
  return 0
}
