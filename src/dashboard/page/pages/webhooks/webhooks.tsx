/** webhooks - the endpoints to which a server's events are posted */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { WebhookHealth } from '../../../../../schemas/counts/webhook-health.ts'
import type { EventName, Webhook } from '../../../../../schemas/webhook.ts'
import { useGetList } from '../../api/lists.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { count, formatAgo, formatNumber, formatShare } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import { useOpening } from '../../browser/opening.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { Button } from '../../parts/button.tsx'
import { Empty, Head } from '../../parts/card.tsx'
import { Chip } from '../../parts/chip.tsx'
import { List } from '../../parts/list.tsx'
import { DEAD_MAX, healthOf, isFailing, rateOf, resultOf } from '../webhook-words.ts'
import { EVENT_NAMES } from './event-names.ts'
import { NewWebhook } from './new-webhook.tsx'

/** The page. */
export function WebhooksPage({ serverId }: PageProps) {
  usePlace({ word: 'Webhooks' })
  const [isAdding, setAdding] = useState(false)
  useOpening(() => setAdding(true))
  const list = useGetList<Webhook>(serverApi(serverId, '/webhooks'), 'webhooks')
  const health = useGetList<WebhookHealth>(serverApi(serverId, '/webhooks/health'), 'webhooks')
  const healths = health.value?.rows ?? []
  const more = list.more === null ? null : () => [list.more?.(), health.more?.()]
  const add = may('write') && (
    <Button kind="main" icon="plus" onPress={() => setAdding(true)}>
      Add a webhook
    </Button>
  )
  return (
    <>
      <Head title="Webhooks" meta="Signed event notifications, retried for about a day.">
        {add}
      </Head>
      <List
        label="Webhooks"
        list={{ ...list, more }}
        keyOf={({ webhookId }) => webhookId}
        columns={[
          {
            title: 'URL',
            kind: 'grow',
            cell: ({ url, webhookId }) => (
              <Link href={serverPath(serverId, 'webhooks', webhookId)} class="row-link">
                {url}
              </Link>
            ),
          },
          {
            title: 'State',
            cell: (webhook) => <WebhookState webhook={webhook} health={healthOf(healths, webhook)} />,
          },
          { title: 'Last result', cell: (webhook) => <LastResult health={healthOf(healths, webhook)} /> },
          { title: 'Delivered', kind: 'titled', cell: (webhook) => formatShare(rateOf(healthOf(healths, webhook))) },
          { title: 'Pending', kind: 'wide', cell: (webhook) => numberOf(healthOf(healths, webhook)?.pending) },
          { title: 'Dead', kind: 'wide', cell: (webhook) => <Dead {...{ serverId, webhook, healths }} /> },
          { title: 'Events', kind: 'wide', cell: ({ events }) => eventsOf(events) },
        ]}
        empty={
          <Empty icon="webhook" title="No webhook yet">
            <p>A webhook sends the outcome of each message to an https URL of yours.</p>
            {add}
          </Empty>
        }
      />
      {isAdding && (
        <NewWebhook
          serverId={serverId}
          onClose={() => {
            setAdding(false)
            list.reload()
          }}
        />
      )}
    </>
  )
}

function eventsOf(events: readonly EventName[]): string {
  return events.length === EVENT_NAMES.length ? 'Every event' : count(events.length, 'event')
}

/** Its last result, and when. */
function LastResult({ health }: { health: WebhookHealth | undefined }) {
  const last = health?.last ?? null
  if (last === null) return <span class="dim">–</span>
  return (
    <>
      {resultOf(last)} <small class="dim">{formatAgo(last.createdAt)}</small>
    </>
  )
}

interface DeadProps {
  readonly serverId: string
  readonly webhook: Webhook
  readonly healths: readonly WebhookHealth[]
}

/** How many deliveries are dead, which leads to them. */
function Dead({ serverId, webhook, healths }: DeadProps) {
  const dead = healthOf(healths, webhook)?.dead
  if (dead === undefined || dead === 0) return <>{numberOf(dead)}</>
  const href = `${serverPath(serverId, 'webhooks', webhook.webhookId)}?status=dead`
  return (
    <span class="row-acts">
      <Link href={href}>{dead >= DEAD_MAX ? '1,000+' : formatNumber(dead)}</Link>
    </span>
  )
}

function numberOf(count: number | undefined): string {
  return count === undefined ? '–' : formatNumber(count)
}

/** Whether it is switched on, and whether its newest delivery arrived. */
export function WebhookState({ webhook, health }: { webhook: Webhook; health: WebhookHealth | undefined }) {
  if (!webhook.enabled) return <Chip icon="pause">Off</Chip>
  if (health === undefined || health.last === null) return <Chip icon="clock">Waiting for events</Chip>
  return isFailing(health) ? (
    <Chip tone="bounced" icon="alert">
      Failing
    </Chip>
  ) : (
    <Chip tone="delivered" icon="check">
      Delivering
    </Chip>
  )
}
