/**
 * webhook - the events that clients are notified of, webhooks and their deliveries, and the payload of a delivery
 *
 * Spec event.catalogue, webhook.read, webhook.delivery
 */

import type { FromSchema } from 'json-schema-to-ts'
import { RECEIVED_CONTENT, RECEIVED_REFERENCE } from './inbound.ts'
import {
  DELIVERIES_PAGE_DEFAULT,
  DELIVERIES_PAGE_MAX,
  EVENT_PEOPLE_MAX,
  EVENTS_PAGE_DEFAULT,
  EVENTS_PAGE_MAX,
  PAGE_MAX,
  TAG_CHARS_MAX,
  WAIT_SECONDS_MAX,
  WEBHOOK_SECRETS_MAX,
} from './limits.ts'
import { MESSAGE_EVENTS, METADATA_ENTRY } from './message.ts'
import {
  INSTANT,
  INSTANT_OR_NULL,
  INTEGER_OR_NULL,
  PRINTABLE,
  strictObject,
  TEXT_MAP,
  TEXT_OR_NULL,
  UUID,
  UUID_OR_NULL,
} from './shape.ts'

/** Events of a monthly cap. */
const CAP_EVENTS = ['cap_warning', 'cap_reached'] as const

/** Spec event.catalogue: every event, in the catalogue's order. */
export const EVENTS = [...MESSAGE_EVENTS, ...CAP_EVENTS, 'inbound'] as const

export type MessageEventName = (typeof MESSAGE_EVENTS)[number]
export type CapEventName = (typeof CAP_EVENTS)[number]
export type EventName = (typeof EVENTS)[number]

/** Spec webhook.delivery */
const DELIVERY_STATUSES = ['pending', 'delivered', 'dead'] as const

const INBOUND_CONTENTS = ['full', 'reference', 'raw'] as const
export type InboundContent = (typeof INBOUND_CONTENTS)[number]
/** Whose shape the bodies of a webhook have. Spec webhook.format */
export const WEBHOOK_FORMATS = ['sendwright', 'resend', 'postmark'] as const
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number]
/** Events that a format has a body for. */
export const EVENTS_OF_FORMAT = {
  sendwright: EVENTS,
  resend: ['delivered', 'bounced', 'deferred', 'spam_complaint', 'inbound'],
  postmark: ['delivered', 'bounced', 'spam_complaint', 'unsubscribed', 'inbound'],
} as const satisfies Record<WebhookFormat, readonly EventName[]>

const COUNT = { type: 'integer', minimum: 0 } as const
const TEXT = { type: 'string' } as const

const UNRESERVED = "A-Za-z0-9._~!$&'()*+,;=-"
const ESCAPED = '%[0-9A-Fa-f]{2}'
/**
 * The form of a webhook's URL, an https URI (RFC 3986) without fragment; the route refuses user info in most. It is
 * all ASCII, because clients disagree about hosts in other letters, blanks and backslashes.
 */
export const HTTPS_URI =
  `^[Hh][Tt][Tt][Pp][Ss]://(?:(?:[:${UNRESERVED}]|${ESCAPED})*@)?(?:\\[[0-9A-Fa-f:.]+\\]|(?:[${UNRESERVED}]|${ESCAPED})+)(?::[0-9]*)?` +
  `(?:/(?:[:@/${UNRESERVED}]|${ESCAPED})*)?(?:\\?(?:[:@/?${UNRESERVED}]|${ESCAPED})*)?$`

/** Body of POST /v1/webhooks. */
export const WEBHOOK_BODY = {
  type: 'object',
  properties: {
    url: { type: 'string', format: 'webhook-url' },
    events: { type: 'array', minItems: 1, maxItems: EVENTS.length, uniqueItems: true, items: { enum: EVENTS } },
    streamId: { ...UUID_OR_NULL, default: null },
    tag: { ...PRINTABLE, type: ['string', 'null'], minLength: 1, maxLength: TAG_CHARS_MAX, default: null },
    metadata: { ...METADATA_ENTRY, type: ['object', 'null'], default: null },
    inboundContent: { enum: INBOUND_CONTENTS, default: 'full' },
    format: { enum: WEBHOOK_FORMATS, default: 'sendwright' },
  },
  required: ['url'],
  additionalProperties: false,
} as const

const SECRET_PROPERTIES = { secretId: UUID, createdAt: INSTANT } as const

const WEBHOOK_PROPERTIES = {
  webhookId: UUID,
  url: TEXT,
  events: { type: 'array', items: { enum: EVENTS } },
  streamId: UUID_OR_NULL,
  tag: TEXT_OR_NULL,
  metadata: { ...TEXT_MAP, type: ['object', 'null'] },
  enabled: { type: 'boolean' },
  inboundContent: { enum: INBOUND_CONTENTS },
  format: { enum: WEBHOOK_FORMATS },
  createdAt: INSTANT,
  secrets: {
    type: 'array',
    maxItems: WEBHOOK_SECRETS_MAX,
    items: {
      type: 'object',
      properties: SECRET_PROPERTIES,
      required: ['secretId', 'createdAt'],
      additionalProperties: false,
    },
  },
} as const

