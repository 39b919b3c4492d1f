/** pages - every page: its path, its place in the side bar, and its code */
import type { ComponentType } from 'preact'
import type { Right } from '../api/session.ts'
import type { PageProps } from '../browser/page-props.ts'
import { KeysPage } from '../pages/keys.tsx'
import { MessagePage } from '../pages/message/message.tsx'
import { MessagesPage } from '../pages/messages.tsx'
import type { IconName } from '../parts/icon.tsx'

export interface PageRow {
  readonly path: string
  /** Its place in the side bar; null if within another page. */
  readonly side: { readonly word: string; readonly icon: IconName; readonly of: 'server' | 'account' } | null
  /** The page itself, or a function that loads it. */
  readonly page: ComponentType<PageProps> | (() => Promise<ComponentType<PageProps>>)
  readonly isFetched?: boolean
  readonly needs?: Right
}

const here = (path: string, page: ComponentType<PageProps>, side: PageRow['side'] = null): PageRow => ({
  path,
  side,
  page,
})

const fetched = (
  path: string,
  page: () => Promise<ComponentType<PageProps>>,
  side: PageRow['side'] = null,
  needs?: Right,
): PageRow => ({ path, side, page, isFetched: true, ...(needs !== undefined && { needs }) })

/** In the order of the side. */
export const PAGES: readonly PageRow[] = [
  fetched('/servers/:serverId/overview', async () => (await import('../pages/overview/overview.tsx')).OverviewPage, {
    word: 'Overview',
    icon: 'overview',
    of: 'server',
  }),
  fetched('/servers/:serverId/start', async () => (await import('../pages/start.tsx')).StartPage),
  here('/servers/:serverId/messages', MessagesPage, { word: 'Messages', icon: 'send', of: 'server' }),
  here('/servers/:serverId/messages/:id', MessagePage),
  fetched(
    '/servers/:serverId/broadcasts',
    async () => (await import('../pages/broadcasts/broadcasts.tsx')).BroadcastsPage,
    {
      word: 'Broadcasts',
      icon: 'broadcast',
      of: 'server',
    },
  ),
  fetched(
    '/servers/:serverId/broadcasts/:id',
    async () => (await import('../pages/broadcasts/broadcasts.tsx')).BroadcastPage,
  ),
  fetched(
    '/servers/:serverId/received',
    async () => (await import('../pages/received/received-list.tsx')).ReceivedPage,
    {
      word: 'Received',
      icon: 'inbox',
      of: 'server',
    },
  ),
  fetched(
    '/servers/:serverId/received/:id',
    async () => (await import('../pages/received/received.tsx')).ReceivedMessagePage,
  ),
  fetched('/servers/:serverId/suppressions', async () => (await import('../pages/suppressions.tsx')).SuppressionsPage, {
    word: 'Suppressions',
    icon: 'shield',
    of: 'server',
  }),
  fetched('/servers/:serverId/webhooks', async () => (await import('../pages/webhooks/webhooks.tsx')).WebhooksPage, {
    word: 'Webhooks',
    icon: 'webhook',
    of: 'server',
  }),
  fetched('/servers/:serverId/webhooks/:id', async () => (await import('../pages/webhooks/webhook.tsx')).WebhookPage),
  fetched('/servers/:serverId/streams', async () => (await import('../pages/streams.tsx')).StreamsPage, {
    word: 'Streams',
    icon: 'streams',
    of: 'server',
  }),
  here('/servers/:serverId/keys', KeysPage, { word: 'Keys', icon: 'key', of: 'server' }),
  fetched('/servers', async () => (await import('../pages/servers.tsx')).ServersPage, {
    word: 'Servers',
    icon: 'server',
    of: 'account',
  }),
  fetched('/domains', async () => (await import('../pages/domains.tsx')).DomainsPage, {
    word: 'Domains',
    icon: 'globe',
    of: 'account',
  }),
  fetched('/domains/:id', async () => (await import('../pages/domain.tsx')).DomainPage),
  fetched('/domains/:id/reports', async () => (await import('../pages/domain-reports.tsx')).DomainReportsPage),
  fetched('/requests', async () => (await import('../pages/requests.tsx')).RequestsPage, {
    word: 'Requests',
    icon: 'requests',
    of: 'account',
  }),
  fetched('/people', async () => (await import('../pages/people.tsx')).PeoplePage, {
    word: 'People',
    icon: 'people',
    of: 'account',
  }),
  fetched(
    '/erasures',
    async () => (await import('../pages/erasures.tsx')).ErasuresPage,
    { word: 'Erasures', icon: 'erased', of: 'account' },
    'administer',
  ),
  fetched(
    '/activity',
    async () => (await import('../pages/audit.tsx')).AuditPage,
    { word: 'Activity', icon: 'activity', of: 'account' },
    'administer',
  ),
  fetched('/account', async () => (await import('../pages/account.tsx')).AccountPage, {
    word: 'Account',
    icon: 'settings',
    of: 'account',
  }),
  fetched('/me', async () => (await import('../pages/me/me.tsx')).MePage),
]
