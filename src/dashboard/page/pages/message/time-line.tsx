/** time-line - all events of a message in order, and the next one */
import type { ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import type { Message, MessageEvent } from '../../../../../schemas/message.ts'
import type { RequestList } from '../../../../../schemas/request-log.ts'
import type { MessageDelivery, Webhook } from '../../../../../schemas/webhook.ts'
import { call } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { may } from '../../api/session.ts'
import { count, formatAgo, formatGap, formatStatus } from '../../api/words.ts'
import { Button } from '../../parts/button.tsx'
import { Chip, lookOf } from '../../parts/chip.tsx'
import { CopyValue } from '../../parts/copy.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'
import { explainEvent } from './meaning.ts'
import { Route } from './route.tsx'

interface TimeLineProps {
  readonly message: Message
  readonly serverId: string
  readonly deliveries: readonly MessageDelivery[]
  readonly onReplayed: () => void
}

/** Hours after acceptance in which a message is tried. */
const TRIED_MS = 48 * 3_600_000

/** The line. */
export function TimeLine({ message, serverId, deliveries, onReplayed }: TimeLineProps) {
  const webhooks = useLoad<{ webhooks: Webhook[] }>(
    deliveries.length === 0 ? null : (signal) => call('GET', serverApi(serverId, '/webhooks?limit=100'), { signal }),
    [serverId, deliveries.length > 0],
  )
  const nameOf = (webhookId: string) => hostOf(webhooks.value?.webhooks.find((one) => one.webhookId === webhookId)?.url)
  return (
    <ol class="line">
      <Accepted message={message} />
      {message.events.map((event, at) => (
        <Happened key={at} event={event} acceptedAt={message.submittedAt} way={serverPath(serverId, 'suppressions')}>
          {deliveries
            .filter((one) => isOf(one, event))
            .map((one) => (
              <Hook
                key={one.deliveryId}
                delivery={one}
                name={nameOf(one.webhookId)}
                serverId={serverId}
                onReplayed={onReplayed}
              />
            ))}
        </Happened>
      ))}
      {message.recipients.map((one) => {
        if (one.status !== 'deferred' && one.status !== 'accepted') return null
        return (
          <Next key={one.recipient} recipient={one.recipient} at={one.nextAttemptAt} acceptedAt={message.submittedAt} />
        )
      })}
    </ol>
  )
}

function isOf(delivery: MessageDelivery, event: MessageEvent): boolean {
  const { recipient, occurredAt } = delivery
  return delivery.event === event.event && recipient === event.recipient && occurredAt === event.occurredAt
}

function hostOf(url: string | undefined): string {
  return url === undefined ? '' : new URL(url).host
}

interface NodeProps {
  readonly status: string
  readonly title: string
  readonly about: string
  readonly side: ComponentChildren
  readonly children?: ComponentChildren
}

function Node({ status, title, about, side, children }: NodeProps) {
  const { tone, icon } = lookOf(status)
  return (
    <li class={tone}>
      <span class="node">
        <Icon name={icon} size={14} />
      </span>
      <div class="event">
        <div class="top">
          <b>{title}</b>
          <span class="to">{about}</span>
          <span class="when">{side}</span>
        </div>
        {children}
      </div>
    </li>
  )
}

const OVER = { api: 'over the API', smtp: 'over SMTP', broadcast: 'in a broadcast' } as const

function Accepted({ message }: { message: Message }) {
  const { messageId, submittedAt, source, recipients } = message
  const requests = useLoad<RequestList>(
    source === 'api' ? (signal) => call('POST', '/requests/search', { body: { messageId, limit: 1 }, signal }) : null,
    [messageId],
  )
  const request = requests.value?.requests[0]
  return (
    <Node
      status="accepted"
      title="Accepted"
      about={`${count(recipients.length, 'recipient')} ${OVER[source]}`}
      side={<Time at={submittedAt} as="moment" />}
    >
      {request !== undefined && (
        <p class="why">
          Request <CopyValue value={request.requestId} label="the request id" /> with key <code>{request.prefix}</code>
        </p>
      )}
    </Node>
  )
}

interface HappenedProps {
  readonly event: MessageEvent
  readonly acceptedAt: string
  /** Path of the suppressions. */
  readonly way: string
  readonly children: ComponentChildren
}

function Happened({ event, acceptedAt, way, children }: HappenedProps) {
  const { code, response } = event.details
  const meaning = explainEvent(event)
  const gapMs = Date.parse(event.occurredAt) - Date.parse(acceptedAt)
  const side = (
    <>
      <Time at={event.occurredAt} as="moment" /> <span class="gap">+{formatGap(gapMs)}</span>
    </>
  )
  return (
    <Node status={event.event} title={formatStatus(event.event)} about={event.recipient} side={side}>
      {response != null && <Answer code={code ?? null} response={response} />}
      {event.route !== null && <Route route={event.route} />}
      {meaning !== null && (
        <p class="why">
          {meaning.text}{' '}
          {meaning.isSuppressed && (
            <Link href={way} state={{ filters: { recipient: event.recipient } }}>
              Open the entry
            </Link>
          )}
        </p>
      )}
      {children}
    </Node>
  )
}

/** An answer of a mail server, word for word. */
function Answer({ code, response }: { code: number | null; response: string }) {
  const starts = code !== null && response.startsWith(String(code))
  return (
    <p class="smtp">
      {starts && <b>{code}</b>}
      <span>{starts ? response.slice(String(code).length).trim() : response}</span>
    </p>
  )
}

interface HookProps {
  readonly delivery: MessageDelivery
  readonly name: string
  readonly serverId: string
  readonly onReplayed: () => void
}

function Hook({ delivery, name, serverId, onReplayed }: HookProps) {
  const { status, attempts, lastStatusCode, lastError, nextAttemptAt, deliveredAt, deliveryId, webhookId } = delivery
  const { tone } = lookOf(status)
  const replay = async () => {
    await call('POST', serverApi(serverId, `/webhooks/${webhookId}/deliveries/${deliveryId}/replay`))
    say('Queued again')
    onReplayed()
  }
  return (
    <details class="hook">
      <summary>
        <Icon name="webhook" size={14} />
        <span>Webhook {name}</span>
        <Chip tone={tone}>{status === 'pending' && attempts > 0 ? `pending, attempt ${attempts + 1}` : status}</Chip>
        <Icon name="down" size={14} />
      </summary>
      <DefinitionList
        of={[
          ['Attempts', attempts],
          ['Answer', lastStatusCode ?? lastError],
          ['Delivered', deliveredAt === null ? null : <Time at={deliveredAt} as="long" key="at" />],
          ['Next', nextAttemptAt === null ? null : formatAgo(nextAttemptAt)],
          ['Delivery', <CopyValue value={deliveryId} label="the delivery id" key="id" />],
        ]}
      />
      {may('write') && (
        <Button icon="again" onPress={replay}>
          Replay
        </Button>
      )}
    </details>
  )
}

function Next({ recipient, at, acceptedAt }: { recipient: string; at: string | null; acceptedAt: string }) {
  const endsAt = new Date(Date.parse(acceptedAt) + TRIED_MS).toISOString()
  return (
    <Node status="pending" title="Next" about={recipient} side={at !== null && <Time at={at} />}>
      <p class="why">
        {nextWords(at, recipient)} Without success, it is given up on <Time at={endsAt} as="long" />.
      </p>
    </Node>
  )
}

/** When the next attempt begins; one that is due waits for a place at its site. */
function nextWords(at: string | null, recipient: string): string {
  if (at === null) return 'An attempt is in progress.'
  if (Date.parse(at) > Date.now()) return `The next attempt is ${formatAgo(at)}.`
  return `Due now, waiting for its turn at ${recipient.slice(recipient.lastIndexOf('@') + 1)}.`
}
