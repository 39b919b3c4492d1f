/**
 * routes - the rows of the routes that read and change for how long content is kept
 *
 * Spec route.table, retention.settings
 */

import { type Route, route } from '../route.ts'
import {
  ACCOUNT_RETENTION,
  ACCOUNT_RETENTION_BODY,
  ACCOUNT_RETENTION_BODY_AS_OPERATOR,
  CONTENT_RETENTION,
  CONTENT_RETENTION_BODY,
  INSTALLATION_RETENTION,
  INSTALLATION_RETENTION_BODY,
} from './retention.ts'

export const RETENTION_ROUTES = {
  readAccountRetention: route('readAccountRetention', 'GET', '/v1/account/retention', {
    keys: ['A'],
    success: { status: 200, body: ACCOUNT_RETENTION },
  }),
  patchAccountRetention: route('patchAccountRetention', 'PATCH', '/v1/account/retention', {
    keys: ['A'],
    body: ACCOUNT_RETENTION_BODY,
    success: { status: 200, body: ACCOUNT_RETENTION },
  }),
  readServerRetention: route('readServerRetention', 'GET', '/v1/servers/{serverId}/retention', {
    keys: ['A'],
    success: { status: 200, body: CONTENT_RETENTION },
  }),
  patchServerRetention: route('patchServerRetention', 'PATCH', '/v1/servers/{serverId}/retention', {
    keys: ['A'],
    body: CONTENT_RETENTION_BODY,
    success: { status: 200, body: CONTENT_RETENTION },
  }),
  readStreamRetention: route('readStreamRetention', 'GET', '/v1/streams/{id}/retention', {
    success: { status: 200, body: CONTENT_RETENTION },
  }),
  patchStreamRetention: route('patchStreamRetention', 'PATCH', '/v1/streams/{id}/retention', {
    body: CONTENT_RETENTION_BODY,
    success: { status: 200, body: CONTENT_RETENTION },
  }),
} as const satisfies Record<string, Route>

export const OPERATOR_RETENTION_ROUTES = {
  readInstallationRetention: route('readInstallationRetention', 'GET', '/v1/operator/retention', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: INSTALLATION_RETENTION },
  }),
  patchInstallationRetention: route('patchInstallationRetention', 'PATCH', '/v1/operator/retention', {
    listener: 'operator',
    keys: ['O'],
    body: INSTALLATION_RETENTION_BODY,
    success: { status: 200, body: INSTALLATION_RETENTION },
  }),
  readAccountRetentionAsOperator: route(
    'readAccountRetentionAsOperator',
    'GET',
    '/v1/operator/accounts/{accountId}/retention',
    { listener: 'operator', keys: ['O'], success: { status: 200, body: ACCOUNT_RETENTION } },
  ),
  patchAccountRetentionAsOperator: route(
    'patchAccountRetentionAsOperator',
    'PATCH',
    '/v1/operator/accounts/{accountId}/retention',
    {
      listener: 'operator',
      keys: ['O'],
      body: ACCOUNT_RETENTION_BODY_AS_OPERATOR,
      success: { status: 200, body: ACCOUNT_RETENTION },
      refusals: ['account_closed'],
    },
  ),
} as const satisfies Record<string, Route>
