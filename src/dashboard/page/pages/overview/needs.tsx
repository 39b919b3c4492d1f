/** needs - open problems, each with the page that fixes it */
import { useLocation } from 'wouter-preact'
import type { Domain } from '../../../../../schemas/domain.ts'
import type { LimitEntry } from '../../../../../schemas/server.ts'
import type { Stream } from '../../../../../schemas/stream.ts'
import type { DeliveryList, Webhook } from '../../../../../schemas/webhook.ts'
import { call } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { serverOf, session } from '../../api/session.ts'
import { capital, formatAgo, formatDay, formatNumber } from '../../api/words.ts'
import { LinkButton } from '../../parts/button.tsx'
import { Card, Empty } from '../../parts/card.tsx'
import type { Tone } from '../../parts/chip.tsx'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { lostRecordOf } from '../domain-words.ts'

interface Need {
  readonly tone: Tone
  readonly icon: IconName
  readonly title: string
  readonly text: string
  readonly act: string
  readonly href: string
  readonly filters?: Readonly<Record<string, string>>
}

interface NeedsProps {
  readonly serverId: string
  readonly limits: readonly LimitEntry[]
  readonly streams: readonly Stream[]
}

/** Webhooks whose deliveries are looked at. */
const WEBHOOKS_MAX = 5
const WARNS_AT = 0.8

/** The card. */
export function NeedsAttention({ serverId, limits, streams }: NeedsProps) {
  useLocation()
  const domains = useLoad<{ domains: Domain[] }>((signal) => call('GET', '/domains?limit=100', { signal }), [])
  const dead = useLoad<Need[]>((signal) => findDead(serverId, signal), [serverId])
  const needs = [
    ...approvalNeeds(serverId),
    ...(domains.value?.domains ?? [])
      .flatMap(domainNeeds)
      .sort((one, other) => Number(other.tone === 'bounced') - Number(one.tone === 'bounced')),
    ...streams.flatMap((stream) => brakeNeeds(serverId, stream)),
    ...(dead.value ?? []),
    ...limits.flatMap(capNeeds),
  ]
  return (
    <Card title="Needs attention" side={needs.length}>
      {needs.length === 0 ? (
        <Empty icon="check" title="Everything is fine" />
      ) : (
        <ul class="needs">
          {needs.map(({ tone, icon, title, text, act, href, filters }) => (
            <li key={title}>
              <span class={`node ${tone}`}>
                <Icon name={icon} size={14} />
              </span>
              <div>
                <b>{title}</b>
                <p>{text}</p>
              </div>
              <LinkButton href={href} filters={filters}>
                {act}
              </LinkButton>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

async function findDead(serverId: string, signal: AbortSignal): Promise<Need[]> {
  const path = serverApi(serverId, '/webhooks')
  const { webhooks } = await call<{ webhooks: Webhook[] }>('GET', `${path}?limit=${WEBHOOKS_MAX}`, { signal })
  const found = await Promise.all(
    webhooks.map(async ({ webhookId, url }): Promise<Need[]> => {
      const list = `${path}/${webhookId}/deliveries?status=dead&limit=100`
      const { deliveries, next } = await call<DeliveryList>('GET', list, { signal })
      const [last] = deliveries
      if (last === undefined) return []
      const count = next === null ? String(deliveries.length) : 'More than 100'
      return [
        {
          tone: 'deferred',
          icon: 'webhook',
          title: `${count} ${deliveries.length === 1 ? 'delivery' : 'deliveries'} to ${new URL(url).host} ${deliveries.length === 1 ? 'is' : 'are'} dead`,
          text: `The last one ended with ${last.lastError ?? 'no answer'}, ${formatAgo(last.createdAt)}.`,
          act: 'See dead deliveries',
          href: serverPath(serverId, 'webhooks', webhookId),
          filters: { status: 'dead' },
        },
      ]
    }),
  )
  return found.flat()
}

function approvalNeeds(serverId: string): Need[] {
  const account = session.value?.account
  if (account?.status === 'active' || account === undefined) return []
  const texts = {
    pending: ['This account is not approved yet', 'Until then only test servers send.'],
    paused: ['This account is paused', 'Its mail is refused. Ask the operator of the service.'],
    closed: ['This account is closed', 'You can only read its data.'],
  } as const
  const [title, text] = texts[account.status]
  const isLive = serverOf(serverId)?.mode === 'live'
  return [
    { tone: isLive ? 'bounced' : 'deferred', icon: 'clock', title, text, act: 'See the account', href: '/account' },
  ]
}

function domainNeeds(of: Domain): Need[] {
  const { domain, domainId, verified, failingSince, unverifiedSince } = of
  if (verified && failingSince === null) return []
  const need = { icon: 'globe', act: 'See records', href: `/domains/${domainId}` } as const
  if (failingSince !== null && verified)
    return [
      {
        ...need,
        tone: 'bounced',
        title: `${domain} has lost a DNS record`,
        text: `${capital(lostRecordOf(of))} since ${formatAgo(failingSince)}. It stops sending a day after that.`,
      },
    ]
  if (unverifiedSince !== undefined)
    return [
      {
        ...need,
        tone: 'bounced',
        title: `${domain} stopped sending on ${formatDay(unverifiedSince)}`,
        text: `${capital(lostRecordOf(of))}. Mail from it is rejected.`,
      },
    ]
  return [
    {
      ...need,
      tone: 'deferred',
      title: `${domain} is waiting for DNS`,
      text: 'You can’t send from it until its DNS records are found.',
    },
  ]
}

function brakeNeeds(serverId: string, { name, pausedAt }: Stream): Need[] {
  if (pausedAt === null) return []
  return [
    {
      tone: 'spam_complaint',
      icon: 'flag',
      title: `${name} is paused`,
      text: `Complaints passed 0.1 % of a day’s deliveries ${formatAgo(pausedAt)}. Only the operator can resume it.`,
      act: 'See the stream',
      href: serverPath(serverId, 'streams'),
    },
  ]
}

function capNeeds({ scope, period, limit, used, resetsAt }: LimitEntry): Need[] {
  if (period !== 'month' || used < limit * WARNS_AT) return []
  const whose = { account: 'account’s', server: 'server’s', test: 'test servers’' }[scope]
  return [
    {
      tone: used >= limit ? 'bounced' : 'deferred',
      icon: 'alert',
      title: `The ${whose} month is ${used >= limit ? 'used up' : 'nearly used up'}`,
      text: `${formatNumber(used)} of ${formatNumber(limit)}. It starts again ${formatAgo(resetsAt)}.`,
      act: 'See limits',
      href: '/account',
    },
  ]
}
