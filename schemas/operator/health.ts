/**
 * health - the checks of an installation's requirements, and the fix of each fault
 *
 * Spec operator.health
 */

import type { FromSchema } from 'json-schema-to-ts'
import { TEXT_OR_NULL } from '../shape.ts'

/** Everything that is looked at, in the order of the answer. */
export const EXAMINED = [
  'store',
  'clock',
  'disk',
  'fsync',
  'kernel',
  'node',
  'backup',
  'secret',
  'content',
  'segments',
  'http-engine',
  'exposure',
  'resolver',
  'dnssec',
  'service-domain',
  'outbound-port',
  'ehlo-name',
  'ptr',
  'mx',
  'mx-listener',
  'mx-port',
  'submission',
  'return-path',
  'spf',
  'service-dkim',
  'dmarc',
  'report-authorization',
  'egress',
  'blocklists',
  'tls',
  'unsubscribe',
  'webhook-ports',
  'domains',
] as const

/** Answer of GET /v1/operator/health. */
export const HEALTH = {
  type: 'object',
  properties: {
    /** False if one has failed. */
    ok: { type: 'boolean' },
    findings: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: { enum: EXAMINED },
          status: { enum: ['ok', 'warning', 'failed'] },
          message: { type: 'string' },
          /** The record or the step that fixes it; null if nothing is wrong. */
          fix: { type: ['string', 'null'] },
        },
        required: ['name', 'status', 'message', 'fix'],
        additionalProperties: false,
      },
    },
    /** Every DNS record that the installation needs. */
    records: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          host: { type: 'string' },
          type: { enum: ['A', 'AAAA', 'CNAME', 'MX', 'TXT'] },
          /** Without quotes; null if unknown here. */
          value: TEXT_OR_NULL,
          /** The required value. */
          remark: TEXT_OR_NULL,
        },
        required: ['host', 'type', 'value', 'remark'],
        additionalProperties: false,
      },
    },
  },
  required: ['ok', 'findings', 'records'],
  additionalProperties: false,
} as const

export type Health = FromSchema<typeof HEALTH>
export type Finding = Health['findings'][number]
export type ExaminedName = (typeof EXAMINED)[number]
