/** queue - pending mail by destination and by account, and the orders about it */
import { Link } from 'wouter-preact'
import type { Destination, QueueAccounts } from '../../../../schemas/operator/queue.ts'
import { call } from '../api/call.ts'
import { useGetList } from '../api/lists.ts'
import { type Loaded, useLoad } from '../api/load.ts'
import { count, formatNumber } from '../api/words.ts'
import { Button } from '../parts/button.tsx'
import { Card, Empty, Head, Shown } from '../parts/card.tsx'
import { List, Rows } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'
import { order } from './note.tsx'

const ORDERS = {
  retry: ['Retry', 'All deferred mail is retried now.'],
  hold: ['Hold', 'No mail goes to this destination until you release it.'],
  release: ['Release', 'Held mail is delivered again.'],
  drop: ['Drop', 'Pending mail for this destination bounces. This cannot be undone.'],
} as const

/** A handler that asks for a note and then gives the order for a destination. */
type Give = (name: keyof typeof ORDERS, domain: string) => () => void

/** The page. */
export function QueuePage() {
  const list = useGetList<Destination>('/queue', 'destinations')
  const accounts = useLoad<QueueAccounts>((signal) => call('GET', '/queue/accounts?limit=100', { signal }), [])
  const look = () => {
    list.reload()
    accounts.reload()
  }
  const give: Give = (name, domain) => () => {
    const [act, text] = ORDERS[name]
    order({
      title: `${act} what is for ${domain}`,
      text,
      act,
      isDanger: name === 'drop',
      send: async (body) => {
        const answer = await call<{ recipients: number }>('POST', `/queue/${name}`, { body: { domain, ...body } })
        say(`It concerned ${count(answer.recipients, 'recipient')}`)
        look()
      },
    })
  }
  return (
    <>
      <Head title="Queue" meta="Pending mail by destination and by account.">
        <Button icon="refresh" onPress={look}>
          Refresh
        </Button>
      </Head>
      <List
        label="Destinations"
        list={list}
        keyOf={({ domain }) => domain}
        columns={[
          { title: 'Domain', kind: 'grow', cell: ({ domain }) => <b class="name">{domain}</b> },
          { title: 'Waiting', kind: 'titled', cell: ({ waiting }) => <span class="num">{formatNumber(waiting)}</span> },
          {
            title: 'Deferred',
            kind: 'wide',
            cell: ({ deferred }) => <span class="num">{formatNumber(deferred)}</span>,
          },
          { title: 'Held', kind: 'wide', cell: ({ held }) => <span class="num">{formatNumber(held)}</span> },
          {
            title: 'Last answer',
            kind: 'clip',
            cell: ({ lastResponse }) => lastResponse !== null && <code>{lastResponse}</code>,
          },
          {
            title: 'Oldest',
            kind: 'wide',
            cell: ({ oldestAt }) => oldestAt !== null && <Time at={oldestAt} as="ago" />,
          },
          {
            title: 'Actions',
            kind: 'end',
            cell: (of) => <Orders of={of} give={give} />,
          },
        ]}
        empty={<Empty icon="check" title="Nothing waits" />}
      />
      <WaitingAccounts of={accounts} />
    </>
  )
}

/** The buttons of a destination. */
function Orders({ of: { domain, held }, give }: { of: Destination; give: Give }) {
  return (
    <span class="row-acts">
      <Button onPress={give('retry', domain)}>Retry</Button>
      <Button onPress={give(held > 0 ? 'release' : 'hold', domain)}>{held > 0 ? 'Release' : 'Hold'}</Button>
      <Button kind="danger" onPress={give('drop', domain)}>
        Drop
      </Button>
    </span>
  )
}

/** The accounts with the most pending recipients. */
function WaitingAccounts({ of }: { of: Loaded<QueueAccounts> }) {
  return (
    <Shown of={of} lines={3}>
      {({ accounts, isComplete }) => (
        <Card title="By account" side={isComplete ? null : 'The first 20,000 recipients'}>
          {accounts.length === 0 ? (
            <Empty icon="check" title="No account has pending mail" />
          ) : (
            <Rows
              label="Accounts"
              rows={accounts}
              keyOf={({ accountId }) => accountId}
              columns={[
                {
                  title: 'Account',
                  kind: 'grow',
                  cell: ({ accountId }) => (
                    <Link href={`/accounts/${accountId}`} class="row-link">
                      <code>{accountId}</code>
                    </Link>
                  ),
                },
                { title: 'Waiting', cell: ({ waiting }) => <span class="num">{formatNumber(waiting)}</span> },
                { title: 'Deferred', cell: ({ deferred }) => <span class="num">{formatNumber(deferred)}</span> },
                { title: 'Scheduled', cell: ({ scheduled }) => <span class="num">{formatNumber(scheduled)}</span> },
                { title: 'Oldest', kind: 'end', cell: ({ oldestAt }) => <Time at={oldestAt} as="ago" /> },
              ]}
            />
          )}
        </Card>
      )}
    </Shown>
  )
}
