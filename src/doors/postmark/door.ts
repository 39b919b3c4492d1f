/** door - Postmark's server API: its routes, and the location of the key in its requests */

import { route } from '../../../schemas/route.ts'
import type { Door } from '../../http/door.ts'
import { type DoorRow, type DoorTable, MAPPED } from '../common/door-table.ts'
import { postmarkActivateBounce, postmarkDeliveryStats, postmarkListBounces, postmarkReadBounce } from './bounces.ts'
import { CODES, presentPostmark, refuseAs } from './errors.ts'
import { postmarkBounces, postmarkOverview, postmarkReadServer, postmarkSends, postmarkSpam } from './figures.ts'
import { postmarkListMessages, postmarkReadMessage } from './messages.ts'
import { ANY_QUERY } from './query.ts'
import { postmarkListReceived, postmarkReadReceived } from './received.ts'
import { postmarkSend, postmarkSendBatch } from './send.ts'
import { postmarkAddStream, postmarkArchiveStream, postmarkListStreams, postmarkReadStream } from './streams.ts'
import { postmarkAddSuppressions, postmarkDeleteSuppressions, postmarkDumpSuppressions } from './suppressions.ts'

const SERVER_TOKEN = 'x-postmark-server-token'
const ACCOUNT_TOKEN = 'x-postmark-account-token'

const door: Door = {
  headerNames: [SERVER_TOKEN, ACCOUNT_TOKEN],
  ownHeader: SERVER_TOKEN,
  authorize({ authorization, named }) {
    const token = named[SERVER_TOKEN] ?? ''
    if (token === '' || authorization !== '' || ACCOUNT_TOKEN in named) return ''
    return `Bearer ${token}`
  },
  present: presentPostmark,
}
const TEMPLATES = 'Templates are not offered by this service: render the message in the application'
const templates: Door = {
  ...door,
  present: (refusal) =>
    refusal.status === 404 ? refuseAs(422, CODES.unknownTemplate, TEMPLATES) : presentPostmark(refusal),
}

const success = { status: 200, body: null }
const sends = { body: MAPPED, isIdempotent: true, success } as const
const changes = { body: MAPPED, success } as const
const reads = { query: ANY_QUERY, success } as const

function get(name: string, path: string, handle: DoorRow['handle']): DoorRow {
  return { route: route(name, 'GET', path, reads), handle }
}

function post(name: string, path: string, handle: DoorRow['handle']): DoorRow {
  return { route: route(name, 'POST', path, changes), handle }
}

export const POSTMARK: DoorTable = {
  name: 'postmark',
  door,
  rows: [
    { route: route('postmarkSend', 'POST', '/email', sends), handle: postmarkSend },
    { route: route('postmarkSendBatch', 'POST', '/email/batch', sends), handle: postmarkSendBatch },
    get('postmarkListBounces', '/bounces', postmarkListBounces),
    get('postmarkReadBounce', '/bounces/{id}', postmarkReadBounce),
    {
      route: route('postmarkActivateBounce', 'PUT', '/bounces/{id}/activate', changes),
      handle: postmarkActivateBounce,
    },
    get('postmarkDeliveryStats', '/deliverystats', postmarkDeliveryStats),
    // The official client of Node.js writes it so; a path of Postmark is the same in any case.
    get('postmarkDeliveryStatsOfNode', '/deliveryStats', postmarkDeliveryStats),
    get('postmarkListStreams', '/message-streams', postmarkListStreams),
    post('postmarkAddStream', '/message-streams', postmarkAddStream),
    get('postmarkReadStream', '/message-streams/{id}', postmarkReadStream),
    post('postmarkArchiveStream', '/message-streams/{id}/archive', postmarkArchiveStream),
    get('postmarkDumpSuppressions', '/message-streams/{id}/suppressions/dump', postmarkDumpSuppressions),
    post('postmarkAddSuppressions', '/message-streams/{id}/suppressions', postmarkAddSuppressions),
    post('postmarkDeleteSuppressions', '/message-streams/{id}/suppressions/delete', postmarkDeleteSuppressions),
    get('postmarkListMessages', '/messages/outbound', postmarkListMessages),
    get('postmarkReadMessage', '/messages/outbound/{id}/details', postmarkReadMessage),
    get('postmarkListReceived', '/messages/inbound', postmarkListReceived),
    get('postmarkReadReceived', '/messages/inbound/{id}/details', postmarkReadReceived),
    get('postmarkReadServer', '/server', postmarkReadServer),
    get('postmarkOverview', '/stats/outbound', postmarkOverview),
    get('postmarkSends', '/stats/outbound/sends', postmarkSends),
    get('postmarkBounces', '/stats/outbound/bounces', postmarkBounces),
    get('postmarkSpam', '/stats/outbound/spam', postmarkSpam),
  ],
  deadEnds: [
    { path: '/email/withTemplate', message: TEMPLATES, door: templates },
    { path: '/email/withTemplate/*', message: TEMPLATES, door: templates },
    { path: '/email/batchWithTemplates', message: TEMPLATES, door: templates },
    { path: '/templates', message: TEMPLATES, door: templates },
    { path: '/templates/*', message: TEMPLATES, door: templates },
    { path: '/email/bulk', message: 'Bulk mail is not offered here: send a broadcast to POST /v1/broadcasts' },
    { path: '/email/*', message: 'No such route' },
    { path: '/bounces/{id}/dump', message: 'The source of a bounce is not kept: see Details of the bounce' },
    { path: '/bounces/*', message: 'No such route' },
    { path: '/message-streams/{id}/unarchive', message: 'An archived stream stays archived: create a new one' },
    { path: '/message-streams/*', message: 'No such route' },
    { path: '/messages/outbound/{id}/dump', message: 'The source of a message is not kept' },
    { path: '/messages/outbound/opens', message: 'Opens are not tracked' },
    { path: '/messages/outbound/opens/{id}', message: 'Opens are not tracked' },
    { path: '/messages/outbound/clicks', message: 'Clicks are not tracked' },
    { path: '/messages/outbound/clicks/{id}', message: 'Clicks are not tracked' },
    { path: '/messages/*', message: 'Not offered by this service: webhooks are replayed at /v1/webhooks' },
    { path: '/stats/*', message: 'Not offered by this service: opens and clicks are not tracked' },
    { path: '/triggers/*', message: 'Inbound rules are not offered: filter in the application' },
    { path: '/webhooks', message: 'Webhooks are managed in the dashboard, or at /v1/webhooks' },
    { path: '/webhooks/*', message: 'Webhooks are managed in the dashboard, or at /v1/webhooks' },
  ],
}
