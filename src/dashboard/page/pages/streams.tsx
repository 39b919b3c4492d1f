/** streams - a server's streams: transactional, broadcast and inbound */
import { useState } from 'preact/hooks'
import type { Stream } from '../../../../schemas/stream.ts'
import { call } from '../api/call.ts'
import { useGetList } from '../api/lists.ts'
import { serverApi } from '../api/place.ts'
import { findServer, may } from '../api/session.ts'
import { capital } from '../api/words.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useOpening } from '../browser/opening.ts'
import type { PageProps } from '../browser/page-props.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Head } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { CopyValue } from '../parts/copy.tsx'
import { ask, Dialog } from '../parts/dialog.tsx'
import { Field, Form, Select } from '../parts/form.tsx'
import { type Column, List } from '../parts/list.tsx'
import { RetentionDialog } from '../parts/retention.tsx'
import { say } from '../parts/toast.tsx'

/** The page. */
export function StreamsPage({ serverId }: PageProps) {
  usePlace({ word: 'Streams' })
  const [edited, edit] = useState<Stream | 'new' | null>(null)
  useOpening(() => edit('new'))
  const [kept, keep] = useState<Stream | null>(null)
  const list = useGetList<Stream>(serverApi(serverId, '/streams'), 'streams')
  const archive = async ({ streamId, name }: Stream) => {
    const text =
      'It accepts no new messages. Queued mail is still delivered and the log is kept. This cannot be undone.'
    if (!(await ask({ title: `Archive ${name}?`, text, act: 'Archive', isDanger: true }))) return
    await call('POST', serverApi(serverId, `/streams/${streamId}/archive`))
    say(`${name} is archived`)
    list.reload()
  }
  return (
    <>
      <Head title="Streams" meta="Each stream has its own suppression list, so that newsletters never affect receipts.">
        {may('write') && (
          <Button kind="main" icon="plus" onPress={() => edit('new')}>
            New stream
          </Button>
        )}
      </Head>
      <List
        label="Streams"
        list={list}
        keyOf={({ streamId }) => streamId}
        columns={columnsOf({ edit, archive, keep })}
        empty={<Empty icon="streams" title="No stream yet" />}
      />
      {kept !== null && (
        <RetentionDialog
          title={`Retention of ${kept.name}`}
          path={serverApi(serverId, `/streams/${kept.streamId}`)}
          onClose={() => keep(null)}
        />
      )}
      {edited !== null && (
        <EditStream
          serverId={serverId}
          stream={edited === 'new' ? null : edited}
          onClose={() => {
            edit(null)
            list.reload()
          }}
        />
      )}
    </>
  )
}

type Order = (stream: Stream) => unknown

function columnsOf({ edit, archive, keep }: Readonly<Record<'edit' | 'archive' | 'keep', Order>>): Column<Stream>[] {
  return [
    {
      title: 'Name',
      kind: 'grow',
      cell: ({ name, isDefault }) => (
        <>
          <b class="name">{name}</b> {isDefault && <span class="tag">Default</span>}
        </>
      ),
    },
    { title: 'Kind', cell: ({ kind }) => capital(kind) },
    { title: 'State', cell: (stream) => <StreamState stream={stream} /> },
    {
      title: 'Id or address',
      kind: 'clip',
      cell: ({ streamId, inboundAddress }) => (
        <CopyValue
          value={inboundAddress ?? streamId}
          shown={inboundAddress ?? `${streamId.slice(0, 13)}…`}
          label={inboundAddress === null ? 'the stream id' : 'the address'}
        />
      ),
    },
    {
      title: 'Actions',
      kind: 'end',
      cell: (stream) =>
        may('write') &&
        stream.archivedAt === null && (
          <span class="row-acts">
            <Button onPress={() => edit(stream)}>Change</Button>
            {stream.kind !== 'inbound' && <Button onPress={() => keep(stream)}>Retention</Button>}
            {!stream.isDefault && <Button onPress={() => archive(stream)}>Archive</Button>}
          </span>
        ),
    },
  ]
}

function StreamState({ stream: { archivedAt, pausedAt } }: { stream: Stream }) {
  if (archivedAt !== null) return <Chip icon="ban">Archived</Chip>
  if (pausedAt !== null)
    return (
      <Chip tone="spam_complaint" icon="flag">
        Paused after complaints
      </Chip>
    )
  return (
    <Chip tone="delivered" icon="check">
      Active
    </Chip>
  )
}

interface EditProps {
  readonly serverId: string
  /** Null for a new one. */
  readonly stream: Stream | null
  readonly onClose: () => void
}

function EditStream({ serverId, stream, onClose }: EditProps) {
  const [name, setName] = useState(stream?.name ?? '')
  const [kind, setKind] = useState<string>(stream?.kind ?? 'transactional')
  const [days, setDays] = useState(String(stream?.contentRetentionDays ?? ''))
  const isInbound = stream?.kind === 'inbound'
  const isTest = findServer(serverId)?.mode === 'test'
  const send = async () => {
    const path = serverApi(serverId, '/streams')
    const kept = isInbound ? { contentRetentionDays: days === '' ? null : Number(days) } : {}
    if (stream === null) await call('POST', path, { body: { kind, name } })
    else await call('PATCH', `${path}/${stream.streamId}`, { body: { name, ...kept } })
    onClose()
  }
  return (
    <Dialog title={stream === null ? 'New stream' : 'Change the stream'} onClose={onClose}>
      <Form act={stream === null ? 'Make it' : 'Save'} onSend={send}>
        <Field name="name" label="Name" value={name} onChange={setName} autofocus />
        {stream === null && (
          <Select
            label="Kind"
            value={kind}
            onChange={setKind}
            options={[
              ['transactional', 'Transactional: one message to one person'],
              ['broadcast', 'Broadcast: one message to many'],
              ...(isTest ? [] : [['inbound', 'Inbound: receives mail'] as const]),
            ]}
          />
        )}
        {isInbound && (
          <Field
            name="contentRetentionDays"
            label="Days for which content is kept"
            type="number"
            inputMode="numeric"
            value={days}
            onChange={setDays}
            hint="1 to 30; empty: 30."
          />
        )}
      </Form>
    </Dialog>
  )
}
