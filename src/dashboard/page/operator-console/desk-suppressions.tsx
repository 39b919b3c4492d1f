/** desk-suppressions - suppressions of a server, also those that only support lifts */
import { useState } from 'preact/hooks'
import type { SuppressionEntry } from '../../../../schemas/suppression.ts'
import { call } from '../api/call.ts'
import { useSearchList } from '../api/lists.ts'
import { Button } from '../parts/button.tsx'
import { Card, Empty, Head } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { Field, Form } from '../parts/form.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'
import { order } from './note.tsx'
import { ServerChoice } from './server-choice.tsx'

/** The page. */
export function DeskSuppressionsPage() {
  const [serverId, setServerId] = useState('')
  const [recipient, setRecipient] = useState('')
  const [search, setSearch] = useState<Record<string, string> | null>(null)
  return (
    <>
      <Head
        title="Suppressions"
        meta="Complaints and unsubscribes can be removed only here, and only if the recipient asks for it."
      />
      <Card title="Search">
        <div class="inset">
          <Form
            act="Search"
            onSend={async () => setSearch({ serverId: serverId.trim(), ...(recipient !== '' && { recipient }) })}
          >
            <ServerChoice serverId={serverId} onChange={setServerId} />
            <Field name="recipient" label="Recipient" type="email" value={recipient} onChange={setRecipient} />
          </Form>
        </div>
      </Card>
      {search !== null && <Found search={search} key={JSON.stringify(search)} />}
    </>
  )
}

function Found({ search }: { search: Record<string, string> }) {
  const list = useSearchList<SuppressionEntry>('/suppressions/search', 'suppressions', search)
  const lift = ({ suppressionId, recipient }: SuppressionEntry) =>
    order({
      title: `Remove the suppression of ${recipient}`,
      act: 'Remove suppression',
      send: async (body) => {
        await call('DELETE', `/suppressions/${suppressionId}`, { body })
        say(`${recipient} gets mail again`)
        list.reload()
      },
    })
  return (
    <List
      label="Suppressions"
      list={list}
      keyOf={({ suppressionId }) => suppressionId}
      columns={[
        { title: 'Reason', cell: ({ reason }) => <StatusChip status={reason} /> },
        { title: 'Recipient', kind: 'grow', cell: ({ recipient }) => <b class="name">{recipient}</b> },
        { title: 'Added', kind: 'wide', cell: ({ createdAt }) => <Time at={createdAt} /> },
        { title: 'Actions', kind: 'end', cell: (entry) => <Button onPress={() => lift(entry)}>Remove</Button> },
      ]}
      empty={<Empty icon="shield" title="No suppressed addresses" />}
    />
  )
}
