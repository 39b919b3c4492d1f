/**
 * openapi - the OpenAPI 3.1 documents of the public and of the operator's routes, made of the tables of schemas/
 *
 * Bodies, answers, parameters and refusals are those that the edge checks; rules that JSON Schema cannot express are in
 * a description. Resources that several routes share are under `components`. Generators of types read it. A default is
 * part of the description, because they take a field with one for a field that is always there; alternatives are
 * `oneOf`; a condition on fields is in `allOf` beside them.
 *
 * Spec openapi.document
 */

import { ACCOUNT } from '../account.ts'
import { BROADCAST } from '../broadcast.ts'
import { DOMAIN } from '../domain.ts'
import { ADDRESS, ATTACHMENT, EMAIL_ANSWER, EMAIL_BODY } from '../email.ts'
import { makeErrorBranch } from '../error.ts'
import { RECEIVED_MESSAGE, RECEIVED_SUMMARY } from '../inbound.ts'
import { IDEMPOTENCY_KEY_CHARS_MAX } from '../limits.ts'
import { MESSAGE, MESSAGE_EVENT, MESSAGE_SUMMARY, RECIPIENT_ENTRY } from '../message.ts'
import { REFUSALS, type RefusalCode, type RefusalRow } from '../refusals.ts'
import { REQUEST_ENTRY } from '../request-log.ts'
import { isLook, type KeyKind, type Route } from '../route.ts'
import type { RouteName } from '../routes.ts'
import { LIMIT_ENTRY, SERVER } from '../server.ts'
import { UUID } from '../shape.ts'
import { STATS_ENTRY, STATS_GROUP } from '../stats.ts'
import { STREAM } from '../stream.ts'
import { SUPPRESSION } from '../suppression.ts'
import { TOKEN, TOKEN_MADE } from '../token.ts'
import { DELIVERY, EVENT_BODIES, HTTPS_URI, MESSAGE_DELIVERY, WEBHOOK, WEBHOOK_CREATED } from '../webhook.ts'
import { makeExample } from './example.ts'
import { FIELD_WORDS } from './field-words.ts'
import { GROUP_DESCRIPTIONS, GROUP_NAMES, groupOf, SUMMARIES } from './summary.ts'

type Json = string | number | boolean | null | readonly Json[] | { readonly [field: string]: Json }
type Fields = { readonly [field: string]: Json }

/** Keywords that documents express otherwise. */
interface Conditional {
  readonly format?: string
  readonly recipientsMax?: number
  readonly default?: Json
  readonly if?: object
  readonly then?: object
  readonly else?: object
  readonly anyOf?: readonly object[]
  readonly properties?: object
}

/** Schemas that several routes share, by their name in the document. */
const COMPONENTS: Readonly<Record<string, object>> = {
  Account: ACCOUNT,
  Address: ADDRESS,
  Attachment: ATTACHMENT,
  Broadcast: BROADCAST,
  Delivery: DELIVERY,
  Domain: DOMAIN,
  Email: EMAIL_BODY,
  EmailAnswer: EMAIL_ANSWER,
  Key: TOKEN,
  KeyMade: TOKEN_MADE,
  LimitEntry: LIMIT_ENTRY,
  Message: MESSAGE,
  MessageDelivery: MESSAGE_DELIVERY,
  MessageEvent: MESSAGE_EVENT,
  MessageSummary: MESSAGE_SUMMARY,
  ReceivedMessage: RECEIVED_MESSAGE,
  ReceivedSummary: RECEIVED_SUMMARY,
  RecipientEntry: RECIPIENT_ENTRY,
  RequestEntry: REQUEST_ENTRY,
  Server: SERVER,
  StatsEntry: STATS_ENTRY,
  StatsGroup: STATS_GROUP,
  Stream: STREAM,
  Suppression: SUPPRESSION,
  Webhook: WEBHOOK,
  WebhookMade: WEBHOOK_CREATED,
}
/** Payloads of webhooks and feeds, by the name of the event. */
const EVENT_COMPONENTS = Object.entries(EVENT_BODIES).map(([event, schema]) => [`Event_${event}`, schema] as const)
const NAMES = new Map<unknown, string>(
  [...Object.entries(COMPONENTS), ...EVENT_COMPONENTS].map(([name, schema]) => [schema, name]),
)

