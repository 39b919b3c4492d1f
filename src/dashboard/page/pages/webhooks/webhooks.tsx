/** webhooks - the endpoints to which a server's events are posted */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { EventName, Webhook } from '../../../../../schemas/webhook.ts'
import { useGetList } from '../../api/lists.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { count } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { Button } from '../../parts/button.tsx'
import { Empty, Head } from '../../parts/card.tsx'
import { Chip } from '../../parts/chip.tsx'
import { List } from '../../parts/list.tsx'
import { Time } from '../../parts/time.tsx'
import { EVENT_NAMES } from './event-names.ts'
import { NewWebhook } from './new-webhook.tsx'

/** The page. */
export function WebhooksPage({ serverId }: PageProps) {
  usePlace({ word: 'Webhooks' })
  const [isAdding, setAdding] = useState(false)
  const list = useGetList<Webhook>(serverApi(serverId, '/webhooks'), 'webhooks')
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
        list={list}
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
          { title: 'Events', kind: 'wide', cell: ({ events }) => eventsOf(events) },
          { title: 'State', cell: (webhook) => <WebhookState webhook={webhook} /> },
          { title: 'Since', kind: 'end', cell: ({ createdAt }) => <Time at={createdAt} /> },
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

/** Whether it is switched on. */
export function WebhookState({ webhook: { enabled } }: { webhook: Webhook }) {
  return enabled ? (
    <Chip tone="delivered" icon="check">
      On
    </Chip>
  ) : (
    <Chip icon="pause">Off</Chip>
  )
}
