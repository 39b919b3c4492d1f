/** servers - the account's servers with their limits; a server's first key is shown once */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Server } from '../../../../schemas/server.ts'
import { call } from '../api/call.ts'
import { serverPath } from '../api/place.ts'
import { may, readServers, servers } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useOpening } from '../browser/opening.ts'
import { Button } from '../parts/button.tsx'
import { Card, Empty, Head } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { Code } from '../parts/copy.tsx'
import { ask, Dialog } from '../parts/dialog.tsx'
import { Field, Form, Select, Tick } from '../parts/form.tsx'
import { Limits } from '../parts/limits.tsx'
import { RetentionDialog } from '../parts/retention.tsx'
import { say } from '../parts/toast.tsx'

/** The page. */
export function ServersPage() {
  usePlace({ word: 'Servers' })
  const [edited, edit] = useState<Server | 'new' | null>(null)
  useOpening(() => edit('new'))
  const known = servers.value ?? []
  const add = may('administer') && (
    <Button kind="main" icon="plus" onPress={() => edit('new')}>
      New server
    </Button>
  )
  return (
    <>
      <Head
        title="Servers"
        meta="Use one server for each application or stage. Each has its own keys, streams, limits and log."
      >
        {add}
      </Head>
      {known.length === 0 && (
        <div class="card">
          <Empty icon="server" title="No server yet">
            {add}
          </Empty>
        </div>
      )}
      <div class="tiles">
        {known.map((server) => (
          <ServerCard key={server.serverId} server={server} onEdit={() => edit(server)} />
        ))}
      </div>
      {edited !== null && <EditServer server={edited === 'new' ? null : edited} onClose={() => edit(null)} />}
    </>
  )
}

function ServerCard({ server, onEdit }: { server: Server; onEdit: () => void }) {
  const { serverId, name, mode, limits } = server
  const [isRetention, showRetention] = useState(false)
  const remove = async () => {
    const text = 'Its keys stop working immediately and its webhooks are removed. Queued mail is still delivered.'
    if (!(await ask({ title: `Remove ${name}?`, text, act: 'Remove', isDanger: true }))) return
    await call('DELETE', `/servers/${serverId}`)
    await readServers()
    say(`${name} is removed`)
  }
  return (
    <Card title={name} side={mode === 'test' ? <Chip tone="test">Test</Chip> : <Chip tone="accepted">Live</Chip>}>
      <Limits limits={limits} />
      <footer class="card-acts">
        <Link href={serverPath(serverId, 'overview')} class="button">
          Open
        </Link>
        {may('administer') && (
          <>
            <Button onPress={onEdit}>Change</Button>
            <Button onPress={() => showRetention(true)}>Retention</Button>
            <Button kind="danger" onPress={remove}>
              Remove
            </Button>
          </>
        )}
      </footer>
      {isRetention && (
        <RetentionDialog
          title={`Retention of ${name}`}
          path={`/servers/${serverId}`}
          onClose={() => showRetention(false)}
        />
      )}
    </Card>
  )
}

function EditServer({ server, onClose }: { server: Server | null; onClose: () => void }) {
  const ownOf = (period: string) => server?.limits.find((one) => one.scope === 'server' && one.period === period)?.limit
  const [name, setName] = useState(server?.name ?? '')
  const [mode, setMode] = useState<string>(server?.mode ?? 'test')
  const [minute, setMinute] = useState(String(ownOf('minute') ?? ''))
  const [month, setMonth] = useState(String(ownOf('month') ?? ''))
  const [bounceMail, setBounceMail] = useState(server?.bounceMail ?? false)
  const [key, setKey] = useState<string | null>(null)
  if (key !== null)
    return (
      <Dialog title="Its first key" onClose={onClose}>
        <p class="dialog-text">Copy it now. It is shown only once.</p>
        <Code text={key} label="the key" />
      </Dialog>
    )
  const send = async () => {
    const numberOf = (text: string) => (text === '' ? null : Number(text))
    const own = mode === 'live' ? { perMinuteLimit: numberOf(minute), monthlyCap: numberOf(month) } : {}
    if (server === null) {
      const made = await call<{ key: { token: string } }>('POST', '/servers', { body: { name, mode, ...own } })
      setKey(made.key.token)
    } else {
      await call('PATCH', `/servers/${server.serverId}`, {
        body: { name, ...own, ...(mode === 'live' && { bounceMail }) },
      })
      onClose()
    }
    await readServers()
  }
  return (
    <Dialog title={server === null ? 'New server' : 'Change the server'} onClose={onClose}>
      <Form act={server === null ? 'Make it' : 'Save'} onSend={send}>
        <Field name="name" label="Name" value={name} onChange={setName} autofocus />
        {server === null && (
          <Select
            label="Mode"
            value={mode}
            onChange={setMode}
            options={[
              ['test', 'Test: delivers to no one'],
              ['live', 'Live: delivers'],
            ]}
            hint="It cannot be changed later."
          />
        )}
        {mode === 'live' && <LimitFields {...{ minute, setMinute, month, setMonth }} />}
        {server?.mode === 'live' && (
          <Tick label="Bounce mail to SMTP senders" checked={bounceMail} onChange={setBounceMail} />
        )}
      </Form>
    </Dialog>
  )
}

interface LimitFieldsProps {
  readonly minute: string
  readonly setMinute: (text: string) => void
  readonly month: string
  readonly setMonth: (text: string) => void
}

function LimitFields({ minute, setMinute, month, setMonth }: LimitFieldsProps) {
  const hint = 'Leave empty to use the account’s limit.'
  const own = { type: 'number', hint } as const
  return (
    <>
      <Field name="perMinuteLimit" label="Emails a minute" value={minute} onChange={setMinute} {...own} />
      <Field name="monthlyCap" label="Emails a month" value={month} onChange={setMonth} {...own} />
    </>
  )
}
