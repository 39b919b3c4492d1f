/** needs - open problems, each with the page that fixes it */
import type { WebhookHealth } from '../../../../../schemas/counts/webhook-health.ts'
import type { Overview } from '../../../../../schemas/dashboard/overview.ts'
import type { Domain } from '../../../../../schemas/domain.ts'
import type { LimitEntry } from '../../../../../schemas/server.ts'
import type { Stream } from '../../../../../schemas/stream.ts'
import type { Webhook } from '../../../../../schemas/webhook.ts'
import { serverPath } from '../../api/place.ts'
import { findServer, session } from '../../api/session.ts'
import { capital, count, formatAgo, formatDay, formatNumber } from '../../api/words.ts'
import { LinkButton } from '../../parts/button.tsx'
import { Card, Empty } from '../../parts/card.tsx'
import type { Tone } from '../../parts/chip.tsx'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { lostRecordOf } from '../domain-words.ts'
import { deadOf, healthOf, isFailing, resultOf } from '../webhook-words.ts'

interface Need {
  readonly tone: Tone
  readonly icon: IconName
  readonly title: string
  readonly text: string
  readonly act: string
  readonly href: string
  /** Its name in a group. */
  readonly of?: string
}

const WARNS_AT = 0.8
/** Needs of one kind that are listed one by one. */
const EACH_MAX = 2

/** The card. */
export function NeedsAttention({ serverId, overview }: { serverId: string; overview: Overview }) {
  const { server, streams, domains, webhooks, health } = overview
  const needs = [
    ...approvalNeeds(serverId),
    ...domains.flatMap(lostDomainNeeds),
    ...streams.flatMap((stream) => brakeNeeds(serverId, stream)),
    ...grouped(
      webhooks.flatMap((webhook) => webhookNeeds(serverId, webhook, healthOf(health, webhook))),
      { word: 'webhooks missed events', icon: 'webhook', act: 'See webhooks', href: serverPath(serverId, 'webhooks') },
    ),
    ...pendingDomainNeeds(domains),
    ...server.limits.flatMap(capNeeds),
  ]
  return (
    <Card title="Needs attention" side={needs.length}>
      {needs.length === 0 ? (
        <Empty icon="check" title="Everything is fine" />
      ) : (
        <ul class="needs">
          {needs.map(({ tone, icon, title, text, act, href }) => (
            <li key={title}>
              <span class={`node ${tone}`}>
                <Icon name={icon} size={14} />
              </span>
              <div>
                <b>{title}</b>
                <p>{text}</p>
              </div>
              <LinkButton href={href}>{act}</LinkButton>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

/** A webhook whose deliveries fail or have failed. */
function webhookNeeds(serverId: string, webhook: Webhook, health: WebhookHealth | undefined): Need[] {
  if (health === undefined || (health.dead === 0 && !isFailing(health))) return []
  const { webhookId, url, enabled } = webhook
  const { host } = new URL(url)
  const { last, pending, dead } = health
  const result = last === null ? '' : ` Last result: ${resultOf(last)}, ${formatAgo(last.createdAt)}.`
  const counts = [dead === 0 ? [] : deadOf(dead), pending === 0 ? [] : `${formatNumber(pending)} pending`].flat()
  const isDown = enabled && isFailing(health)
  return [
    {
      tone: isDown ? 'bounced' : 'deferred',
      icon: 'webhook',
      title: isDown ? `${host} rejects events` : `${host} missed events`,
      text: `${counts.length === 0 ? 'No delivery is left' : counts.join(', ')}.${result}`,
      act: dead > 0 ? 'See dead deliveries' : 'See deliveries',
      of: host,
      href: `${serverPath(serverId, 'webhooks', webhookId)}${dead > 0 ? '?status=dead' : ''}`,
    },
  ]
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
  const isLive = findServer(serverId)?.mode === 'live'
  return [
    { tone: isLive ? 'bounced' : 'deferred', icon: 'clock', title, text, act: 'See the account', href: '/account' },
  ]
}

/** A domain that sends, or sent, and has lost a record. */
function lostDomainNeeds(of: Domain): Need[] {
  const { domain, domainId, verified, failingSince, unverifiedSince } = of
  const need = { tone: 'bounced', icon: 'globe', act: 'See records', href: `/domains/${domainId}` } as const
  if (verified && failingSince !== null)
    return [
      {
        ...need,
        title: `${domain} has lost a DNS record`,
        text: `${capital(lostRecordOf(of))} since ${formatAgo(failingSince)}. It stops sending a day after that.`,
      },
    ]
  if (verified || unverifiedSince === undefined) return []
  return [
    {
      ...need,
      title: `${domain} stopped sending on ${formatDay(unverifiedSince)}`,
      text: `${capital(lostRecordOf(of))}. Mail from it is rejected.`,
    },
  ]
}

/** Domains whose records were never found: each, or all in one. */
function pendingDomainNeeds(domains: readonly Domain[]): Need[] {
  const pending = domains.filter(({ verified, unverifiedSince, testOnly }) => {
    return !verified && unverifiedSince === undefined && !testOnly
  })
  const text = 'You can’t send from it until its DNS records are found.'
  const each = pending.map(({ domain, domainId }): Need => {
    const title = `${domain} is waiting for DNS`
    return {
      tone: 'deferred',
      icon: 'globe',
      title,
      text,
      act: 'See records',
      href: `/domains/${domainId}`,
      of: domain,
    }
  })
  return grouped(each, { word: 'domains are waiting for DNS', icon: 'globe', act: 'See domains', href: '/domains' })
}

/** Many of one kind as one, which leads to their list and names the first. */
function grouped(
  needs: readonly Need[],
  { word, icon, act, href }: { word: string; icon: IconName; act: string; href: string },
): Need[] {
  if (needs.length <= EACH_MAX) return [...needs]
  const named = needs.slice(0, EACH_MAX).map(({ of }) => of)
  const text = `${named.join(', ')} and ${count(needs.length - named.length, 'other')}.`
  const tone = needs.some((need) => need.tone === 'bounced') ? 'bounced' : 'deferred'
  return [{ tone, icon, title: `${needs.length} ${word}`, text, act, href }]
}

function brakeNeeds(serverId: string, { name, pausedAt }: Stream): Need[] {
  if (pausedAt === null) return []
  return [
    {
      tone: 'spam_complaint',
      icon: 'flag',
      title: `${name} is paused`,
      text: `Complaints passed 0.10 % of a day’s deliveries ${formatAgo(pausedAt)}. Only the operator can resume it.`,
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