const WEBHOOK_REQUIRED = [
  'webhookId',
  'url',
  'events',
  'streamId',
  'tag',
  'metadata',
  'enabled',
  'inboundContent',
  'format',
  'createdAt',
  'secrets',
] as const

const SECRET = { type: 'string', pattern: '^whsec_[A-Za-z0-9+/]{43}=$' } as const

/** Answer of GET /v1/webhooks/{webhookId}. */
export const WEBHOOK = {
  type: 'object',
  properties: WEBHOOK_PROPERTIES,
  required: WEBHOOK_REQUIRED,
  additionalProperties: false,
} as const

/** Answer of POST /v1/webhooks, the only one with the secret. */
export const WEBHOOK_CREATED = {
  type: 'object',
  properties: { ...WEBHOOK_PROPERTIES, secret: SECRET },
  required: [...WEBHOOK_REQUIRED, 'secret'],
  additionalProperties: false,
} as const

export const WEBHOOK_LIST = {
  type: 'object',
  properties: { webhooks: { type: 'array', maxItems: PAGE_MAX, items: WEBHOOK }, next: UUID_OR_NULL },
  required: ['webhooks', 'next'],
  additionalProperties: false,
} as const

/** Answer of POST /v1/webhooks/{webhookId}/secrets. */
export const WEBHOOK_SECRET = {
  type: 'object',
  properties: { ...SECRET_PROPERTIES, secret: SECRET },
  required: ['secretId', 'createdAt', 'secret'],
  additionalProperties: false,
} as const

const DELIVERY_PROPERTIES = {
  deliveryId: UUID,
  event: { enum: EVENTS },
  messageId: UUID_OR_NULL,
  inboundMessageId: UUID_OR_NULL,
  status: { enum: DELIVERY_STATUSES },
  attempts: COUNT,
  nextAttemptAt: INSTANT_OR_NULL,
  lastStatusCode: INTEGER_OR_NULL,
  lastError: TEXT_OR_NULL,
  /** Of the receiver's last answer, at most 512 bytes on one line, with addresses replaced by `<address>`. */
  lastResponse: TEXT_OR_NULL,
  deliveredAt: INSTANT_OR_NULL,
  createdAt: INSTANT,
} as const

const DELIVERY_REQUIRED = [
  'deliveryId',
  'event',
  'messageId',
  'inboundMessageId',
  'status',
  'attempts',
  'nextAttemptAt',
  'lastStatusCode',
  'lastError',
  'lastResponse',
  'deliveredAt',
  'createdAt',
] as const

export const DELIVERY = {
  type: 'object',
  properties: DELIVERY_PROPERTIES,
  required: DELIVERY_REQUIRED,
  additionalProperties: false,
} as const

/**
 * A delivery of a message's event, with its webhook and the details that identify the event among those of the message.
 */
export const MESSAGE_DELIVERY = strictObject({
  ...DELIVERY_PROPERTIES,
  webhookId: UUID,
  recipient: TEXT,
  occurredAt: INSTANT,
})

/** Answer of GET /v1/messages/{id}/deliveries. */
export const MESSAGE_DELIVERY_LIST = strictObject({
  deliveries: { type: 'array', maxItems: PAGE_MAX, items: MESSAGE_DELIVERY },
  next: UUID_OR_NULL,
})

/** Query of GET /v1/webhooks/{webhookId}/deliveries. */
export const DELIVERIES_QUERY = {
  type: 'object',
  properties: {
    status: { enum: DELIVERY_STATUSES },
    event: { enum: EVENTS },
    limit: { type: 'integer', minimum: 1, maximum: DELIVERIES_PAGE_MAX, default: DELIVERIES_PAGE_DEFAULT },
    after: UUID,
  },
  additionalProperties: false,
} as const

export const DELIVERY_LIST = {
  type: 'object',
  properties: {
    deliveries: { type: 'array', maxItems: DELIVERIES_PAGE_MAX, items: DELIVERY },
    next: UUID_OR_NULL,
  },
  required: ['deliveries', 'next'],
  additionalProperties: false,
} as const

/** Body of POST /v1/webhooks/{webhookId}/replay. */
export const REPLAY_BODY = {
  type: 'object',
  properties: { createdFrom: INSTANT, createdTo: { ...INSTANT_OR_NULL, default: null }, status: { const: 'dead' } },
  required: ['createdFrom', 'status'],
  additionalProperties: false,
} as const

export const REPLAYED = {
  type: 'object',
  properties: { queued: COUNT },
  required: ['queued'],
  additionalProperties: false,
} as const

/** Body of POST /v1/webhooks/{webhookId}/test. */
export const EXAMPLE_BODY = {
  type: 'object',
  properties: { event: { enum: EVENTS } },
  required: ['event'],
  additionalProperties: false,
} as const

const SMTP_DETAILS = { code: INTEGER_OR_NULL, response: TEXT_OR_NULL } as const
const DETAILS = {
  delivered: SMTP_DETAILS,
  deferred: SMTP_DETAILS,
  bounced: {
    ...SMTP_DETAILS,
    classification: TEXT_OR_NULL,
    hard: { type: 'boolean' },
    expired: { type: 'boolean' },
  },
  spam_complaint: { feedbackType: TEXT_OR_NULL },
  unsubscribed: { source: { enum: ['link', 'one_click'] } },
} as const satisfies Record<MessageEventName, object>

