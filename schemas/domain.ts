/**
 * domain - the Sending domain resource, its body, its list and the domains that cannot be added
 *
 * Spec domain.add, domain.refused, domain.read, domain.list, domain.verify
 */

import type { FromSchema } from 'json-schema-to-ts'

import { PAGE_DEFAULT, PAGE_MAX } from './limits.ts'
import { INSTANT, INSTANT_OR_NULL, strictObject, UUID, UUID_OR_NULL } from './shape.ts'

/** Body of POST /v1/domains. */
export const DOMAIN_BODY = {
  type: 'object',
  properties: {
    domain: { type: 'string', format: 'sending-domain' },
    testOnly: {
      type: 'boolean',
      default: false,
      description: 'Whether test servers can send from it at once, before its DNS records are found',
    },
  },
  required: ['domain'],
  additionalProperties: false,
} as const

/** Query of a list. */
export const PAGE_QUERY = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
    after: UUID,
  },
  additionalProperties: false,
} as const

function makeRecord<Type extends string>(type: Type) {
  return {
    type: 'object',
    properties: {
      type: { const: type },
      host: { type: 'string' },
      value: { type: 'string' },
      verified: { type: 'boolean' },
      verifiedAt: INSTANT_OR_NULL,
    },
    required: ['type', 'host', 'value', 'verified', 'verifiedAt'],
    additionalProperties: false,
  } as const
}

const DOMAIN_PROPERTIES = {
  domainId: UUID,
  domain: { type: 'string' },
  verified: { type: 'boolean' },
  testOnly: {
    type: 'boolean',
    description: 'Whether test servers can send from it although it is not verified; false once it is',
  },
  createdAt: INSTANT,
  lastCheckedAt: INSTANT_OR_NULL,
  failingSince: INSTANT_OR_NULL,
  /** When it stopped being verified; only for a domain that was verified before. */
  unverifiedSince: INSTANT,
  /** Since when one record is wrong while the other cannot be looked up; only while that is so. */
  undecidedSince: INSTANT,
  returnPath: makeRecord('CNAME'),
  dkim: makeRecord('TXT'),
  /** Only while a new key is pending. */
  pendingDkim: makeRecord('TXT'),
  recommended: {
    type: 'array',
    maxItems: 2,
    items: strictObject({
      type: { const: 'TXT' },
      host: { type: 'string' },
      value: { type: 'string' },
      purpose: { enum: ['dmarc_reports', 'tls_reports'] },
    }),
    description: 'Records with which receivers send their reports about the domain here; `verified` does not need them',
  },
} as const

const DOMAIN_REQUIRED = [
  'domainId',
  'domain',
  'verified',
  'testOnly',
  'createdAt',
  'lastCheckedAt',
  'failingSince',
  'returnPath',
  'dkim',
  'recommended',
] as const

/** The values found instead of a record. */
const INSTEAD = { type: 'array', items: { type: 'string' } } as const

const LOOK_UP = { enum: ['ok', 'missing', 'mismatch', 'dns_error'] } as const

/** Answer of GET /v1/domains/{id} and POST /v1/domains. */
export const DOMAIN = {
  type: 'object',
  properties: DOMAIN_PROPERTIES,
  required: DOMAIN_REQUIRED,
  additionalProperties: false,
} as const

/** Answer of POST /v1/domains/{id}/verify. */
export const DOMAIN_CHECKED = {
  type: 'object',
  properties: {
    ...DOMAIN_PROPERTIES,
    check: {
      type: 'object',
      properties: {
        returnPath: LOOK_UP,
        dkim: LOOK_UP,
        pendingDkim: LOOK_UP,
        /** The values found for a `mismatch`. Empty otherwise. */
        found: {
          type: 'object',
          properties: { returnPath: INSTEAD, dkim: INSTEAD, pendingDkim: INSTEAD },
          required: ['returnPath', 'dkim'],
          additionalProperties: false,
        },
      },
      required: ['returnPath', 'dkim', 'found'],
      additionalProperties: false,
    },
  },
  required: [...DOMAIN_REQUIRED, 'check'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/domains. */
export const DOMAIN_LIST = {
  type: 'object',
  properties: { domains: { type: 'array', maxItems: PAGE_MAX, items: DOMAIN }, next: UUID_OR_NULL },
  required: ['domains', 'next'],
  additionalProperties: false,
} as const

export type DomainBody = FromSchema<typeof DOMAIN_BODY>

export type Domain = FromSchema<typeof DOMAIN>

export type DomainChecked = FromSchema<typeof DOMAIN_CHECKED>

export type DomainList = FromSchema<typeof DOMAIN_LIST>

/**
 * Spec domain.refused: domains that cannot be added; `x.*` is x under any public suffix. SERVICE_DOMAIN joins at run
 * time.
 */
export const DOMAINS_REFUSED: readonly string[] = [
  'gmail.com',
  'outlook.com',
  'hotmail.com',
  'live.com',
  'yahoo.*',
  'icloud.com',
  'aol.com',
  'gmx.*',
  'proton.me',
  'mail.ru',
  'yandex.*',
  'qq.com',
  '163.com',
  'simulator.test',
]
