/**
 * egress - sources (addresses and relays), pools of sources, and the rules that choose a pool, as one document
 *
 * Lists in place of maps: no name of a caller is ever the key of an object.
 *
 * Spec egress.document, egress.explain
 */

import type { FromSchema } from 'json-schema-to-ts'
import {
  DOMAIN_CHARS_MAX,
  EGRESS_LIMITS_MAX,
  EGRESS_POOL_SOURCES_MAX,
  EGRESS_POOLS_MAX,
  EGRESS_RULES_MAX,
  EGRESS_SOURCES_MAX,
  EGRESS_WARMUP_DAYS_MAX,
} from '../limits.ts'
import { INSTANT, INSTANT_OR_NULL, INTEGER_OR_NULL, strictObject, TEXT_OR_NULL, UUID, UUID_OR_NULL } from '../shape.ts'
import { NOTE } from './audit.ts'

const PASSWORD_CHARS_MAX = 500
const UNITS_MAX = 1_000_000_000

/** The name of the source, and of the pool, that today's settings are. */
export const DEFAULT_EGRESS = 'default'

const NAME = {
  type: 'string',
  pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
  description: 'up to 32 small letters, digits and hyphens',
  examples: ['out-1'],
} as const
const NAME_OR_NULL = { ...NAME, type: ['string', 'null'] } as const
const HOST_PATTERN = '^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$'
const SITE = {
  type: 'string',
  pattern: HOST_PATTERN,
  description: "the end of a mail server's name such as google.com",
  examples: ['google.com'],
} as const
const ADDRESS_OR_NULL = {
  type: ['string', 'null'],
  pattern: '^[0-9A-Fa-f:.]{2,45}$',
  description: 'IPv4 or IPv6 address of the machines that deliver',
  examples: ['192.0.2.25'],
} as const
const EHLO_OR_NULL = {
  type: ['string', 'null'],
  pattern: HOST_PATTERN,
  description: 'Name in EHLO; null: SMTP_HOSTNAME',
  examples: ['out-1.example.com'],
} as const
const RELAY_OR_NULL = {
  type: ['string', 'null'],
  pattern: '^smtps?://([^\\s:/?#@]{1,200}@)?([A-Za-z0-9.-]{1,253}|\\[[0-9A-Fa-f:.]{2,45}\\])(:[0-9]{1,5})?/?$',
  description: '`smtp://user@host:587` or `smtps://host`, without its password',
  examples: ['smtps://relay.example.com'],
} as const

const count = (maximum: number) => ({ type: ['integer', 'null'], minimum: 1, maximum }) as const

const LIMIT_FIELDS = {
  connections: { ...count(256), description: 'Connections at once' },
  connectionsPerMinute: { ...count(10_000), description: 'New connections a minute' },
  messagesPerConnection: { ...count(100_000), description: 'Messages of one connection' },
  messagesPerSecond: { ...count(10_000), description: 'Messages a second' },
  messagesPerHour: { ...count(UNITS_MAX), description: 'Messages an hour (UTC), all processes together' },
  messagesPerDay: { ...count(UNITS_MAX), description: 'Messages a day (UTC), all processes together' },
} as const

const LIMIT_SITE = { ...SITE, description: "The end of a mail server's name such as google.com, or `default`" } as const

