/** queue - pending mail by destination, and the orders about it */
import type { Destination } from '../../../../schemas/operator/queue.ts'
import { call } from '../api/call.ts'
import { useGetList } from '../api/lists.ts'
import { count, formatNumber } from '../api/words.ts'
import { Button } from '../parts/button.tsx'
import { Empty, Head } from '../parts/card.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'
import { say } from '../parts/toast.tsx'
import { order } from './note.tsx'

const ORDERS = {
  retry: ['Retry', 'All deferred mail is retried now.'],
  hold: ['Hold', 'No mail goes to this destination until you release it.'],
  release: ['Release', 'Held mail is delivered again.'],
  drop: ['Drop', 'Pending mail for this destination bounces. This cannot be undone.'],
} as const

/** The page. */
export function QueuePage() {
  const list = useGetList<Destination>('/queue', 'destinations')
  const give = (name: keyof typeof ORDERS, domain: string) => () => {
    const [act, text] = ORDERS[name]
    order({
      title: `${act} what is for ${domain}`,
      text,
      act,
      isDanger: name === 'drop',
      send: async (body) => {
        const answer = await call<{ recipients: number }>('POST', `/queue/${name}`, { body: { domain, ...body } })
        say(`It concerned ${count(answer.recipients, 'recipient')}`)
        list.reload()
      },
    })
  }
  return (
    <>
      <Head title="Queue" meta="Pending mail by destination.">
        <Button icon="refresh" onPress={list.reload}>
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
            cell: ({ domain, held }) => (
              <span class="row-acts">
                <Button onPress={give('retry', domain)}>Retry</Button>
                <Button onPress={give(held > 0 ? 'release' : 'hold', domain)}>{held > 0 ? 'Release' : 'Hold'}</Button>
                <Button kind="danger" onPress={give('drop', domain)}>
                  Drop
                </Button>
              </span>
            ),
          },
        ]}
        empty={<Empty icon="check" title="Nothing waits" />}
      />
    </>
  )
}