/** Our own formats, in standard terms. */
const FORMATS: Readonly<Record<string, Fields>> = {
  address: { format: 'email', description: 'an e-mail address' },
  mailbox: { format: 'email', description: 'Address as in mail: any text before the last @' },
  'sending-domain': { format: 'hostname', description: 'a host name below a public suffix' },
  'header-name': { pattern: '^[\\x21-\\x39\\x3b-\\x7e]{1,76}$', description: 'a header name that a message may set' },
  base64: { contentEncoding: 'base64' },
  'webhook-url': {
    format: 'uri',
    pattern: HTTPS_URI,
    description: 'an https URI without fragment; user info with the format postmark only',
  },
}

const SCHEMES: Readonly<Record<KeyKind, string>> = { S: 'serverKey', A: 'accountKey', O: 'operatorKey' }
const BEARER = { type: 'http', scheme: 'bearer' }
const BEARERS: Readonly<Record<KeyKind, Fields>> = {
  S: { ...BEARER, description: 'A server key (sk_, or sk_test_ on a test server)' },
  A: { ...BEARER, description: 'An account key (ak_)' },
  O: { ...BEARER, description: 'An operator key (ok_)' },
}
const INFO: Readonly<Record<Route['listener'], Fields>> = {
  public: {
    title: 'Sendwright',
    version: '1',
    description: 'Transactional email: send messages and read their outcome.',
  },
  operator: {
    title: 'Sendwright, for its operator',
    version: '1',
    description: 'Accounts, queue and health, on a separate listener that must not be public.',
  },
}
const LICENSE = { name: 'MIT', identifier: 'MIT' }
const EVENT_STREAM = 'text/event-stream'
const GO_ON = 'Resumes after the event with this id, if all later events are still stored'
const REQUEST_ID = { description: 'Id of this request, which its log lines carry', schema: UUID }
const SECONDS = { type: 'integer', minimum: 1 }
const UNREAD =
  'Before it reads a request, any route can answer 413 or 429 in plain text: see TooLarge and TooManyRequests in components.responses.'

/**
 * Plain-text answers to a request that was not read. Operations with JSON refusals do not list them, so that each error
 * body of such an operation is JSON and clients with generated types can read `error.message`.
 */
const UNREAD_RESPONSES: Fields = {
  TooLarge: plainText('The body is larger than the route accepts'),
  TooManyRequests: {
    ...plainText('This client exceeds its request rate (EDGE_RATE)'),
    headers: { 'Retry-After': { description: 'Seconds to wait', schema: SECONDS } },
  },
}

/** A post to a webhook, for each event. Spec webhook.signature */
const WEBHOOKS: Fields = Object.fromEntries(
  EVENT_COMPONENTS.map(([name]) => {
    const event = name.replace('Event_', '')
    const header = { name: 'Service-Signature', in: 'header', required: true, schema: { type: 'string' } }
    const description = 't=<unix seconds>,v1=<hex>: HMAC-SHA256 of "<t>.<body>", keyed with the secret of the webhook'
    const operation = {
      operationId: `receive_${event}`,
      summary: `Receive the event ${event}`,
      description: 'Answer with any 2xx within 10 seconds. Any other answer is retried.',
      tags: ['Webhooks'],
      security: [],
      parameters: [{ ...header, description }],
      requestBody: { required: true, content: { 'application/json': { schema: ref(name) } } },
      responses: { '2XX': { description: 'The event was received' } },
    }
    return [event, { post: operation }]
  }),
)

/** The document of a listener's routes. Takes the routes of the table and the address of the listener. */
export function makeOpenapi(routes: readonly Route[], baseUrl: string, listener: Route['listener'] = 'public'): object {
  const shown = routes.filter((route) => route.listener === listener)
  const paths: Record<string, Record<string, Json>> = {}
  for (const route of shown) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: makeOperation(route) }
  }
  const groups = new Set(shown.map(({ path }) => groupOf(path)))
  const kinds = new Set(shown.flatMap(({ keys }) => keys))
  return {
    openapi: '3.1.0',
    info: { ...INFO[listener], description: `${INFO[listener].description} ${UNREAD}`, license: LICENSE },
    servers: [{ url: baseUrl }],
    tags: GROUP_NAMES.filter((name) => groups.has(name)).map((name) => ({
      name,
      description: GROUP_DESCRIPTIONS[name] as string,
    })),
    paths,
    ...(listener === 'public' && { webhooks: WEBHOOKS }),
    components: {
      securitySchemes: Object.fromEntries([...kinds].map((kind) => [SCHEMES[kind], BEARERS[kind]])),
      responses: UNREAD_RESPONSES,
      schemas: schemasFor([paths, listener === 'public' ? [WEBHOOKS, ref('Event')] : []]),
    },
  }
}

