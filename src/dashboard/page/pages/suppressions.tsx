/** suppressions - suppressed addresses of a stream, with reason and permission to lift */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Stream } from '../../../../schemas/stream.ts'
import type { SuppressionEntry } from '../../../../schemas/suppression.ts'
import { call } from '../api/call.ts'
import { useSearchList } from '../api/lists.ts'
import { useLoad } from '../api/load.ts'
import { serverApi, serverPath } from '../api/place.ts'
import { may } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useKeptFilters } from '../browser/filters-kept.ts'
import type { PageProps } from '../browser/page-props.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Head } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { Code } from '../parts/copy.tsx'
import { ask, Dialog } from '../parts/dialog.tsx'
import { ExportButton } from '../parts/export.tsx'
import { Filters } from '../parts/filters.tsx'
import { Field, Form, Select } from '../parts/form.tsx'
import { type Column, List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'

const REASONS = ['manual', 'hard_bounce', 'unsubscribe', 'spam_complaint']

/** The page. */
export function SuppressionsPage({ serverId }: PageProps) {
  usePlace({ word: 'Suppressions' })
  const [filters, change] = useKeptFilters(['reason', 'streamId'])
  const [isAdding, setAdding] = useState(false)
  const loaded = useLoad<{ streams: Stream[] }>(
    (signal) => call('GET', serverApi(serverId, '/streams?limit=100'), { signal }),
    [serverId],
  )
  const streams = (loaded.value?.streams ?? []).filter(({ kind }) => kind !== 'inbound')
  const list = useSearchList<SuppressionEntry>(serverApi(serverId, '/suppressions/search'), 'suppressions', filters)
  const lift = async ({ suppressionId, recipient }: SuppressionEntry) => {
    const text = `Mail to ${recipient} is sent again from the next message on.`
    if (!(await ask({ title: 'Remove this suppression?', text, act: 'Remove suppression' }))) return
    await call('DELETE', serverApi(serverId, `/suppressions/${suppressionId}`))
    say(`${recipient} gets mail again`)
    list.reload()
  }
  const nameOf = (id: string) => streams.find(({ streamId }) => streamId === id)?.name ?? ''
  return (
    <>
      <Head title="Suppressions" meta="Mail to these addresses is accepted but not sent.">
        <ExportButton path={serverApi(serverId, '/suppressions/export')} filters={filters} of={serverId} />
        {may('write') && (
          <Button icon="plus" onPress={() => setAdding(true)}>
            Add addresses
          </Button>
        )}
      </Head>
      <Filters
        fields={[
          { name: 'reason', label: 'Reason', options: REASONS.map((one) => [one, one] as const) },
          { name: 'recipient', label: 'Recipient', hint: 'ada@example.org' },
          {
            name: 'streamId',
            label: 'Stream',
            options: streams.map(({ streamId, name }) => [streamId, name] as const),
          },
        ]}
        values={filters}
        onChange={change}
      />
      <List
        label="Suppressions"
        list={list}
        keyOf={({ suppressionId }) => suppressionId}
        columns={columnsOf(nameOf, (entry) => <Lift entry={entry} serverId={serverId} onLift={lift} />)}
        empty={
          <Empty icon="shield" title="No suppressed addresses">
            <p>Hard bounces, complaints and unsubscribes add an address to the list of the stream.</p>
          </Empty>
        }
      />
      {isAdding && (
        <AddAddresses
          serverId={serverId}
          streams={streams}
          onClose={() => {
            setAdding(false)
            list.reload()
          }}
        />
      )}
    </>
  )
}

function columnsOf(
  nameOf: (streamId: string) => string,
  acts: (entry: SuppressionEntry) => ComponentChildren,
): Column<SuppressionEntry>[] {
  return [
    { title: 'Reason', cell: ({ reason }) => <StatusChip status={reason} /> },
    { title: 'Recipient', kind: 'grow', cell: ({ recipient }) => <b class="name">{recipient}</b> },
    { title: 'Answer', kind: 'clip', cell: ({ response }) => response !== null && <Answer response={response} /> },
    { title: 'Stream', kind: 'wide', cell: ({ streamId }) => <span class="dim">{nameOf(streamId)}</span> },
    { title: 'Added', kind: 'wide', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { title: 'Actions', kind: 'end', cell: acts },
  ]
}

/** A reply cut to its column; a press shows all of it. */
function Answer({ response }: { response: string }) {
  const [isWhole, setWhole] = useState(false)
  return (
    <>
      <button type="button" class="as-text cut" title="Show the whole answer" onClick={() => setWhole(true)}>
        <code>{response}</code>
      </button>
      {isWhole && (
        <Dialog title="Answer of the receiving server" onClose={() => setWhole(false)}>
          <Code text={response} label="the answer" />
        </Dialog>
      )}
    </>
  )
}

interface LiftProps {
  readonly entry: SuppressionEntry
  readonly serverId: string
  readonly onLift: (entry: SuppressionEntry) => Promise<void>
}

function Lift({ entry, serverId, onLift }: LiftProps) {
  const { messageId, liftable } = entry
  return (
    <span class="row-acts">
      {messageId !== null && <Link href={serverPath(serverId, 'messages', messageId)}>Message</Link>}
      {liftable ? (
        may('write') && <Button onPress={() => onLift(entry)}>Remove</Button>
      ) : (
        <span class="dim">Contact support to remove</span>
      )}
    </span>
  )
}

interface AddProps {
  readonly serverId: string
  readonly streams: readonly Stream[]
  readonly onClose: () => void
}

function AddAddresses({ serverId, streams, onClose }: AddProps) {
  const [streamId, setStreamId] = useState(streams[0]?.streamId ?? '')
  const [text, setText] = useState('')
  const recipients = text.split(/[\s,;]+/).filter((one) => one !== '')
  const send = async () => {
    const body = { streamId, recipients }
    const answer = await call<{ added: number; existing: number }>('POST', serverApi(serverId, '/suppressions'), {
      body,
    })
    say(`${answer.added} added, ${answer.existing} were there`)
    onClose()
  }
  return (
    <Dialog title="Suppress addresses" onClose={onClose}>
      <Form act={recipients.length > 1 ? `Add ${recipients.length}` : 'Add'} onSend={send}>
        <Select
          label="Stream"
          value={streamId}
          onChange={setStreamId}
          options={streams.map((one) => [one.streamId, one.name] as const)}
        />
        <Field
          name="recipients"
          label="Addresses"
          lines={8}
          value={text}
          onChange={setText}
          hint="One per line, or separated by commas."
          mono
          autofocus
        />
      </Form>
    </Dialog>
  )
}
