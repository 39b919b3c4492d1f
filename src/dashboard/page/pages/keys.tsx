/** keys - a server's keys: at most two are active, for rotation; a value is shown once */

import { useState } from 'preact/hooks'
import type { Token } from '../../../../schemas/token.ts'
import { call } from '../api/call.ts'
import { useGetList } from '../api/lists.ts'
import { serverApi } from '../api/place.ts'
import { findServer, may } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useOpening } from '../browser/opening.ts'
import type { PageProps } from '../browser/page-props.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Head } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { Code } from '../parts/copy.tsx'
import { ask, Dialog } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/form.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'

/** The page. */
export function KeysPage({ serverId }: PageProps) {
  usePlace({ word: 'Keys' })
  const name = findServer(serverId)?.name ?? ''
  return (
    <KeyList
      base={serverApi(serverId, '/tokens')}
      title="Keys"
      about={`Send and manage ${name}. At most two can be active.`}
    />
  )
}

/** Active keys of an owner; the API refuses another one. */
const ACTIVE_MAX = 2
const FULL = `${ACTIVE_MAX} keys are active, the maximum. Revoke one to create another.`

interface KeyListProps {
  /** Path of the keys in the interface. */
  readonly base: string
  readonly title: string
  readonly about: string
  readonly mayChange?: boolean
}

/** Keys of an owner, and their creation and revocation. */
export function KeyList({ base, title, about, mayChange = may('write') }: KeyListProps) {
  const [isMaking, setMaking] = useState(false)
  useOpening(() => setMaking(true))
  const list = useGetList<Token>(base, 'tokens')
  const active = list.value?.rows.filter(({ revokedAt }) => revokedAt === null).length ?? 0
  const isFull = active >= ACTIVE_MAX
  const revoke = async ({ tokenId, name }: Token) => {
    const text = `Whatever uses “${name}” stops working immediately. This cannot be undone.`
    if (!(await ask({ title: 'Revoke this key?', text, act: 'Revoke', isDanger: true }))) return
    await call('POST', `${base}/${tokenId}/revoke`)
    say(`${name} is revoked`)
    list.reload()
  }
  return (
    <>
      <Head title={title} meta={isFull ? FULL : about}>
        {mayChange && (
          <Button kind="main" icon="plus" disabled={isFull} onPress={() => setMaking(true)}>
            New key
          </Button>
        )}
      </Head>
      <List
        label={title}
        list={list}
        keyOf={({ tokenId }) => tokenId}
        columns={[
          { title: 'Name', kind: 'grow', cell: ({ name }) => <b class="name">{name}</b> },
          { title: 'Prefix', cell: ({ prefix }) => <code>{prefix}…</code> },
          { title: 'Created', kind: 'wide', cell: ({ createdAt }) => <Time at={createdAt} /> },
          { title: 'State', cell: ({ revokedAt }) => <KeyState revokedAt={revokedAt} /> },
          {
            title: 'Actions',
            kind: 'end',
            cell: (token) =>
              mayChange && token.revokedAt === null && <Button onPress={() => revoke(token)}>Revoke</Button>,
          },
        ]}
        empty={<Empty icon="key" title="No key yet" />}
      />
      {isMaking && (
        <NewKey
          base={base}
          onClose={() => {
            setMaking(false)
            list.reload()
          }}
        />
      )}
    </>
  )
}

function KeyState({ revokedAt }: Pick<Token, 'revokedAt'>) {
  if (revokedAt === null)
    return (
      <Chip tone="delivered" icon="check">
        Live
      </Chip>
    )
  return (
    <span class="dim">
      Revoked <Time at={revokedAt} />
    </span>
  )
}

function NewKey({ base, onClose }: { base: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const [made, setMade] = useState<string | null>(null)
  if (made !== null)
    return (
      <Dialog title="Your new key" onClose={onClose}>
        <p class="dialog-text">Copy it now. It is shown only once.</p>
        <Code text={made} label="the key" />
        <footer>
          <Button kind="main" onPress={onClose}>
            I have it
          </Button>
        </footer>
      </Dialog>
    )
  const send = async () => setMade((await call<{ token: string }>('POST', base, { body: { name } })).token)
  return (
    <Dialog title="New key" onClose={onClose}>
      <Form act="Create key" onSend={send}>
        <Field
          name="name"
          label="Name"
          value={name}
          onChange={setName}
          hint="Its purpose, such as “web shop”."
          autofocus
        />
      </Form>
    </Dialog>
  )
}
