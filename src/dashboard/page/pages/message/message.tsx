/** message - one message on one page: its events and reasons, its recipients, its content */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { MessageContent } from '../../../../../schemas/dashboard/content.ts'
import type { Message } from '../../../../../schemas/message.ts'
import type { Stream } from '../../../../../schemas/stream.ts'
import type { MessageDeliveryList } from '../../../../../schemas/webhook.ts'
import { call } from '../../api/call.ts'
import { useLive } from '../../api/live.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { usePoll } from '../../api/poll.ts'
import { may } from '../../api/session.ts'
import { count, formatDay, formatSize, formatStatus } from '../../api/words.ts'
import { usePlace } from '../../browser/crumbs.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { Button } from '../../parts/button.tsx'
import { Card, Head, Shown } from '../../parts/card.tsx'
import { Chip, StatusChip } from '../../parts/chip.tsx'
import { CopyButton, CopyValue } from '../../parts/copy.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { ask } from '../../parts/dialog.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'
import { areFilesKept, MessageContentCard } from './content.tsx'
import { isContentHidden } from './content-gate.tsx'
import { formatCurl } from './curl.ts'
import { SendAgain } from './send-again.tsx'
import { TimeLine } from './time-line.tsx'
import { Verdict } from './verdict.tsx'

/** Intervals of the reads with a feed, and without one: while a recipient is pending, and afterwards. */
const REST_MS = 300
const AWAY_MS = 5_000
const AWAY_ENDED_MS = 60_000

const OPEN: readonly string[] = ['accepted', 'scheduled', 'deferred']

/** The page. */
export function MessagePage({ serverId, id }: PageProps) {
  const message = useLoad<Message>(
    (signal) => call('GET', serverApi(serverId, `/messages/${id}`), { signal }),
    [serverId, id],
  )
  const { value, reload } = message
  const deliveries = useLoad<MessageDeliveryList>(
    (signal) => call('GET', serverApi(serverId, `/messages/${id}/deliveries?limit=100`), { signal }),
    [serverId, id],
  )
  const isOpen = value?.recipients.some(({ status }) => OPEN.includes(status)) ?? false
  const isAwaited = deliveries.value?.deliveries.some(({ status }) => status === 'pending') ?? false
  const look = () => {
    reload()
    deliveries.reload()
  }
  const wants = ({ messageId }: { readonly messageId?: string }) => messageId === id
  useLive(serverId, { call: look, wants, restMs: REST_MS, awayMs: isOpen ? AWAY_MS : AWAY_ENDED_MS })
  // An answer of a webhook is not an event.
  usePoll(!isOpen && isAwaited, deliveries.reload, AWAY_MS)
  usePlace({ word: 'Messages', href: serverPath(serverId, 'messages') }, { word: value?.subject ?? 'Message' })
  return (
    <Shown
      of={message}
      lines={10}
      subject={{ word: 'Message', back: { word: 'See messages', href: serverPath(serverId, 'messages') } }}
    >
      {(shown) => (
        <>
          <MessageHead message={shown} serverId={serverId} onCancelled={message.set} />
          <Verdict message={shown} />
          <div class="columns">
            <div class="stack">
              <Card title="What happened" side={isOpen && <span class="live">Live</span>}>
                <TimeLine
                  message={shown}
                  serverId={serverId}
                  deliveries={deliveries.value?.deliveries ?? []}
                  onReplayed={deliveries.reload}
                />
              </Card>
              <MessageContentCard message={shown} serverId={serverId} />
            </div>
            <div class="stack">
              <Recipients message={shown} />
              <Details message={shown} serverId={serverId} />
            </div>
          </div>
        </>
      )}
    </Shown>
  )
}

interface HeadProps {
  readonly message: Message
  readonly serverId: string
  readonly onCancelled: (message: Message) => void
}

function MessageHead({ message, serverId, onCancelled }: HeadProps) {
  const counts = new Map<string, number>()
  for (const { status } of message.recipients) counts.set(status, (counts.get(status) ?? 0) + 1)
  const { from, submittedAt, sendAt, test } = message
  const isScheduled = message.recipients.some(({ status }) => status === 'scheduled')
  const meta = (
    <>
      {[...counts].map(([status, number]) => (
        <StatusChip status={status} key={status}>
          {number} {formatStatus(status).toLowerCase()}
        </StatusChip>
      ))}
      <span class="from">From {from.name === null ? from.email : `${from.name} <${from.email}>`}</span>
      <Time at={submittedAt} as="long" />
      {isScheduled && sendAt !== null && (
        <span>
          Scheduled for <Time at={sendAt} as="long" />
        </span>
      )}
      {test && <Chip tone="test">Test, not delivered</Chip>}
    </>
  )
  return (
    <Head title={message.subject ?? 'Message without a subject'} meta={meta}>
      {isScheduled && may('write') && <CancelMessage message={message} serverId={serverId} onCancelled={onCancelled} />}
      <SendAgain message={message} serverId={serverId} />
      <CopyCurl message={message} serverId={serverId} />
    </Head>
  )
}

