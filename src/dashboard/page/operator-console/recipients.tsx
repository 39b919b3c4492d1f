/** recipients - the messages to an address over all accounts; the audit log records each search */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { RecipientMessage } from '../../../../schemas/operator/recipient.ts'
import { useSearchList } from '../api/lists.ts'
import { Card, Empty, Head } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { Field, Form } from '../parts/form.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

/** The page. */
export function RecipientsPage() {
  const [recipient, setRecipient] = useState('')
  const [note, setNote] = useState('')
  const [search, setSearch] = useState<Record<string, string> | null>(null)
  return (
    <>
      <Head title="Recipients" meta="Messages to an address over all accounts. The audit log records each search." />
      <Card title="Search">
        <div class="inset">
          <Form
            act="Search"
            onSend={async () => setSearch({ recipient: recipient.trim(), ...(note !== '' && { note }) })}
          >
            <Field name="recipient" label="Recipient" type="email" value={recipient} onChange={setRecipient} />
            <Field name="note" label="Note for the audit log (optional)" value={note} onChange={setNote} />
          </Form>
        </div>
      </Card>
      {search !== null && <Found search={search} key={JSON.stringify(search)} />}
    </>
  )
}

function Found({ search }: { search: Record<string, string> }) {
  const list = useSearchList<RecipientMessage>('/recipients/search', 'messages', search)
  return (
    <List
      label="Messages"
      list={list}
      keyOf={({ messageId, recipientIndex }) => `${messageId} ${recipientIndex}`}
      columns={[
        { title: 'Status', cell: ({ status }) => <StatusChip status={status} /> },
        { title: 'Message', kind: 'grow', cell: ({ messageId }) => <code>{messageId}</code> },
        {
          title: 'Account',
          kind: 'wide',
          cell: ({ accountId }) => <Link href={`/accounts/${accountId}`}>{accountId}</Link>,
        },
        { title: 'Submitted', kind: 'wide', cell: ({ submittedAt }) => <Time at={submittedAt} /> },
      ]}
      empty={<Empty icon="search" title="No messages to this address" />}
    />
  )
}
