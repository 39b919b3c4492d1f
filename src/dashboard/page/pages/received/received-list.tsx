/** received-list - received mail, newest first, with the authentication of its sender */
import { Link } from 'wouter-preact'
import type { ReceivedSummary } from '../../../../../schemas/inbound.ts'
import { useSearchList } from '../../api/lists.ts'
import { serverApi, serverPath } from '../../api/place.ts'
import { findServer } from '../../api/session.ts'
import { usePlace } from '../../browser/crumbs.ts'
import { useKeptFilters } from '../../browser/filters-kept.ts'
import type { PageProps } from '../../browser/page-props.ts'
import { LinkButton } from '../../parts/button.tsx'
import { Empty, Head } from '../../parts/card.tsx'
import { Chip } from '../../parts/chip.tsx'
import { Filters } from '../../parts/filters.tsx'
import { List } from '../../parts/list.tsx'
import { Time } from '../../parts/time.tsx'
import { DmarcChip } from './verdicts.tsx'

/** Replaces data hidden in a list: it is shown on the message's own page, or has expired. */
function Unknown({ mail: { contentAvailable } }: { mail: ReceivedSummary }) {
  return <span class="dim">{contentAvailable ? 'Hidden until you open it' : 'No longer kept'}</span>
}

/** The page. */
export function ReceivedPage({ serverId }: PageProps) {
  usePlace({ word: 'Received' })
  const [filters, change] = useKeptFilters([])
  const list = useSearchList<ReceivedSummary>(serverApi(serverId, '/inbound/search'), 'messages', filters)
  const isTest = findServer(serverId)?.mode === 'test'
  return (
    <>
      <Head title="Received" meta="Mail to the addresses of an inbound stream." />
      <Filters
        fields={[
          { name: 'from', label: 'From', hint: 'ada@example.org', kind: 'address' },
          { name: 'recipient', label: 'To', hint: 'support@example.com', kind: 'address' },
          { name: 'mailboxHash', label: 'Plus tag', hint: 'ticket-17' },
        ]}
        values={filters}
        onChange={change}
      />
      <List
        label="Received mail"
        list={list}
        keyOf={({ inboundMessageId }) => inboundMessageId}
        columns={[
          { title: 'DMARC', cell: ({ authentication }) => <DmarcChip verdict={authentication.dmarc} /> },
          { title: 'From', kind: 'clip', cell: (mail) => mail.from?.address ?? <Unknown mail={mail} /> },
          {
            title: 'Subject',
            kind: 'grow',
            cell: (mail) => (
              <Link href={serverPath(serverId, 'received', mail.inboundMessageId)} class="row-link">
                {mail.subject === null ? <Unknown mail={mail} /> : <bdi>{mail.subject}</bdi>}
              </Link>
            ),
          },
          {
            title: 'To',
            kind: 'wide',
            cell: ({ mailboxHash }) => mailboxHash !== null && <span class="tag">+{mailboxHash}</span>,
          },
          {
            title: 'Issue',
            kind: 'wide',
            cell: ({ parseIssue }) =>
              parseIssue !== null && (
                <Chip tone="deferred" icon="alert">
                  {parseIssue}
                </Chip>
              ),
          },
          { title: 'Time', kind: 'end', cell: ({ receivedAt }) => <Time at={receivedAt} /> },
        ]}
        empty={
          <Empty icon="inbox" title="No mail received yet">
            <p>
              {isTest
                ? 'A test server receives no mail.'
                : 'Each inbound stream has its own address. Mail to that address appears here.'}
            </p>
            {!isTest && <LinkButton href={serverPath(serverId, 'streams')}>See streams</LinkButton>}
          </Empty>
        }
      />
    </>
  )
}