/** The shared schemas that a document refers to, directly or through others. Takes the parts that refer to them. */
function schemasFor(roots: Json): Fields {
  const all: Readonly<Record<string, Json>> = {
    ...Object.fromEntries(
      [...Object.entries(COMPONENTS), ...EVENT_COMPONENTS].map(([name, schema]) => [name, convertFields(schema)]),
    ),
    Event: { oneOf: EVENT_COMPONENTS.map(([name]) => ref(name)) },
    ...Object.fromEntries(
      REFUSALS.map((refusal) => [schemaName(refusal.code), convertFields(makeErrorBranch(refusal))]),
    ),
  }
  const used = new Set<string>()
  const names = [JSON.stringify(roots)]
  for (const text of names)
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue
      used.add(name)
      names.push(JSON.stringify(all[name]))
    }
  return Object.fromEntries(Object.entries(all).filter(([name]) => used.has(name)))
}

/** Every code that a route may refuse with, in the order of the table. Spec refusal.order */
export function findRefusals(route: Route): RefusalRow[] {
  const { keys, body, query, isIdempotent, path } = route
  const codes = new Set<RefusalCode>(route.refusals)
  const add = (condition: boolean, ...more: RefusalCode[]) => condition && more.map((code) => codes.add(code))
  const isOperator = route.listener === 'operator'
  add(true, 'internal_error', 'data_damaged', 'unavailable')
  add(keys.length > 0, 'unauthorized')
  // The operator listener accepts no other kind, so any other is just unauthorized there.
  add(keys.length > 0 && !isOperator, 'wrong_token_kind')
  add(body !== null, 'unsupported_media_type')
  // A parameter that no route knows is refused too.
  add(body !== null || query !== null || keys.length > 0, 'invalid_request')
  add(isIdempotent, 'idempotency_key_reused')
  add(!isLook(route) && !isOperator, 'account_not_active')
  add(path.includes('{'), 'not_found')
  return REFUSALS.filter(({ code }) => codes.has(code))
}

function makeOperation(route: Route): Json {
  const { name, keys, body, path } = route
  const example = body === null ? null : makeExample((body as Conditional).else ?? body, { isBody: true })
  const content = body === null ? null : { 'application/json': { schema: convertSchema(body), example } }
  return {
    operationId: name,
    summary: SUMMARIES[name as RouteName],
    description: makeDescription(route),
    tags: [groupOf(path)],
    security: keys.map((kind) => ({ [SCHEMES[kind]]: [] })),
    parameters: makeParameters(route),
    ...(content !== null && { requestBody: { required: true, content } }),
    responses: makeResponses(route),
  }
}

/** Which key an operation takes, and whether repeating it is safe. */
function makeDescription({ keys, isIdempotent }: Route): string {
  const names = { S: 'a server key', A: 'an account key', O: 'an operator key' }
  const kinds = keys.map((kind) => names[kind]).join(' or ')
  const key = kinds === '' ? 'Needs no key.' : `Needs ${kinds}.`
  return isIdempotent ? `${key} With an Idempotency-Key a repeated request takes effect once.` : key
}

function makeParameters({ path, query, isIdempotent, takesLastEventId }: Route): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true, description: FIELD_WORDS[name] ?? 'Id of the resource' },
    schema: convertSchema(UUID),
  }))
  const { properties = {}, required = [] } = (query ?? {}) as { properties?: object; required?: readonly string[] }
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    ...{ name, in: 'query', required: required.includes(name), description: FIELD_WORDS[name] ?? 'Filter' },
    schema: convertSchema(schema),
  }))
  const key = { type: 'string', minLength: 1, maxLength: IDEMPOTENCY_KEY_CHARS_MAX, pattern: '^[\\x20-\\x7e]+$' }
  const description = 'The same key with the same request returns the first accepted answer for 24 hours'
  const inHeader: Json[] = isIdempotent ? [{ name: 'Idempotency-Key', in: 'header', description, schema: key }] : []
  if (takesLastEventId)
    inHeader.push({ name: 'Last-Event-ID', in: 'header', description: GO_ON, schema: { type: 'string' } })
  return [...inPath, ...inQuery, ...inHeader]
}

