/** door - Resend's API: its routes, and the location of the key in its requests */

import { type Route, route } from '../../../schemas/route.ts'
import type { Door } from '../../http/door.ts'
import { type DoorRow, type DoorTable, MAPPED } from '../common/door-table.ts'
import {
  resendAddDomain,
  resendListDomains,
  resendReadDomain,
  resendRemoveDomain,
  resendVerifyDomain,
} from './domains.ts'
import { resendListEmails, resendReadEmail } from './emails.ts'
import { presentRefusal } from './errors.ts'
import { LIST_QUERY, SUPPRESSIONS_QUERY } from './lists.ts'
import {
  RECEIVED_QUERY,
  resendListAttachments,
  resendListReceived,
  resendReadAttachment,
  resendReadReceived,
} from './received.ts'
import { cancel, RESEND_KEY_CHARS_MAX, reschedule, sendMany, sendOne } from './send.ts'
import {
  resendAddSuppression,
  resendAddSuppressions,
  resendListSuppressions,
  resendReadSuppression,
  resendRemoveSuppression,
  resendRemoveSuppressions,
} from './suppressions.ts'

/** A key of another provider next to ours makes the request ambiguous. */
const OTHER_CREDENTIALS = ['x-postmark-server-token', 'x-postmark-account-token'] as const

const door: Door = {
  headerNames: ['x-batch-validation', ...OTHER_CREDENTIALS],
  authorize: ({ authorization, named }) => (OTHER_CREDENTIALS.some((name) => name in named) ? '' : authorization),
  present: presentRefusal,
}

const success = { status: 200, body: null }
const sends = { body: MAPPED, isIdempotent: true, success } as const
const ofAccount = { keys: ['A'], success } as const

function row(made: Route, handle: DoorRow['handle']): DoorRow {
  return made.isIdempotent
    ? { route: made, handle, idempotencyCharsMax: RESEND_KEY_CHARS_MAX }
    : { route: made, handle }
}

export const RESEND: DoorTable = {
  name: 'resend',
  door,
  rows: [
    row(route('resendSend', 'POST', '/emails', sends), sendOne),
    row(route('resendSendBatch', 'POST', '/emails/batch', sends), sendMany),
    row(route('resendListEmails', 'GET', '/emails', { query: LIST_QUERY, success }), resendListEmails),
    row(route('resendReadEmail', 'GET', '/emails/{id}', { success }), resendReadEmail),
    row(route('resendPatchEmail', 'PATCH', '/emails/{id}', { body: MAPPED, success }), reschedule),
    row(route('resendCancelEmail', 'POST', '/emails/{id}/cancel', { success }), cancel),
    row(route('resendListReceived', 'GET', '/emails/receiving', { query: LIST_QUERY, success }), resendListReceived),
    row(
      route('resendReadReceived', 'GET', '/emails/receiving/{id}', { query: RECEIVED_QUERY, success }),
      resendReadReceived,
    ),
    row(
      route('resendListAttachments', 'GET', '/emails/receiving/{id}/attachments', { success }),
      resendListAttachments,
    ),
    row(
      route('resendReadAttachment', 'GET', '/emails/receiving/{id}/attachments/{attachmentId}', { success }),
      resendReadAttachment,
    ),
    row(route('resendAddSuppression', 'POST', '/suppressions', { body: MAPPED, success }), resendAddSuppression),
    row(
      route('resendListSuppressions', 'GET', '/suppressions', { query: SUPPRESSIONS_QUERY, success }),
      resendListSuppressions,
    ),
    row(
      route('resendAddSuppressions', 'POST', '/suppressions/batch/add', { body: MAPPED, success }),
      resendAddSuppressions,
    ),
    row(
      route('resendRemoveSuppressions', 'POST', '/suppressions/batch/remove', { body: MAPPED, success }),
      resendRemoveSuppressions,
    ),
    row(route('resendReadSuppression', 'GET', '/suppressions/{id}', { success }), resendReadSuppression),
    row(route('resendRemoveSuppression', 'DELETE', '/suppressions/{id}', { success }), resendRemoveSuppression),
    row(route('resendAddDomain', 'POST', '/domains', { ...ofAccount, body: MAPPED }), resendAddDomain),
    row(route('resendListDomains', 'GET', '/domains', { ...ofAccount, query: LIST_QUERY }), resendListDomains),
    row(route('resendReadDomain', 'GET', '/domains/{id}', ofAccount), resendReadDomain),
    row(route('resendVerifyDomain', 'POST', '/domains/{id}/verify', ofAccount), resendVerifyDomain),
    row(route('resendRemoveDomain', 'DELETE', '/domains/{id}', ofAccount), resendRemoveDomain),
  ],
  deadEnds: [
    ...nothingBelow('/emails', 'No such route'),
    ...nothingBelow('/suppressions', 'No such route'),
    ...nothingBelow('/domains', 'No such route'),
    ...nothing('/audiences', 'Audiences are not offered: send a broadcast with its recipients to POST /v1/broadcasts'),
    ...nothing('/segments', 'Segments are not offered: send a broadcast with its recipients to POST /v1/broadcasts'),
    ...nothing('/contacts', 'Contacts are not offered: keep them in the application'),
    ...nothing('/templates', 'Templates are not offered: render the message in the application'),
    ...nothing('/logs', 'Requests are listed at /v1/requests/search'),
    ...nothing('/events', 'Events are listed at /v1/events/search'),
    ...nothing('/automations', 'Automations are not offered'),
    ...nothing('/contact-properties', 'Contacts are not offered: keep them in the application'),
    ...nothing('/inboxes', 'Inboxes are not offered: received mail is at /emails/receiving/{id}'),
    ...nothing('/usage', 'Usage is shown in the dashboard, and by GET /v1/stats'),
    ...nothing('/oauth', 'OAuth is not offered: use a server key'),
    ...nothing('/topics', 'Topics are not offered: use a stream for each'),
    ...nothing('/broadcasts', "Resend's broadcasts are not offered: use POST /v1/broadcasts"),
    ...nothing('/api-keys', 'Keys are managed in the dashboard, or at /v1/tokens'),
    ...nothing('/webhooks', 'Webhooks are managed in the dashboard, or at /v1/webhooks'),
  ],
}

function nothing(path: string, message: string) {
  return [{ path, message }, ...nothingBelow(path, message)]
}

function nothingBelow(path: string, message: string) {
  return [{ path: `${path}/*`, message }]
}
