/** door - Mailgun's API: its routes, and the location of the key in its requests */

import { route } from '../../../schemas/route.ts'
import type { Door } from '../../http/door.ts'
import { type DoorTable, MAPPED } from '../common/door-table.ts'
import { presentMailgun } from './errors.ts'
import { EVENTS_QUERY, mailgunEvents, mailgunEventsPage } from './events.ts'
import { FORM_HEADER } from './form.ts'
import { mailgunSend } from './send.ts'
import { mailgunKeep, mailgunRemoveBounce } from './suppressions.ts'

const BASIC = /^basic +([A-Za-z0-9+/=]{1,400})$/i
const API_KEY = /^api:(\w+)$/
const OTHER_CREDENTIALS = ['x-postmark-server-token', 'x-postmark-account-token'] as const

const door: Door = {
  headerNames: [FORM_HEADER, ...OTHER_CREDENTIALS],
  authorize({ authorization, named }) {
    if (OTHER_CREDENTIALS.some((name) => name in named)) return ''
    const [, encoded] = BASIC.exec(authorization) ?? []
    const [, key] = API_KEY.exec(Buffer.from(encoded ?? '', 'base64').toString('latin1')) ?? []
    return key === undefined ? '' : `Bearer ${key}`
  },
  present: presentMailgun,
}

const success = { status: 200, body: null }

export const MAILGUN: DoorTable = {
  name: 'mailgun',
  door,
  rows: [
    {
      route: route('mailgunSend', 'POST', '/v3/{domain}/messages', { body: MAPPED, isIdempotent: true, success }),
      handle: mailgunSend,
      media: 'form',
    },
    {
      route: route('mailgunEvents', 'GET', '/v3/{domain}/events', { query: EVENTS_QUERY, success }),
      handle: mailgunEvents,
    },
    {
      route: route('mailgunEventsPage', 'GET', '/v3/{domain}/events/{page}', { query: EVENTS_QUERY, success }),
      handle: mailgunEventsPage,
    },
    {
      route: route('mailgunRemoveBounce', 'DELETE', '/v3/{domain}/bounces/{address}', { success }),
      handle: mailgunRemoveBounce,
    },
    {
      route: route('mailgunKeepComplaint', 'DELETE', '/v3/{domain}/complaints/{address}', { success }),
      handle: mailgunKeep('Spam complaint has been removed'),
    },
    {
      route: route('mailgunKeepUnsubscribe', 'DELETE', '/v3/{domain}/unsubscribes/{address}', { success }),
      handle: mailgunKeep('Unsubscribe event has been removed'),
    },
  ],
  deadEnds: [
    { path: '/v3/*', message: 'Not offered by this service' },
    { path: '/v4/*', message: 'Not offered by this service: domains are managed at /v1/domains' },
  ],
}
