/**
 * webhooks - the routes of a server's webhooks: create, list, read, remove, enable, disable, secrets
 *
 * Secrets are made here and sealed before they enter a command; the value is in one answer and nowhere else.
 *
 * Spec webhook.create, webhook.url, webhook.read, webhook.list, webhook.remove, webhook.switch, webhook.secrets
 */

import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { homeShard, shardOf } from '../../cluster/id.ts'
import type { Issue } from '../../schemas/error.ts'
import { EVENTS_OF_FORMAT, type WebhookBody } from '../../schemas/webhook.ts'
import type { ServerKeyOrder } from '../actors/authorization/stream.ts'
import type { CreateWebhookBody, CreateWebhookReply } from '../actors/webhook/create.ts'
import type { AddSecretReply } from '../actors/webhook/secrets.ts'
import type { WebhookReply } from '../actors/webhook/switch.ts'
import type { EdgeRequest, HandlerOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import type { Secrets } from '../process/secrets.ts'
import type { WebhookState } from '../state/webhook/webhook.ts'
import { formatInstant } from '../views/instant.ts'
import type { Reader, ServerKey } from '../views/key.ts'
import { formatWebhook, listWebhooks, readWebhook } from '../views/webhook.ts'
import { readWebhookHealth, type WebhookHealthDeps } from '../views/webhook-health.ts'
import type { WebhookSecrets } from '../webhooks/secrets.ts'
import { giveOrder, type OrderDeps, parsePage, type Replied } from './answer.ts'

/** Characters of the hash that a URL is compared by: 132 bits. */
const URL_HASH_CHARS = 22

/** Replaces an id of another shard, which belongs to another account; it is never the id of an object. */
const NOWHERE = '00000000-0000-7000-8000-000000000000'

/** Dependencies of the routes of webhooks. */
export interface WebhookDeps extends OrderDeps {
  readonly read: Reader
  readonly webhookSecrets: WebhookSecrets
  readonly secrets: Pick<Secrets, 'tagHash'>
  /** CIDRs that may be posted to although they are private. */
  readonly privateNetworksAllowed: readonly string[]
}

/** POST /v1/webhooks. Spec webhook.create */
export function makeCreateWebhook(deps: WebhookDeps): HandlerOf<'createWebhook'> {
  return async ({ key, body }) => {
    const { streamId, inboundContent, tag, metadata, format } = body
    const { url, user } = splitUrl(body.url)
    const issues = findIssues(deps, { body, url, user })
    if (issues.length > 0) return refusalReply('invalid_request', { issues })
    const { serverId } = key
    const { secret, sealed } = deps.webhookSecrets.make(serverId)
    const [entry] = Object.entries(metadata ?? {})
    const asked: Omit<CreateWebhookBody, keyof ServerKeyOrder> = {
      url: url.href,
      urlHash: hashOf(url.href),
      events: body.events ?? EVENTS_OF_FORMAT[format],
      streamId: streamId == null ? null : idBeside(key, streamId),
      inboundContent,
      sealedSecret: sealed,
      ...(tag != null && { tag, tagHash: deps.secrets.tagHash(serverId, tag) }),
      ...(entry !== undefined && { metadata: { name: entry[0], value: entry[1] as string } }),
      ...(format !== 'sendwright' && { format }),
      ...(user !== null && { sealedUser: deps.webhookSecrets.seal(serverId, user) }),
    }
    const { reply, answer } = await askServer<CreateWebhookReply>(deps, key, { name: 'create-webhook', body: asked })
    return answer ?? { status: 201, json: { ...formatWebhook(reply.webhook), secret } }
  }
}

/** A URL without its user info, and that as a header of Basic authentication has it; null: none. */
function splitUrl(text: string): { readonly url: URL; readonly user: string | null } {
  const url = new URL(text)
  const { username, password } = url
  if (username === '' && password === '') return { url, user: null }
  url.username = ''
  url.password = ''
  return { url, user: `${decodeOr(username)}:${decodeOr(password)}` }
}

function decodeOr(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// Spec webhook.url, webhook.format
function findIssues(
  { privateNetworksAllowed }: WebhookDeps,
  { body: { format, inboundContent, events = [] }, url, user }: { body: WebhookBody; url: URL; user: string | null },
): Issue[] {
  const issues: Issue[] = []
  if (user !== null && format !== 'postmark')
    issues.push({ path: 'url', message: 'Must not have user info: only a webhook of format postmark may' })
  if (!mayPostTo(url.hostname, privateNetworksAllowed))
    issues.push({ path: 'url', message: 'Must be on a public host' })
  if (inboundContent === 'raw' && format !== 'postmark')
    issues.push({
      path: 'inboundContent',
      message: 'Must be full or reference: only a webhook of format postmark has raw',
    })
  const known: readonly string[] = EVENTS_OF_FORMAT[format]
  for (const [place, event] of events.entries())
    if (!known.includes(event))
      issues.push({ path: `events.${place}`, message: `Has no counterpart in the format ${format}: leave it out` })
  return issues
}

/** GET /v1/webhooks. Spec webhook.list */
export function makeListWebhooks({ read }: WebhookDeps): HandlerOf<'listWebhooks'> {
  return async ({ key, query }) => {
    const seen = await listWebhooks(read, key, parsePage(query))
    if (typeof seen === 'string') return refusalReply(seen)
    return { status: 200, json: { webhooks: seen.webhooks.map(formatWebhook), next: seen.next } }
  }
}

/** GET /v1/webhooks/health. Spec webhook.health */
export function makeReadWebhookHealth({ read, nowMs }: WebhookHealthDeps): HandlerOf<'readWebhookHealth'> {
  return async ({ key, query }) => {
    const seen = await readWebhookHealth({ read, nowMs }, key, parsePage(query))
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/webhooks/{webhookId}. Spec webhook.read */
export function makeReadWebhook(deps: WebhookDeps): HandlerOf<'readWebhook'> {
  return (request) => onWebhook(deps, request, (webhook) => ({ status: 200, json: formatWebhook(webhook) }))
}

/** DELETE /v1/webhooks/{webhookId}. Spec webhook.remove */
export function makeRemoveWebhook(deps: WebhookDeps): HandlerOf<'deleteWebhook'> {
  return (request) => orderOnWebhook(deps, request, { name: 'remove-webhook', answer: () => ({ status: 204 }) })
}

/** POST /v1/webhooks/{webhookId}/enable and /disable. Spec webhook.switch */
export function makeSwitchWebhook(deps: WebhookDeps, enabled: boolean): HandlerOf<'enableWebhook' | 'disableWebhook'> {
  return (request) =>
    orderOnWebhook(deps, request, {
      name: 'switch-webhook',
      body: { enabled },
      answer: ({ webhook }: WebhookReply) => ({ status: 200, json: formatWebhook(webhook) }),
    })
}

/** POST /v1/webhooks/{webhookId}/secrets. Spec webhook.secrets */
export function makeAddSecret(deps: WebhookDeps): HandlerOf<'addWebhookSecret'> {
  return (request) => {
    const { serverId } = request.key
    const { secret, sealed } = deps.webhookSecrets.make(serverId)
    return orderOnWebhook(deps, request, {
      name: 'add-secret',
      body: { sealedSecret: sealed },
      answer: ({ secret: { secretId, createdAtMs } }: AddSecretReply) => ({
        status: 201,
        json: { secretId, createdAt: formatInstant(createdAtMs), secret },
      }),
    })
  }
}

/** DELETE /v1/webhooks/{webhookId}/secrets/{secretId}. Spec webhook.secrets */
export function makeRemoveSecret(deps: WebhookDeps): HandlerOf<'deleteWebhookSecret'> {
  return (request) =>
    orderOnWebhook(deps, request, {
      name: 'remove-secret',
      body: { secretId: (request.params.secretId ?? '').toLowerCase() },
      answer: () => ({ status: 204 }),
    })
}

/** Finds the webhook of the path for a route that only looks. */
export async function onWebhook(
  { read }: Pick<WebhookDeps, 'read'>,
  { key, params }: EdgeRequest<ServerKey>,
  show: (webhook: WebhookState) => Promise<Answer> | Answer,
): Promise<Answer> {
  const seen = await readWebhook(read, key, params.webhookId ?? '')
  return typeof seen === 'string' ? refusalReply(seen) : show(seen)
}

/** A command by its name, and its fields other than its author. */
interface Asked {
  readonly name: string
  readonly body?: object
}

interface Answered<Reply> extends Asked {
  answer(reply: Reply): Answer
}

/** Sends an order about the webhook of the path; the turn finds it, or refuses in the contract's order. */
export function askOnWebhook<Reply extends { readonly kind: string }>(
  deps: OrderDeps,
  { key, params }: EdgeRequest<ServerKey>,
  { name, body }: Asked,
): Promise<Replied<Reply>> {
  return askServer(deps, key, { name, body: { webhookId: idBeside(key, params.webhookId), ...body } })
}

/** The same for an order whose reply is the answer. */
export async function orderOnWebhook<Reply extends { readonly kind: string }>(
  deps: OrderDeps,
  request: EdgeRequest<ServerKey>,
  { answer, ...asked }: Answered<Reply>,
): Promise<Answer> {
  const replied = await askOnWebhook<Reply>(deps, request, asked)
  return replied.answer ?? answer(replied.reply)
}

/** An id of a path that may be on the server's shard; any other becomes an id that is never used. */
export function idBeside({ serverId }: ServerKey, text: string | undefined): string {
  const id = (text ?? '').toLowerCase()
  return shardOf(id) !== null && shardOf(id) === shardOf(serverId) ? id : NOWHERE
}

/** Asks the server's shard; the turn checks key and state again. */
function askServer<Reply extends { readonly kind: string }>(
  deps: OrderDeps,
  { accountId, serverId, hash }: ServerKey,
  { name, body }: Asked,
): Promise<Replied<Reply>> {
  const order = { name, body: { accountId, serverId, keyHash: hash, ...body } }
  return giveOrder(deps, homeShard(serverId), order)
}

/** Whether a host is allowed: neither a private address nor this machine. Names are looked up at each attempt. */
function mayPostTo(hostname: string, allowed: readonly string[]): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (host === 'localhost' || host.endsWith('.localhost')) return isPublicAddress('127.0.0.1', allowed)
  return isIP(host) === 0 || isPublicAddress(host, allowed)
}

function hashOf(href: string): string {
  return createHash('sha256').update(href).digest('base64url').slice(0, URL_HASH_CHARS)
}
