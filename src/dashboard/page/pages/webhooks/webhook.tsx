/** webhook - one webhook: its deliveries by status and event, a test event, secrets, and the code that verifies it */
import { useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import type { WebhookHealth } from '../../../../../schemas/counts/webhook-health.ts'
import type { Delivery, EventName, Webhook } from '../../../../../schemas/webhook.ts'
import { call } from '../../api/call.ts'
import { useGetList } from '../../api/lists.ts'
import { type LoadedList, useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { formatAgo, formatNumber, formatShare, formatStatus } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import { useKeptFilters } from '../../browser/filters-kept.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { Button } from '../../parts/button.tsx'
import { Card, Empty, Head, Shown } from '../../parts/card.tsx'
import { StatusChip } from '../../parts/chip.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { ask, Dialog } from '../../parts/dialog.tsx'
import { Filters } from '../../parts/filters.tsx'
import { Form, Select } from '../../parts/form.tsx'
import { List } from '../../parts/list.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'
import { DEAD_MAX, deadOf, isFailing, rateOf, resultOf } from '../webhook-words.ts'
import { DeliveryDialog } from './delivery.tsx'
import { EVENT_NAMES } from './event-names.ts'
import { Secrets } from './secrets.tsx'
import { VerifyingCode } from './verifying-code.tsx'
import { WebhookState } from './webhooks.tsx'

const STATUSES = ['pending', 'delivered', 'dead'] as const
const RECEIVED = { full: 'with content', reference: 'as a reference', raw: 'with content and source' } as const
const ALL = 'all'
/** How far back dead deliveries are replayed, in hours, if not all are. */
const REPLAYS = [
  ['168', 'the last 7 days'],
  ['24', 'the last day'],
  ['1', 'the last hour'],
] as const

/** The page. */
export function WebhookPage({ serverId, id }: PageProps) {
  const path = serverApi(serverId, `/webhooks/${id}`)
  const loaded = useLoad<Webhook>((signal) => call('GET', path, { signal }), [path])
  const host = loaded.value === null ? 'Webhook' : new URL(loaded.value.url).host
  usePlace({ word: 'Webhooks', href: serverPath(serverId, 'webhooks') }, { word: host })
  const [filters, change] = useKeptFilters(['status', 'event'])
  const list = useGetList<Delivery>(`${path}/deliveries`, 'deliveries', filters)
  const [shown, setShown] = useState<string | null>(null)
  const healths = useLoad<{ webhooks: WebhookHealth[] }>(
    (signal) => call('GET', serverApi(serverId, '/webhooks/health?limit=100'), { signal }),
    [path],
  )
  const health = healths.value?.webhooks.find(({ webhookId }) => webhookId === id)
  const look = () => {
    list.reload()
    healths.reload()
  }
  return (
    <Shown
      of={loaded}
      lines={6}
      subject={{ word: 'Webhook', back: { word: 'See webhooks', href: serverPath(serverId, 'webhooks') } }}
    >
      {(webhook) => (
        <>
          <WebhookHead
            webhook={webhook}
            path={path}
            health={health}
            onChange={loaded.set}
            onQueued={look}
            serverId={serverId}
          />
          {health !== undefined && <Health health={health} href={serverPath(serverId, 'webhooks', id)} />}
          <div class="columns">
            <div class="stack">
              <Deliveries list={list} filters={filters} onFilter={change} onOpen={setShown} />
              <VerifyingCode />
            </div>
            <div class="stack">
              <About webhook={webhook} />
              <Secrets webhook={webhook} path={path} onChange={loaded.reload} />
            </div>
          </div>
          {shown !== null && (
            <DeliveryDialog
              path={`${path}/deliveries/${shown}`}
              serverId={serverId}
              onClose={() => setShown(null)}
              onReplayed={look}
            />
          )}
        </>
      )}
    </Shown>
  )
}

interface DeliveriesProps {
  readonly list: LoadedList<Delivery>
  readonly filters: Record<string, string>
  readonly onFilter: (filters: Record<string, string>) => void
  readonly onOpen: (deliveryId: string) => void
}

function Deliveries({ list, filters, onFilter, onOpen }: DeliveriesProps) {
  return (
    <>
      <Filters
        fields={[
          { name: 'status', label: 'Status', options: STATUSES.map((one) => [one, one] as const) },
          { name: 'event', label: 'Event', options: EVENT_NAMES.map((one) => [one, one] as const) },
        ]}
        values={filters}
        onChange={onFilter}
      />
      <List
        label="Deliveries"
        list={list}
        keyOf={({ deliveryId }) => deliveryId}
        columns={[
          { title: 'Status', cell: ({ status }) => <StatusChip status={status} /> },
          { title: 'Event', kind: 'grow', cell: (one) => <DeliveryLink delivery={one} onOpen={onOpen} /> },
          { title: 'Answer', cell: resultOf },
          { title: 'Attempts', kind: 'titled', cell: ({ attempts }) => attempts },
          { title: 'Time', kind: 'end', cell: ({ createdAt }) => <Time at={createdAt} /> },
        ]}
        empty={<Empty icon="webhook" title="No delivery yet" />}
      />
    </>
  )
}

function DeliveryLink({ delivery, onOpen }: { delivery: Delivery; onOpen: (id: string) => void }) {
  return (
    <button type="button" class="row-link as-text" onClick={() => onOpen(delivery.deliveryId)}>
      {formatStatus(delivery.event)}
    </button>
  )
}

/** Recent results as figures. */
function Health({ health, href }: { health: WebhookHealth; href: string }) {
  const { pending, dead, attempted, delivered, last } = health
  return (
    <dl class="figures">
      <div class={`card ${isFailing(health) ? 'bounced' : 'delivered'}`}>
        <dt>Last result</dt>
        <dd class="num">{last === null ? '–' : resultOf(last)}</dd>
        <dd class="than">
          {last === null ? 'No attempt yet' : `${formatStatus(last.event)}, ${formatAgo(last.createdAt)}`}
        </dd>
      </div>
      <div class="card">
        <dt>Delivered</dt>
        <dd class="num">{formatShare(rateOf(health))}</dd>
        <dd class="than">{`${delivered} of the newest ${attempted} delivered`}</dd>
      </div>
      <div class="card">
        <dt>
          <Link href={`${href}?status=pending`} class="row-link">
            Pending
          </Link>
        </dt>
        <dd class="num">{formatNumber(pending)}</dd>
        <dd class="than">Retried for about a day</dd>
      </div>
      <div class="card">
        <dt>
          <Link href={`${href}?status=dead`} class="row-link">
            Dead
          </Link>
        </dt>
        <dd class="num">{dead >= DEAD_MAX ? '1,000+' : formatNumber(dead)}</dd>
        <dd class="than">Not retried until you replay them</dd>
      </div>
    </dl>
  )
}

interface WebhookHeadProps {
  readonly webhook: Webhook
  readonly path: string
  readonly serverId: string
  readonly health: WebhookHealth | undefined
  readonly onChange: (webhook: Webhook) => void
  readonly onQueued: () => void
}

function WebhookHead({ webhook, path, serverId, health, onChange, onQueued }: WebhookHeadProps) {
  const [, go] = useLocation()
  const [opened, open] = useState<'test' | 'replay' | null>(null)
  const turn = async () => onChange(await call('POST', `${path}/${webhook.enabled ? 'disable' : 'enable'}`))
  const remove = async () => {
    const text = 'Pending deliveries and the delivery log are deleted.'
    if (!(await ask({ title: 'Remove this webhook?', text, act: 'Remove', isDanger: true }))) return
    await call('DELETE', path)
    say('The webhook is removed')
    go(serverPath(serverId, 'webhooks'))
  }
  return (
    <>
      <Head title={webhook.url} meta={<WebhookState webhook={webhook} health={health} />}>
        {may('write') && (
          <>
            <Button icon="send" onPress={() => open('test')} disabled={!webhook.enabled}>
              Test event
            </Button>
            <Button icon="again" onPress={() => open('replay')} disabled={!webhook.enabled}>
              Replay dead
            </Button>
            <Button icon={webhook.enabled ? 'pause' : 'play'} onPress={turn}>
              {webhook.enabled ? 'Switch off' : 'Switch on'}
            </Button>
            <Button kind="danger" icon="trash" onPress={remove}>
              Remove
            </Button>
          </>
        )}
      </Head>
      {opened === 'test' && (
        <TestEvent path={path} events={webhook.events} onClose={() => open(null)} onQueued={onQueued} />
      )}
      {opened === 'replay' && (
        <ReplayDead path={path} dead={health?.dead} onClose={() => open(null)} onQueued={onQueued} />
      )}
    </>
  )
}

interface OrderProps {
  readonly path: string
  readonly onClose: () => void
  readonly onQueued: () => void
}

function TestEvent({ path, events, onClose, onQueued }: OrderProps & { events: readonly EventName[] }) {
  const [event, setEvent] = useState<string>(events[0] ?? 'delivered')
  const send = async () => {
    await call('POST', `${path}/test`, { body: { event } })
    say('A test event is on its way')
    onClose()
    onQueued()
  }
  return (
    <Dialog title="Send a test event" onClose={onClose}>
      <Form act="Send event" onSend={send}>
        <Select
          label="Event"
          value={event}
          onChange={setEvent}
          options={events.map((one) => [one, formatStatus(one)] as const)}
          hint="Signed and posted like any other, with made-up content."
        />
      </Form>
    </Dialog>
  )
}

function ReplayDead({ path, dead, onClose, onQueued }: OrderProps & { dead: number | undefined }) {
  const [hours, setHours] = useState<string>(ALL)
  const all = dead === undefined ? 'all dead deliveries' : `all ${deadOf(dead)}`
  const send = async () => {
    const createdFrom = new Date(hours === ALL ? 0 : Date.now() - Number(hours) * 3_600_000).toISOString()
    const { queued } = await call<{ queued: number }>('POST', `${path}/replay`, {
      body: { createdFrom, status: 'dead' },
    })
    say(queued === 1 ? 'One delivery was queued again' : `${queued} deliveries were queued again`)
    onClose()
    onQueued()
  }
  return (
    <Dialog title="Replay dead deliveries" onClose={onClose}>
      <Form act="Replay" onSend={send}>
        <Select
          label="Failed in"
          value={hours}
          onChange={setHours}
          options={[[ALL, all], ...REPLAYS]}
          hint="Each keeps its id, so that your endpoint can recognize repeats."
        />
      </Form>
    </Dialog>
  )
}

function About({ webhook }: { webhook: Webhook }) {
  const { events, streamId, tag, metadata, inboundContent, format, createdAt, url } = webhook
  const [entry] = Object.entries(metadata ?? {})
  return (
    <Card title="Details">
      <DefinitionList
        of={[
          ['URL', url],
          ['Events', events.map(formatStatus).join(', ')],
          ['Stream', streamId ?? 'All streams'],
          ['Tag', tag ?? 'All tags'],
          ...(entry === undefined ? [] : [['Metadata', `${entry[0]}: ${entry[1]}`] as const]),
          ['Format', format],
          ['Received', RECEIVED[inboundContent]],
          ['Created', <Time at={createdAt} as="long" key="made" />],
        ]}
      />
    </Card>
  )
}