const LIMITS = {
  type: 'array',
  maxItems: EGRESS_LIMITS_MAX,
  description: 'Limits at each receiving site; the entry closest to its name is used',
} as const
const DAY = { type: 'string', pattern: '^2[0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' } as const
const START_DAY = { ...DAY, description: 'First day (UTC)', examples: ['2026-12-01'] } as const
const SCHEDULE_OR_NULL = {
  type: ['array', 'null'],
  minItems: 1,
  maxItems: EGRESS_WARMUP_DAYS_MAX,
  items: { type: 'integer', minimum: 1, maximum: UNITS_MAX },
  description: 'Messages to each site on the first day, the second and so on; null: the published schedule',
  examples: [[50, 100, 200]],
} as const
const SOURCES = { type: 'array', maxItems: EGRESS_SOURCES_MAX } as const
const TLS = {
  enum: ['opportunistic', 'verified'],
  description: 'Of a relay with `smtp://`: STARTTLS if it is offered, or only with a valid certificate',
} as const
const MEMBERS = { type: 'array', minItems: 1, maxItems: EGRESS_POOL_SOURCES_MAX } as const
const POOLS = { type: 'array', maxItems: EGRESS_POOLS_MAX } as const
const RULES = { type: 'array', maxItems: EGRESS_RULES_MAX, description: 'The first rule that matches decides' } as const
const WEIGHT = {
  type: 'integer',
  minimum: 0,
  maximum: 1000,
  description: 'Share of the mail; 0: only while no other source can send',
} as const
const STREAM_KIND = { enum: ['transactional', 'broadcast', null], description: 'Kind of the stream' } as const
const RULE_SITE = {
  ...SITE,
  type: ['string', 'null'],
  description: "The end of a mail server's name, or of the recipient's domain",
} as const

const RULE_FIELDS = {
  accountId: UUID_OR_NULL,
  serverId: UUID_OR_NULL,
  streamKind: STREAM_KIND,
  streamId: UUID_OR_NULL,
  site: RULE_SITE,
  pool: NAME,
} as const

const RELAY_CONNECTIONS = { ...count(256), description: 'Connections to the relay, all processes together' } as const

/** Body of PUT /v1/operator/egress: replaces the whole document. */
export const EGRESS_BODY = {
  type: 'object',
  properties: {
    sources: {
      ...SOURCES,
      items: {
        type: 'object',
        properties: {
          name: NAME,
          address: ADDRESS_OR_NULL,
          ehlo: EHLO_OR_NULL,
          relay: RELAY_OR_NULL,
          password: {
            type: ['string', 'null'],
            minLength: 1,
            maxLength: PASSWORD_CHARS_MAX,
            description: 'Of the relay; absent: the stored one is kept while the URL is the same; null: none',
          },
          tls: TLS,
          connections: RELAY_CONNECTIONS,
          limits: {
            ...LIMITS,
            items: {
              type: 'object',
              properties: { site: LIMIT_SITE, ...LIMIT_FIELDS },
              required: ['site'],
              additionalProperties: false,
            },
          },
          warmup: {
            type: ['object', 'null'],
            properties: { startDate: START_DAY, schedule: SCHEDULE_OR_NULL },
            required: ['startDate'],
            additionalProperties: false,
          },
        },
        required: ['name'],
        additionalProperties: false,
      },
    },
    pools: {
      ...POOLS,
      items: {
        type: 'object',
        properties: {
          name: NAME,
          sources: {
            ...MEMBERS,
            items: {
              type: 'object',
              properties: { source: NAME, weight: WEIGHT },
              required: ['source'],
              additionalProperties: false,
            },
          },
        },
        required: ['name', 'sources'],
        additionalProperties: false,
      },
    },
    rules: {
      ...RULES,
      items: { type: 'object', properties: RULE_FIELDS, required: ['pool'], additionalProperties: false },
    },
    defaultPool: { ...NAME_OR_NULL, description: "Pool of mail that no rule matches; null: today's settings" },
    note: NOTE,
  },
  required: ['sources', 'pools', 'rules'],
  additionalProperties: false,
} as const

const SOURCE = strictObject({
  name: NAME,
  address: ADDRESS_OR_NULL,
  ehlo: EHLO_OR_NULL,
  relay: RELAY_OR_NULL,
  tls: TLS,
  connections: RELAY_CONNECTIONS,
  limits: { ...LIMITS, items: strictObject({ site: LIMIT_SITE, ...LIMIT_FIELDS }) },
  warmup: {
    ...strictObject({ startDate: START_DAY, schedule: SCHEDULE_OR_NULL }),
    type: ['object', 'null'],
  },
} as const)