/** Cancels a message whose first attempt has not begun. */
function CancelMessage({ message, serverId, onCancelled }: HeadProps) {
  const cancel = async () => {
    const text = 'It is not sent to any of its recipients. It still counts in the usage of the month.'
    if (!(await ask({ title: 'Cancel this message?', text, act: 'Cancel message', isDanger: true }))) return
    onCancelled(await call<Message>('POST', serverApi(serverId, `/messages/${message.messageId}/cancel`)))
    say('The message is cancelled')
  }
  return (
    <Button kind="danger" icon="ban" onPress={cancel}>
      Cancel
    </Button>
  )
}

/** Copies the request with its real content, which is read now and recorded like any read. */
function CopyCurl({ message, serverId }: { message: Message; serverId: string }) {
  const { messageId, contentAvailable, test, attachmentCount } = message
  const mayRead = contentAvailable && (may('write') || test) && !isContentHidden()
  const build = async () => {
    const path = serverApi(serverId, `/messages/${messageId}/content`)
    const content = mayRead ? await call<MessageContent>('GET', path) : null
    const missing = [
      content === null ? 'its content' : null,
      attachmentCount > 0 ? count(attachmentCount, 'attachment') : null,
    ].filter((one) => one !== null)
    if (missing.length > 0) say(`The command was copied without ${missing.join(' and ')}`)
    return formatCurl(message, content)
  }
  return <CopyButton text={build}>Copy as curl</CopyButton>
}

const RECIPIENTS_SHOWN = 10

function Recipients({ message }: { message: Message }) {
  const [isAll, setAll] = useState(false)
  const { recipients } = message
  const shown = isAll ? recipients : recipients.slice(0, RECIPIENTS_SHOWN)
  return (
    <Card title="Recipients" side={recipients.length}>
      <ul class="people">
        {shown.map((one) => (
          <li key={`${one.kind} ${one.recipient}`}>
            <div class="row">
              <b>{one.name ?? one.recipient}</b>
              <StatusChip status={one.status} />
            </div>
            <p>
              {one.name !== null && `${one.recipient}, `}
              {one.kind}, {count(one.attempts, 'attempt')}
            </p>
          </li>
        ))}
      </ul>
      {!isAll && recipients.length > RECIPIENTS_SHOWN && (
        <footer class="more">
          <Button onPress={() => setAll(true)}>{`Show all ${recipients.length}`}</Button>
        </footer>
      )}
    </Card>
  )
}

const SOURCES = { api: 'API', smtp: 'SMTP', broadcast: 'Broadcast' } as const

function Details({ message, serverId }: { message: Message; serverId: string }) {
  const streams = useLoad<{ streams: Stream[] }>(
    (signal) => call('GET', serverApi(serverId, '/streams?limit=100'), { signal }),
    [serverId],
  )
  const stream = streams.value?.streams.find(({ streamId }) => streamId === message.streamId)
  const list = serverPath(serverId, 'messages')
  const { tag, metadata, sizeBytes, source, contentAvailable, contentExpiresAt, messageId, broadcastId } = message
  return (
    <Card title="Details">
      <DefinitionList
        of={[
          ['Message', <CopyValue value={messageId} label="the message id" key="id" />],
          [
            'Stream',
            <Link href={`${list}?streamId=${message.streamId}`} key="stream">
              {stream?.name ?? 'Its messages'}
            </Link>,
          ],
          [
            'Broadcast',
            broadcastId === null ? null : <CopyValue value={broadcastId} label="the broadcast id" key="broadcast" />,
          ],
          [
            'Tag',
            tag === null ? null : (
              <Link href={`${list}?tag=${encodeURIComponent(tag)}`} key="tag">
                {tag}
              </Link>
            ),
          ],
          ...Object.entries(metadata).map(([name, value]) => [name, value] as const),
          ['Size', sizeBytes === null ? null : `${formatSize(sizeBytes)} as built`],
          ['Source', SOURCES[source]],
          ['Content', contentAvailable ? `kept until ${formatDay(contentExpiresAt)}` : 'no longer kept'],
        ]}
      />
      {message.attachments.length > 0 && <Attachments message={message} serverId={serverId} />}
    </Card>
  )
}

function Attachments({ message, serverId }: { message: Message; serverId: string }) {
  const { messageId, test } = message
  const mayRead = areFilesKept(message) && (may('write') || test) && !isContentHidden()
  const path = `/dashboard/api${serverApi(serverId, `/messages/${messageId}/attachments`)}`
  return (
    <ul class="files">
      {message.attachments.map(({ name, size, contentType }, at) => (
        <li key={at}>
          <Icon name="clip" size={14} />
          {mayRead ? (
            <a href={`${path}/${at}`} download={name}>
              {name}
            </a>
          ) : (
            <span>{name}</span>
          )}
          <small>
            {contentType}, {formatSize(size)}
          </small>
        </li>
      ))}
    </ul>
  )
}
