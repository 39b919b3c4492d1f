/** people - members of this account, their roles, and invitations */
import { useState } from 'preact/hooks'
import type { Invitation, Member } from '../../../../schemas/dashboard/people.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { may, session } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useOpening } from '../browser/opening.ts'
import { Button } from '../parts/button.tsx'
import { Card, Empty, Head, Shown } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { ask, Dialog } from '../parts/dialog.tsx'
import { Field, Form, Select } from '../parts/form.tsx'
import { type Column, Rows } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'

/** The roles. */
const ROLES = [
  ['administrator', 'Administrator: everything'],
  ['member', 'Member: sends, reads content, keeps keys, streams and webhooks'],
  ['reader', 'Member who only reads'],
] as const

type RoleChoice = (typeof ROLES)[number][0]

const bodyOf = (role: RoleChoice) =>
  ({
    administrator: { role: 'administrator', readOnly: false },
    member: { role: 'member', readOnly: false },
    reader: { role: 'member', readOnly: true },
  })[role]

function choiceOf({ role, readOnly }: Pick<Member, 'role' | 'readOnly'>): RoleChoice {
  return role === 'administrator' ? 'administrator' : readOnly ? 'reader' : 'member'
}

const WORDS = { administrator: 'Administrator', member: 'Member', reader: 'Reads only' } as const

/** The page. */
export function PeoplePage() {
  usePlace({ word: 'People' })
  const members = useLoad<{ members: Member[] }>((signal) => call('GET', '/members', { signal }), [])
  const isAdministrator = may('administer')
  const invitations = useLoad<{ invitations: Invitation[] }>(
    isAdministrator ? (signal) => call('GET', '/invitations', { signal }) : null,
    [isAdministrator],
  )
  const [isInviting, setInviting] = useState(false)
  useOpening(() => setInviting(true))
  const [changed, change] = useState<Member | null>(null)
  const remove = async ({ userId, address }: Member) => {
    const text = 'Their sessions in this account end immediately.'
    if (!(await ask({ title: `Remove ${address}?`, text, act: 'Remove', isDanger: true }))) return
    await call('DELETE', `/members/${userId}`)
    say(`${address} is removed`)
    members.reload()
  }
  return (
    <>
      <Head title="People" meta="A change of role takes effect immediately.">
        {isAdministrator && (
          <Button kind="main" icon="plus" onPress={() => setInviting(true)}>
            Invite
          </Button>
        )}
      </Head>
      <Card title="Members">
        <Shown of={members}>
          {({ members: rows }) => (
            <Rows
              label="Members"
              rows={rows}
              keyOf={({ userId }) => userId}
              columns={columnsOf(isAdministrator, change, remove)}
            />
          )}
        </Shown>
      </Card>
      {isAdministrator && <Invitations of={invitations} />}
      {isInviting && (
        <Invite
          onClose={() => {
            setInviting(false)
            invitations.reload()
          }}
        />
      )}
      {changed !== null && (
        <ChangeRole
          member={changed}
          onClose={() => {
            change(null)
            members.reload()
          }}
        />
      )}
    </>
  )
}

type Order = (member: Member) => unknown

function columnsOf(isAdministrator: boolean, change: Order, remove: Order): Column<Member>[] {
  return [
    { title: 'Who', kind: 'grow', cell: (member) => <Who member={member} /> },
    { title: 'Role', cell: (member) => <RoleChip of={member} /> },
    { title: 'Second factor', kind: 'wide', cell: ({ secondFactor }) => (secondFactor ? 'Yes' : 'No') },
    {
      title: 'Seen',
      kind: 'wide',
      cell: ({ lastSeenAt }) => (lastSeenAt === null ? '–' : <Time at={lastSeenAt} as="ago" />),
    },
    {
      title: 'Actions',
      kind: 'end',
      cell: (member) =>
        isAdministrator && (
          <span class="row-acts">
            <Button onPress={() => change(member)}>Role</Button>
            <Button onPress={() => remove(member)}>Remove</Button>
          </span>
        ),
    },
  ]
}

function Who({ member: { name, address, userId } }: { member: Member }) {
  return (
    <>
      <b class="name">{name}</b> <span class="dim">{address}</span>{' '}
      {userId === session.value?.user.userId && <span class="tag">You</span>}
    </>
  )
}

function RoleChip({ of }: { of: Pick<Member, 'role' | 'readOnly'> }) {
  const choice = choiceOf(of)
  return <Chip tone={choice === 'administrator' ? 'accepted' : 'quiet'}>{WORDS[choice]}</Chip>
}

function Invitations({ of }: { of: ReturnType<typeof useLoad<{ invitations: Invitation[] }>> }) {
  const send = async ({ invitationId, address }: Invitation) => {
    await call('POST', `/invitations/${invitationId}/send`)
    say(`Sent to ${address} again`)
    of.reload()
  }
  const withdraw = async ({ invitationId }: Invitation) => {
    await call('DELETE', `/invitations/${invitationId}`)
    of.reload()
  }
  return (
    <Card title="Invitations">
      <Shown of={of} lines={2}>
        {({ invitations }) =>
          invitations.length === 0 ? (
            <Empty icon="mail" title="No open invitations" />
          ) : (
            <Rows
              label="Invitations"
              rows={invitations}
              keyOf={({ invitationId }) => invitationId}
              columns={[
                { title: 'Who', kind: 'grow', cell: ({ address }) => <b class="name">{address}</b> },
                { title: 'Role', cell: (one) => <RoleChip of={one} /> },
                { title: 'Until', kind: 'wide', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
                {
                  title: 'Actions',
                  kind: 'end',
                  cell: (one) => (
                    <span class="row-acts">
                      <Button onPress={() => send(one)}>Send again</Button>
                      <Button onPress={() => withdraw(one)}>Withdraw</Button>
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Shown>
    </Card>
  )
}

function Invite({ onClose }: { onClose: () => void }) {
  const [address, setAddress] = useState('')
  const [role, setRole] = useState<RoleChoice>('member')
  const send = async () => {
    await call('POST', '/invitations', { body: { address, ...bodyOf(role) } })
    say(`${address} is invited`)
    onClose()
  }
  return (
    <Dialog title="Invite somebody" onClose={onClose}>
      <Form act="Invite" onSend={send}>
        <Field name="address" label="Address" type="email" value={address} onChange={setAddress} autofocus />
        <Select
          label="As"
          value={role}
          onChange={(value) => setRole(value as RoleChoice)}
          options={ROLES}
          hint="A link is mailed to the address. It works for 7 days."
        />
      </Form>
    </Dialog>
  )
}

function ChangeRole({ member, onClose }: { member: Member; onClose: () => void }) {
  const [role, setRole] = useState<RoleChoice>(choiceOf(member))
  const send = async () => {
    await call('PATCH', `/members/${member.userId}`, { body: bodyOf(role) })
    onClose()
  }
  return (
    <Dialog title={`Role of ${member.name}`} onClose={onClose}>
      <Form act="Save" onSend={send}>
        <Select label="Role" value={role} onChange={(value) => setRole(value as RoleChoice)} options={ROLES} />
      </Form>
    </Dialog>
  )
}
