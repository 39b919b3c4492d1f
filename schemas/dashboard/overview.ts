/**
 * overview - everything about a server and its account that its overview shows besides statistics, in one answer
 *
 * Spec dashboard.overview
 */

import type { FromSchema } from 'json-schema-to-ts'
import { WEBHOOK_HEALTH } from '../counts/webhook-health.ts'
import { DOMAIN_LIST } from '../domain.ts'
import { SERVER } from '../server.ts'
import { strictObject } from '../shape.ts'
import { STREAM_LIST } from '../stream.ts'
import { WEBHOOK_LIST } from '../webhook.ts'
import { CHECKLIST } from './account.ts'

/** Answer of GET /dashboard/api/servers/{serverId}/overview: the first 100 of each list, newest first. */
export const OVERVIEW = strictObject({
  server: SERVER,
  streams: STREAM_LIST.properties.streams,
  domains: DOMAIN_LIST.properties.domains,
  webhooks: WEBHOOK_LIST.properties.webhooks,
  health: WEBHOOK_HEALTH.properties.webhooks,
  checklist: CHECKLIST,
})

export type Overview = FromSchema<typeof OVERVIEW>