const RESTING_FIELDS = {
  source: NAME,
  site: { type: 'string', description: 'Names of its mail servers, or `relay`' },
  why: TEXT_OR_NULL,
  until: INSTANT,
} as const

/** Answer of GET and PUT /v1/operator/egress. */
export const EGRESS = strictObject({
  version: { type: 'integer', minimum: 0, description: 'Counts the changes; 0: there was none' },
  changedAt: INSTANT_OR_NULL,
  sources: { ...SOURCES, items: SOURCE },
  pools: {
    ...POOLS,
    items: strictObject({
      name: NAME,
      sources: { ...MEMBERS, items: strictObject({ source: NAME, weight: WEIGHT }) },
    }),
  },
  rules: { ...RULES, items: strictObject(RULE_FIELDS) },
  defaultPool: NAME_OR_NULL,
  passwords: { type: 'array', items: NAME, description: 'Sources whose relay has a stored password' },
  resting: {
    type: 'array',
    items: strictObject(RESTING_FIELDS),
    description: 'Sources that send nothing to a site for a while, because it blocked them or was out of their reach',
  },
} as const)

/** Query of GET /v1/operator/egress/explain. */
export const EGRESS_EXPLAIN_QUERY = {
  type: 'object',
  properties: {
    messageId: { ...UUID, description: 'A message; its account, server and stream choose the pool' },
    recipientIndex: { type: 'integer', minimum: 0, maximum: 49, default: 0 },
    domain: {
      type: 'string',
      minLength: 1,
      maxLength: DOMAIN_CHARS_MAX,
      description: "The recipient's domain, in place of a message",
    },
    accountId: UUID,
    serverId: UUID,
    streamId: UUID,
    streamKind: { enum: ['transactional', 'broadcast'] },
  },
  additionalProperties: false,
} as const

const LIMIT_NAMES = [
  'connections',
  'connectionsPerMinute',
  'messagesPerConnection',
  'messagesPerSecond',
  'messagesPerHour',
  'messagesPerDay',
  'warmupPerDay',
] as const

/** Answer of GET /v1/operator/egress/explain. */
export const EGRESS_EXPLAINED = strictObject({
  domain: { type: 'string' },
  site: { ...TEXT_OR_NULL, description: 'Names of the mail servers; null: not looked up, or the DNS did not answer' },
  rule: { ...INTEGER_OR_NULL, description: 'Place of the rule that matched, from 0; null: none' },
  pool: NAME,
  waits: { ...TEXT_OR_NULL, description: 'Why mail waits now; null: a source may send' },
  until: INSTANT_OR_NULL,
  sources: {
    type: 'array',
    items: strictObject({
      source: NAME,
      weight: WEIGHT,
      state: {
        enum: ['ready', 'resting', 'ceiling', 'unusable'],
        description:
          '`resting`: the site blocked it; `ceiling`: a limit is used up; `unusable`: its password cannot be opened',
      },
      why: TEXT_OR_NULL,
      until: INSTANT_OR_NULL,
      limits: {
        type: 'array',
        items: strictObject({
          limit: { enum: LIMIT_NAMES },
          value: { type: 'integer', minimum: 0 },
          used: { ...INTEGER_OR_NULL, description: 'Of this hour or day; null: not counted' },
          isCeiling: { type: 'boolean', description: 'It is the one that allows the fewest messages now' },
        }),
      },
      today: {
        ...strictObject({
          delivered: { type: 'integer' },
          deferred: { type: 'integer' },
          bounced: { type: 'integer' },
        }),
        description: 'Attempts of this day (UTC) with this source at this site',
      },
    }),
  },
} as const)

export type EgressBody = FromSchema<typeof EGRESS_BODY>
export type Egress = FromSchema<typeof EGRESS>
export type EgressExplained = FromSchema<typeof EGRESS_EXPLAINED>
export type EgressLimitName = (typeof LIMIT_NAMES)[number]
