/** messages - a server's messages, newest first, with filters as chips; new ones wait for a press */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { MessageSummary } from '../../../../schemas/message.ts'
import type { Stream } from '../../../../schemas/stream.ts'
import { ApiError, call } from '../api/call.ts'
import { useSearchList } from '../api/lists.ts'
import { type Told, useLive } from '../api/live.ts'
import { type LoadedList, useLoad } from '../api/load.ts'
import { serverApi, serverPath } from '../api/place.ts'
import { findServer, session } from '../api/session.ts'
import { count } from '../api/words.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useKeptFilters } from '../browser/filters-kept.ts'
import type { PageProps } from '../browser/page-props.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Head } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { Code } from '../parts/copy.tsx'
import { ExportButton } from '../parts/export.tsx'
import { ADDRESS, type FilterField, Filters } from '../parts/filters.tsx'
import { type Column, List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

const STATUSES = [
  'accepted',
  'scheduled',
  'delivered',
  'deferred',
  'bounced',
  'suppressed',
  'cancelled',
  'failed',
  'mixed',
]

/** Filters allowed in a path; addresses are not. */
const OPEN_FILTERS = [
  'status',
  'event',
  'site',
  'classification',
  'tag',
  'streamId',
  'source',
  'broadcastId',
  'submittedFrom',
  'submittedTo',
] as const
const EVENTS = ['delivered', 'deferred', 'bounced', 'spam_complaint', 'unsubscribed'] as const

const SOURCES = ['api', 'smtp', 'broadcast'] as const

/** From one look at a list to the next; with filters each looks through many messages. */
const REST_MS = 5_000
const REST_FILTERED_MS = 10_000
const PAGE_ROWS = 50

/** The page. */
export function MessagesPage({ serverId }: PageProps) {
  const [filters, change] = useKeptFilters(OPEN_FILTERS)
  usePlace({ word: 'Messages' })
  const streams = useLoad<{ streams: Stream[] }>(
    (signal) => call('GET', serverApi(serverId, '/streams?limit=100'), { signal }),
    [serverId],
  )
  const sought = searchOf(filters)
  const list = useSearchList<MessageSummary>(serverApi(serverId, '/messages/search'), 'messages', sought)
  const streamOf = (id: string) => streams.value?.streams.find(({ streamId }) => streamId === id)?.name ?? ''
  const isFiltered = Object.keys(filters).length > 0
  return (
    <>
      <Head title="Messages">
        {(filters.status === 'bounced' || filters.event === 'bounced') && (
          <ExportButton path={serverApi(serverId, '/bounces/export')} filters={withoutStatus(sought)} of={serverId}>
            Export bounces
          </ExportButton>
        )}
        <ExportButton path={serverApi(serverId, '/messages/export')} filters={sought} of={serverId} />
      </Head>
      <Filters fields={fieldsOf(streams.value?.streams ?? [])} values={filters} onChange={change} />
      <Fresh list={list} serverId={serverId} isFiltered={isFiltered} key={JSON.stringify(filters)} />
      <List
        label="Messages"
        list={list}
        keyOf={({ messageId }) => messageId}
        columns={columnsOf(serverId, streamOf)}
        empty={isFiltered ? <NoneFound onClear={() => change({})} /> : <NoneYet serverId={serverId} />}
      />
    </>
  )
}

/** The filters as the search takes them: a recipient may be a whole address or a part of one, or of a name. */
function searchOf({ recipient, ...others }: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (recipient === undefined) return others
  return ADDRESS.test(recipient) ? { ...others, recipient } : { ...others, recipientContains: recipient }
}

function withoutStatus({ status: _, ...others }: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return others
}

interface FreshProps {
  readonly list: LoadedList<MessageSummary>
  readonly serverId: string
  readonly isFiltered: boolean
}

/**
 * How many messages have come since the list was read: they come into it with a press, so that no row jumps away.
 * Without filters the feed itself counts them, and the list is read again only if a shown message has changed.
 */
function Fresh({ list, serverId, isFiltered }: FreshProps) {
  const [fresh, setFresh] = useState(0)
  const heard = useRef(new Set<string>())
  const rows = list.value?.rows ?? []
  const look = () => {
    list
      .refresh(({ messageId }) => messageId)
      .then(
        (count) => {
          heard.current.clear()
          setFresh(count)
        },
        (fault: unknown) => {
          if (!(fault instanceof ApiError)) throw fault
        },
      )
  }
  useEffect(() => {
    if (list.isKept) look()
  }, [])
  /** Whether an event is a reason to read. */
  const wants = ({ event, messageId }: Told) => {
    if (messageId === undefined) return false
    if (isFiltered || rows.length === 0) return true
    if (event !== 'accepted') return rows.some((row) => row.messageId === messageId)
    if (heard.current.size >= PAGE_ROWS || heard.current.has(messageId)) return false
    heard.current.add(messageId)
    setFresh((before) => before + 1)
    return false
  }
  const restMs = isFiltered ? REST_FILTERED_MS : REST_MS
  useLive(serverId, { call: look, wants, restMs, awayMs: REST_FILTERED_MS })
  const show = () => {
    heard.current.clear()
    setFresh(0)
    list.reload()
  }
  return (
    <div role="status" class="fresh">
      {fresh > 0 && (
        <Button onPress={show}>{fresh < PAGE_ROWS ? count(fresh, 'new message') : 'Many new messages'}</Button>
      )}
    </div>
  )
}

function fieldsOf(streams: readonly Stream[]): FilterField[] {
  const sending = streams.filter(({ kind }) => kind !== 'inbound')
  return [
    { name: 'status', label: 'Status', options: STATUSES.map((one) => [one, one] as const) },
    { name: 'recipient', label: 'Recipient', hint: 'Address, name or @domain' },
    { name: 'subject', label: 'Subject', hint: 'Words of the subject' },
    { name: 'tag', label: 'Tag', hint: 'password-reset' },
    { name: 'streamId', label: 'Stream', options: sending.map(({ streamId, name }) => [streamId, name] as const) },
    { name: 'submittedFrom', label: 'After', kind: 'time' },
    { name: 'submittedTo', label: 'Before', kind: 'time' },
    { name: 'from', label: 'From', hint: 'accounts@example.com', kind: 'address', isRare: true },
    { name: 'event', label: 'Event', options: EVENTS.map((one) => [one, one] as const), isRare: true },
    { name: 'site', label: 'Provider', hint: 'google', isRare: true },
    { name: 'classification', label: 'Bounce reason', hint: 'SpamBlock', isRare: true },
    { name: 'source', label: 'Source', options: SOURCES.map((one) => [one, one] as const), isRare: true },
    { name: 'broadcastId', label: 'Broadcast', hint: 'Id of a broadcast', isRare: true },
  ]
}

function columnsOf(serverId: string, streamOf: (id: string) => string): Column<MessageSummary>[] {
  return [
    { title: 'Status', cell: ({ status }) => <StatusChip status={status} /> },
    { title: 'Recipient', kind: 'clip', cell: ({ recipients }) => <Recipient recipients={recipients} /> },
    {
      title: 'Subject',
      kind: 'grow',
      cell: ({ messageId, subject }) => (
        <Link href={serverPath(serverId, 'messages', messageId)} class="row-link">
          <bdi>{subject ?? 'No subject'}</bdi>
        </Link>
      ),
    },
    { title: 'Tag', kind: 'wide', cell: ({ tag }) => tag !== null && <span class="tag">{tag}</span> },
    { title: 'Stream', kind: 'wide', cell: ({ streamId }) => <span class="dim">{streamOf(streamId)}</span> },
    { title: 'Time', kind: 'end', cell: ({ submittedAt }) => <Time at={submittedAt} /> },
  ]
}

function Recipient({ recipients }: Pick<MessageSummary, 'recipients'>) {
  const [first, ...others] = recipients
  return (
    <span class="recipient">
      <span>{first?.recipient}</span>
      {others.length > 0 && <small>+{others.length}</small>}
    </span>
  )
}

function NoneFound({ onClear }: { onClear: () => void }) {
  return (
    <Empty icon="search" title="No messages match these filters">
      <Button onPress={onClear}>Clear the filters</Button>
    </Empty>
  )
}

function NoneYet({ serverId }: { serverId: string }) {
  const isTest = findServer(serverId)?.mode === 'test'
  const from = isTest ? 'accounts@simulator.test' : 'you@your-verified-domain'
  // The simulator is for test servers; on a live server its addresses would bounce.
  const to = isTest ? 'delivered@simulator.test' : (session.value?.user.address ?? 'you@example.com')
  const command = `curl ${location.origin}/v1/email \\
  -H 'Authorization: Bearer ${isTest ? 'sk_test_...' : 'sk_...'}' \\
  -H 'Content-Type: application/json' \\
  -d '{"from": "${from}", "to": ["${to}"], "subject": "Hello", "text": "It works"}'`
  return (
    <Empty icon="send" title="No message yet">
      <p>Your first message appears here as soon as it is accepted. Your key is on the Keys page.</p>
      <Code text={command} label="the command" />
    </Empty>
  )
}