/** An event without the fields that its deliveries add: `id` and `attempt`. */
export type EventBody = Readonly<Record<string, unknown>> & { readonly event: EventName }

/** Spec event.catalogue: payload of a message's event. */
function messageEventBody(event: MessageEventName) {
  const properties = {
    id: UUID,
    attempt: { type: 'integer', minimum: 1 },
    messageId: UUID,
    recipient: TEXT,
    occurredAt: INSTANT,
    serverId: UUID,
    streamId: UUID,
    broadcastId: UUID_OR_NULL,
    tag: TEXT_OR_NULL,
    metadata: TEXT_MAP,
    test: { type: 'boolean' },
    event: { const: event },
    details: strictObject(DETAILS[event]),
  }
  return strictObject(properties)
}

/** Spec event.catalogue: payload of a cap's event. */
function capEventBody(event: CapEventName) {
  return strictObject({
    id: UUID,
    attempt: { type: 'integer', minimum: 1 },
    event: { const: event },
    scope: { enum: ['account', 'server', 'test'] },
    serverId: UUID_OR_NULL,
    cap: COUNT,
    used: COUNT,
    periodStart: INSTANT,
    periodEnd: INSTANT,
    occurredAt: INSTANT,
  })
}

const INBOUND_EVENT = {
  id: UUID,
  attempt: { type: 'integer', minimum: 1 },
  event: { const: 'inbound' },
  serverId: UUID,
  ...RECEIVED_REFERENCE,
} as const
const INBOUND_FULL = {
  ...INBOUND_EVENT,
  ...RECEIVED_CONTENT,
  to: { ...RECEIVED_CONTENT.to, maxItems: EVENT_PEOPLE_MAX },
  cc: { ...RECEIVED_CONTENT.cc, maxItems: EVENT_PEOPLE_MAX },
} as const

/** Spec event.catalogue: payloads by event; for `inbound` both forms. */
export const EVENT_BODIES: Readonly<Record<EventName, object>> = {
  delivered: messageEventBody('delivered'),
  bounced: messageEventBody('bounced'),
  deferred: messageEventBody('deferred'),
  spam_complaint: messageEventBody('spam_complaint'),
  unsubscribed: messageEventBody('unsubscribed'),
  cap_warning: capEventBody('cap_warning'),
  cap_reached: capEventBody('cap_reached'),
  inbound: { oneOf: [strictObject(INBOUND_EVENT), strictObject(INBOUND_FULL)] },
}

/** Body of POST /v1/events/search. */
export const EVENT_SEARCH = {
  type: 'object',
  properties: {
    event: { enum: EVENTS },
    streamId: UUID,
    tag: { ...PRINTABLE, minLength: 1, maxLength: TAG_CHARS_MAX },
    metadata: METADATA_ENTRY,
    messageId: UUID,
    recipient: { type: 'string', format: 'address' },
    from: INSTANT,
    to: INSTANT,
    limit: { type: 'integer', minimum: 1, maximum: EVENTS_PAGE_MAX, default: EVENTS_PAGE_DEFAULT },
    after: UUID,
    waitSeconds: {
      type: 'integer',
      minimum: 0,
      maximum: WAIT_SECONDS_MAX,
      description: 'Seconds to wait until something matches; the page is empty if nothing does. Not with `after`',
    },
  },
  additionalProperties: false,
} as const

/** Answer of POST /v1/events/search. */
export const EVENT_LIST = strictObject({
  events: {
    type: 'array',
    maxItems: EVENTS_PAGE_MAX,
    items: {
      type: 'object',
      properties: { id: UUID, attempt: { const: 1 }, event: { enum: EVENTS } },
      required: ['id', 'attempt', 'event'],
      additionalProperties: true,
      description: 'The body of a webhook: its fields depend on `event`. Received mail has the form `reference`.',
    },
  },
  next: UUID_OR_NULL,
})

/** Answer of GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}, with the record and its current payload. */
export const DELIVERY_READ = {
  type: 'object',
  properties: { ...DELIVERY_PROPERTIES, body: { type: ['object', 'null'] } },
  required: [...DELIVERY_REQUIRED, 'body'],
  additionalProperties: false,
} as const

export type WebhookBody = FromSchema<typeof WEBHOOK_BODY>
export type Webhook = FromSchema<typeof WEBHOOK>
export type Delivery = FromSchema<typeof DELIVERY>
export type EventSearch = FromSchema<typeof EVENT_SEARCH>
export type DeliveryList = FromSchema<typeof DELIVERY_LIST>
export type MessageDelivery = FromSchema<typeof MESSAGE_DELIVERY>
export type MessageDeliveryList = FromSchema<typeof MESSAGE_DELIVERY_LIST>
export type ReplayBody = FromSchema<typeof REPLAY_BODY>
export type ExampleBody = FromSchema<typeof EXAMPLE_BODY>
