/** find-items - what the search finds by its name: pages, servers, domains, webhooks, streams, people and actions */
import { signal } from '@preact/signals'
import type { Member } from '../../../../schemas/dashboard/people.ts'
import type { Domain } from '../../../../schemas/domain.ts'
import type { Stream } from '../../../../schemas/stream.ts'
import type { Webhook } from '../../../../schemas/webhook.ts'
import { call } from '../api/call.ts'
import { serverApi, serverPath } from '../api/place.ts'
import { may, servers } from '../api/session.ts'
import { currentServer } from '../browser/current-server.ts'
import type { IconName } from '../parts/icon.tsx'
import { PAGES } from './pages.tsx'

/** A result of the search. */
export interface Way {
  readonly word: string
  readonly hint: string
  readonly icon: IconName
  readonly href: string
  /** State in the browser's history, never in the path. */
  readonly state?: object
}

/** How long the names of things are used before they are read again. */
const KEPT_MS = 30_000
/** Results of one kind, and of all names. */
const OF_KIND_MAX = 4
const NAMED_MAX = 12

/** Kinds of named things by their icon, in the order of the results. */
const THINGS: readonly IconName[] = ['globe', 'webhook', 'streams', 'people']

interface Names {
  readonly serverId: string
  readonly atMs: number
  readonly ways: readonly Way[]
}

/** Things of the account and of a server; null until they are read. */
export const names = signal<Names | null>(null)

/** Reads the names of things, unless they are known. A list that cannot be read is left out. */
export async function readNames(serverId: string): Promise<void> {
  const known = names.value
  if (known !== null && known.serverId === serverId && Date.now() - known.atMs < KEPT_MS) return
  const read = <Value>(path: string) => call<Value>('GET', path).catch(() => null)
  const [domains, webhooks, streams, members] = await Promise.all([
    read<{ domains: Domain[] }>('/domains?limit=100'),
    read<{ webhooks: Webhook[] }>(serverApi(serverId, '/webhooks?limit=100')),
    read<{ streams: Stream[] }>(serverApi(serverId, '/streams?limit=100')),
    read<{ members: Member[] }>('/members'),
  ])
  const on = servers.value?.find((one) => one.serverId === serverId)?.name ?? ''
  names.value = {
    serverId,
    atMs: Date.now(),
    ways: [
      ...(domains?.domains ?? []).map(({ domain, domainId }): Way => {
        return { word: domain, hint: 'domain', icon: 'globe', href: `/domains/${domainId}` }
      }),
      ...(webhooks?.webhooks ?? []).map(({ url, webhookId }): Way => {
        return { word: url, hint: `webhook, ${on}`, icon: 'webhook', href: serverPath(serverId, 'webhooks', webhookId) }
      }),
      ...(streams?.streams ?? []).map(({ name }): Way => {
        return { word: name, hint: `stream, ${on}`, icon: 'streams', href: serverPath(serverId, 'streams') }
      }),
      ...(members?.members ?? []).map(({ name, address }): Way => {
        return { word: `${name} (${address})`, hint: 'member', icon: 'people', href: '/people' }
      }),
    ],
  }
}

/** Pages, servers, actions and named things whose words contain a text, the pages that begin with it first. */
export function namedWays(text: string, path: string): Way[] {
  const sought = text.toLowerCase()
  const server = currentServer(path)
  const pages = pagesOf(path).filter(({ word }) => word.toLowerCase().startsWith(sought))
  if (sought === '') return [...pages, ...actionsOf(server?.serverId ?? null)]
  const has = ({ word }: Way) => word.toLowerCase().includes(sought)
  const ofServers = (servers.value ?? []).map(({ name, serverId, mode }): Way => {
    return { word: name, hint: `${mode} server`, icon: 'server', href: serverPath(serverId, 'overview') }
  })
  const known = (names.value?.ways ?? []).filter(has)
  const things = THINGS.flatMap((icon) => known.filter((way) => way.icon === icon).slice(0, OF_KIND_MAX))
  const actions = actionsOf(server?.serverId ?? null).filter(has)
  return [...pages, ...actions, ...ofServers.filter(has).slice(0, OF_KIND_MAX), ...things].slice(0, NAMED_MAX)
}

function pagesOf(path: string): Way[] {
  const server = currentServer(path)
  return PAGES.flatMap(({ path: pattern, side, needs }) => {
    if (side === null || (needs !== undefined && !may(needs))) return []
    if (side.of === 'server' && server === null) return []
    const href = pattern.replace(':serverId', server?.serverId ?? '')
    return [{ word: side.word, hint: side.of === 'server' ? (server?.name ?? '') : 'account', icon: side.icon, href }]
  })
}

/** What the user may do, each at its page. */
function actionsOf(serverId: string | null): Way[] {
  const action = (word: string, icon: IconName, href: string, state: object = { opens: true }): Way => {
    return { word, hint: 'action', icon, href, state }
  }
  const ofServer = serverId !== null && may('write')
  return [
    ...(ofServer ? [action('Send a test message', 'send', serverPath(serverId, 'start'))] : []),
    ...(ofServer ? [action('Add a webhook', 'plus', serverPath(serverId, 'webhooks'))] : []),
    ...(ofServer ? [action('Create a key', 'plus', serverPath(serverId, 'keys'))] : []),
    ...(ofServer ? [action('Create a stream', 'plus', serverPath(serverId, 'streams'))] : []),
    ...(may('administer') ? [action('Add a domain', 'plus', '/domains')] : []),
    ...(may('administer') ? [action('Invite a person', 'plus', '/people')] : []),
    ...(may('administer') ? [action('Add a server', 'plus', '/servers')] : []),
    action('Change your password', 'key', '/me'),
  ]
}
