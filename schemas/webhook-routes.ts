/**
 * webhook-routes - the rows of webhooks and their deliveries, of the feed and the search of events
 *
 * Spec route.table, webhook.create, webhook.deliveries, event.feed, event.search
 */

import { WEBHOOK_HEALTH } from './counts/webhook-health.ts'
import { PAGE_QUERY } from './domain.ts'
import { type Route, route } from './route.ts'
import {
  DELIVERIES_QUERY,
  DELIVERY,
  DELIVERY_LIST,
  DELIVERY_READ,
  EVENT_LIST,
  EVENT_SEARCH,
  EXAMPLE_BODY,
  MESSAGE_DELIVERY_LIST,
  REPLAY_BODY,
  REPLAYED,
  WEBHOOK,
  WEBHOOK_BODY,
  WEBHOOK_CREATED,
  WEBHOOK_LIST,
  WEBHOOK_SECRET,
} from './webhook.ts'

export const WEBHOOK_ROUTES = {
  listenToEvents: route('listenToEvents', 'GET', '/v1/events', {
    success: { status: 200, body: null, media: 'text/event-stream' },
    takesLastEventId: true,
    refusals: ['content_expired', 'feed_limit'],
  }),
  searchEvents: route('searchEvents', 'POST', '/v1/events/search', {
    body: EVENT_SEARCH,
    success: { status: 200, body: EVENT_LIST },
    refusals: ['stream_not_found'],
  }),
  createWebhook: route('createWebhook', 'POST', '/v1/webhooks', {
    body: WEBHOOK_BODY,
    success: { status: 201, body: WEBHOOK_CREATED },
    refusals: ['stream_not_found', 'webhook_exists'],
  }),
  listWebhooks: route('listWebhooks', 'GET', '/v1/webhooks', {
    query: PAGE_QUERY,
    success: { status: 200, body: WEBHOOK_LIST },
  }),
  readWebhookHealth: route('readWebhookHealth', 'GET', '/v1/webhooks/health', {
    query: PAGE_QUERY,
    success: { status: 200, body: WEBHOOK_HEALTH },
  }),
  readWebhook: route('readWebhook', 'GET', '/v1/webhooks/{webhookId}', { success: { status: 200, body: WEBHOOK } }),
  deleteWebhook: route('deleteWebhook', 'DELETE', '/v1/webhooks/{webhookId}', { success: { status: 204, body: null } }),
  enableWebhook: route('enableWebhook', 'POST', '/v1/webhooks/{webhookId}/enable', {
    success: { status: 200, body: WEBHOOK },
  }),
  disableWebhook: route('disableWebhook', 'POST', '/v1/webhooks/{webhookId}/disable', {
    success: { status: 200, body: WEBHOOK },
  }),
  addWebhookSecret: route('addWebhookSecret', 'POST', '/v1/webhooks/{webhookId}/secrets', {
    success: { status: 201, body: WEBHOOK_SECRET },
    refusals: ['secret_limit'],
  }),
  deleteWebhookSecret: route('deleteWebhookSecret', 'DELETE', '/v1/webhooks/{webhookId}/secrets/{secretId}', {
    success: { status: 204, body: null },
    refusals: ['last_secret'],
  }),
  listDeliveries: route('listDeliveries', 'GET', '/v1/webhooks/{webhookId}/deliveries', {
    query: DELIVERIES_QUERY,
    success: { status: 200, body: DELIVERY_LIST },
  }),
  readDelivery: route('readDelivery', 'GET', '/v1/webhooks/{webhookId}/deliveries/{deliveryId}', {
    success: { status: 200, body: DELIVERY_READ },
  }),
  listMessageDeliveries: route('listMessageDeliveries', 'GET', '/v1/messages/{id}/deliveries', {
    query: PAGE_QUERY,
    success: { status: 200, body: MESSAGE_DELIVERY_LIST },
  }),
  replayDelivery: route('replayDelivery', 'POST', '/v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay', {
    success: { status: 202, body: DELIVERY },
    refusals: ['webhook_disabled'],
  }),
  replayDead: route('replayDead', 'POST', '/v1/webhooks/{webhookId}/replay', {
    body: REPLAY_BODY,
    success: { status: 202, body: REPLAYED },
    refusals: ['webhook_disabled'],
  }),
  testWebhook: route('testWebhook', 'POST', '/v1/webhooks/{webhookId}/test', {
    body: EXAMPLE_BODY,
    success: { status: 202, body: DELIVERY },
    refusals: ['webhook_disabled'],
  }),
} as const satisfies Record<string, Route>
