/** new-webhook - the form that adds a webhook, and its secret, shown once */
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import type { Stream } from '../../../../../schemas/stream.ts'
import type { EventName, Webhook, WebhookFormat } from '../../../../../schemas/webhook.ts'
import { call } from '../../api/call.ts'
import { useLoad } from '../../api/load.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { formatStatus } from '../../api/words.ts'
import { Button } from '../../parts/button.tsx'
import { Code } from '../../parts/copy.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, Form, Select, Tick } from '../../parts/form.tsx'
import { EVENT_NAMES, FORMAT_EVENTS } from './event-names.ts'

interface NewWebhookProps {
  readonly serverId: string
  readonly onClose: () => void
}

/** The dialog. */
export function NewWebhook({ serverId, onClose }: NewWebhookProps) {
  const [made, setMade] = useState<(Webhook & { secret: string }) | null>(null)
  const [, go] = useLocation()
  if (made === null)
    return (
      <Dialog title="Add a webhook" onClose={onClose}>
        <WebhookForm serverId={serverId} onMade={setMade} />
      </Dialog>
    )
  return (
    <Dialog title="Its signing secret" onClose={onClose}>
      <p class="dialog-text">
        Copy it now. It is shown only once. Your application uses it to verify that a post is from this service.
      </p>
      <Code text={made.secret} label="the secret" />
      <footer>
        <Button kind="main" onPress={() => go(serverPath(serverId, 'webhooks', made.webhookId))}>
          Go to the webhook
        </Button>
      </footer>
    </Dialog>
  )
}

function WebhookForm({ serverId, onMade }: { serverId: string; onMade: (made: Webhook & { secret: string }) => void }) {
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState<readonly EventName[]>(EVENT_NAMES)
  const [streamId, setStreamId] = useState('')
  const [inboundContent, setContent] = useState('full')
  const [tag, setTag] = useState('')
  const [format, setFormat] = useState<WebhookFormat>('sendwright')
  const content = format === 'postmark' || inboundContent !== 'raw' ? inboundContent : 'full'
  const streams = useLoad<{ streams: Stream[] }>(
    (signal) => call('GET', serverApi(serverId, '/streams?limit=100'), { signal }),
    [serverId],
  )
  const send = async () => {
    const of = { streamId: streamId === '' ? null : streamId, tag: tag === '' ? null : tag }
    const body = { url, events: eventsOf(format, events), ...of, inboundContent: content, format }
    onMade(await call('POST', serverApi(serverId, '/webhooks'), { body }))
  }
  return (
    <Form act="Add it" onSend={send}>
      <Field
        name="url"
        label="URL"
        type="url"
        placeholder="https://example.com/mail-events"
        value={url}
        onChange={setUrl}
        hint="https, reachable from the internet."
        autofocus
      />
      <Select
        label="Stream"
        value={streamId}
        onChange={setStreamId}
        options={[
          ['', 'All streams'],
          ...(streams.value?.streams ?? []).map((one) => [one.streamId, one.name] as const),
        ]}
      />
      <Field name="tag" label="Tag" value={tag} onChange={setTag} hint="Events of messages with this tag only." />
      <Select
        label="Format"
        value={format}
        onChange={(chosen) => setFormat(chosen as WebhookFormat)}
        options={[
          ['sendwright', 'Sendwright'],
          ['resend', 'Resend'],
          ['postmark', 'Postmark'],
        ]}
      />
      <EventTicks events={events} onChange={setEvents} />
      {events.includes('inbound') && (
        <Select
          label="Received mail is sent"
          value={content}
          onChange={setContent}
          options={[
            ['full', 'with its content'],
            ['reference', 'as a reference'],
            ...(format === 'postmark' ? [['raw', 'with its source'] as const] : []),
          ]}
        />
      )}
    </Form>
  )
}

/** The chosen events that the format has. */
function eventsOf(format: WebhookFormat, events: readonly EventName[]): readonly EventName[] {
  const known: readonly EventName[] = FORMAT_EVENTS[format]
  return events.filter((event) => known.includes(event))
}

interface EventTicksProps {
  readonly events: readonly EventName[]
  readonly onChange: (events: readonly EventName[]) => void
}

function EventTicks({ events, onChange }: EventTicksProps) {
  const turn = (event: EventName, isOn: boolean) =>
    onChange(EVENT_NAMES.filter((one) => (one === event ? isOn : events.includes(one))))
  return (
    <fieldset class="ticks">
      <legend>Events</legend>
      {EVENT_NAMES.map((event) => (
        <Tick
          key={event}
          label={formatStatus(event)}
          checked={events.includes(event)}
          onChange={(isOn) => turn(event, isOn)}
        />
      ))}
    </fieldset>
  )
}