function makeResponses(route: Route): Fields {
  const { success, isIdempotent } = route
  const sent = {
    'RateLimit-Policy': { schema: { type: 'string' } },
    RateLimit: { schema: { type: 'string' } },
    'Idempotent-Replayed': { schema: { const: 'true' } },
  }
  const responses: Record<string, Json> = {
    [success.status]: {
      description: 'Done',
      headers: { 'Request-Id': REQUEST_ID, ...(isIdempotent && sent) },
      ...makeContent(route),
    },
  }
  const refusals = findRefusals(route)
  for (const status of new Set(refusals.map((refusal) => refusal.status))) {
    const told = refusals.filter((refusal) => refusal.status === status)
    responses[status] = {
      description: told.map(({ message }) => message).join('; or: '),
      headers: makeHeaders(status),
      content: {
        'application/json': {
          schema: oneOf(told.map(({ code }) => ref(schemaName(code)))),
          examples: Object.fromEntries(told.map((refusal) => [refusal.code, { value: refusalExample(refusal) }])),
        },
      },
    }
  }
  const isRefusing = refusals.some(({ status }) => status < 500)
  return isRefusing ? responses : { ...responses, 429: { $ref: '#/components/responses/TooManyRequests' } }
}

/** Content of the answer of success: JSON, or text of another kind. */
function makeContent({ success: { body, media } }: Route): Fields {
  if (media !== undefined) {
    const told =
      media === EVENT_STREAM
        ? 'Lines `data: ` with an Event as JSON, each with its `id: ` before it'
        : media.startsWith('text/')
          ? 'Text'
          : 'Bytes'
    return { content: { [media]: { schema: { type: 'string', description: told } } } }
  }
  if (body === null) return {}
  return { content: { 'application/json': { schema: convertSchema(body), example: makeExample(body) } } }
}

function refusalExample(refusal: RefusalRow): Json {
  const { index, ...example } = makeExample(makeErrorBranch(refusal)) as Record<string, Json>
  return { ...example, message: refusal.message }
}

function plainText(description: string): Fields {
  return { description, content: { 'text/plain': { schema: { type: 'string' } } } }
}

function makeHeaders(status: number): Fields {
  return {
    'Request-Id': REQUEST_ID,
    ...(status === 401 && { 'WWW-Authenticate': { schema: { const: 'Bearer' } } }),
    ...((status === 429 || status === 503) && { 'Retry-After': { schema: SECONDS } }),
  }
}

/** A schema at its use, which is a reference if it has a name. */
function convertSchema(schema: unknown): Json {
  if (typeof schema !== 'object' || schema === null) return schema as Json
  if (Array.isArray(schema)) return schema.map(convertSchema)
  const name = NAMES.get(schema)
  return name === undefined ? convertFields(schema) : ref(name)
}

/** A schema in the words of JSON Schema, as generators of types understand them. */
function convertFields(schema: object): Fields {
  const {
    format,
    recipientsMax,
    default: preset,
    if: _condition,
    then: first,
    else: second,
    anyOf,
    ...rest
  } = schema as Conditional
  const fields = Object.fromEntries(
    Object.entries(rest).map(([keyword, value]) => [
      keyword,
      keyword === 'properties' ? describedFields(value as Fields) : convertSchema(value),
    ]),
  )
  const own = format === undefined ? undefined : (FORMATS[format] ?? { format })
  const sentences = [
    fields.description ?? own?.description,
    recipientsMax === undefined ? undefined : `At most ${recipientsMax} recipients in to, cc and bcc together`,
    preset === undefined ? undefined : `Default: ${JSON.stringify(preset)}`,
  ].filter((sentence) => sentence !== undefined)
  return {
    ...own,
    ...fields,
    ...(first !== undefined && { oneOf: [convertSchema(first), convertSchema(second)] }),
    // Beside the fields it would make of each alternative a type that holds anything.
    ...(anyOf !== undefined &&
      (rest.properties === undefined ? { anyOf: convertSchema(anyOf) } : { allOf: [{ anyOf: convertSchema(anyOf) }] })),
    ...(sentences.length > 0 && { description: sentences.join('. ') }),
  }
}

/** The fields of an object; one without a description gets that of its name. A reference has its own. */
function describedFields(properties: Fields): Fields {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, described(name, convertSchema(schema))]),
  )
}

function described(name: string, schema: Json): Json {
  const description = FIELD_WORDS[name]
  const isBare = typeof schema === 'object' && schema !== null && !('$ref' in schema) && !('description' in schema)
  return isBare && description !== undefined ? { ...(schema as Fields), description } : schema
}

/** One of several schemas, or the only one. */
function oneOf(schemas: readonly Fields[]): Fields {
  const [only, second] = schemas
  return only !== undefined && second === undefined ? only : { oneOf: schemas }
}

function ref(name: string): Fields {
  return { $ref: `#/components/schemas/${name}` }
}

function schemaName(code: string): string {
  return `Refusal_${code}`
}
