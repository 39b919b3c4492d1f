/** requests - recent API requests and their answers, found by Request-Id */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { RequestEntry } from '../../../../schemas/request-log.ts'
import { useSearchList } from '../api/lists.ts'
import { serverPath } from '../api/place.ts'
import { usePlace } from '../browser/crumbs.ts'
import { useKeptFilters } from '../browser/filters-kept.ts'
import { Empty, Head } from '../parts/card.tsx'
import { Chip } from '../parts/chip.tsx'
import { CopyValue } from '../parts/copy.tsx'
import { DefinitionList } from '../parts/definition-list.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Filters } from '../parts/filters.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

/** The page. */
export function RequestsPage() {
  usePlace({ word: 'Requests' })
  const [filters, change] = useKeptFilters(['result', 'error'])
  const [shown, show] = useState<RequestEntry | null>(null)
  const list = useSearchList<RequestEntry>('/requests/search', 'requests', filters)
  return (
    <>
      <Head
        title="Requests"
        meta="Refused requests are kept for 7 days, others for one. Bodies and addresses are not stored."
      />
      <Filters
        fields={[
          {
            name: 'result',
            label: 'Result',
            options: [
              ['refused', 'refused'],
              ['answered', 'answered'],
            ],
          },
          { name: 'error', label: 'Error', hint: 'domain_not_verified' },
        ]}
        values={filters}
        onChange={change}
      />
      <List
        label="Requests"
        list={list}
        keyOf={({ requestId }) => requestId}
        columns={[
          { title: 'Status', cell: ({ status }) => <HttpStatus status={status} /> },
          { title: 'Request', kind: 'grow', cell: (entry) => <Opened entry={entry} onOpen={show} /> },
          { title: 'Error', cell: ({ error }) => error !== null && <code>{error}</code> },
          { title: 'Key', kind: 'wide', cell: ({ prefix }) => <code class="dim">{prefix}</code> },
          { title: 'Time', kind: 'end', cell: ({ receivedAt }) => <Time at={receivedAt} /> },
        ]}
        empty={
          <Empty icon="requests" title="No request yet">
            <p>Requests of your application appear here after a second.</p>
          </Empty>
        }
      />
      {shown !== null && <RequestDialog entry={shown} onClose={() => show(null)} />}
    </>
  )
}

function Opened({ entry, onOpen }: { entry: RequestEntry; onOpen: (entry: RequestEntry) => void }) {
  return (
    <button type="button" class="row-link as-text" onClick={() => onOpen(entry)}>
      {entry.method} {entry.path ?? 'no such route'}
    </button>
  )
}

function HttpStatus({ status }: { status: number }) {
  const tone = status < 400 ? 'delivered' : status < 500 ? 'deferred' : 'bounced'
  return (
    <Chip tone={tone} icon={status < 400 ? 'check' : 'alert'}>
      {status}
    </Chip>
  )
}

function RequestDialog({ entry, onClose }: { entry: RequestEntry; onClose: () => void }) {
  const { requestId, receivedAt, method, path, status, error, issue, prefix, milliseconds, client, userAgent } = entry
  return (
    <Dialog title={`${method} ${path ?? ''}`} onClose={onClose} isWide>
      <DefinitionList
        of={[
          ['Request', <CopyValue value={requestId} label="the request id" key="id" />],
          ['Status', <HttpStatus status={status} key="status" />],
          ['Error', error === null ? null : <code key="error">{error}</code>],
          ['Field', issue === null ? null : <code key="issue">{issue === '' ? 'the whole body' : issue}</code>],
          ['Time', <Time at={receivedAt} as="long" key="time" />],
          ['Took', `${milliseconds} ms`],
          ['Key', <code key="key">{prefix}</code>],
          ['Client', client],
          ['Program', userAgent],
          [
            'Messages',
            entry.messageIds.length === 0 ? null : (
              <ul key="messages">
                {entry.messageIds.map((id) => (
                  <li key={id}>
                    {entry.serverId === null ? id : <Link href={serverPath(entry.serverId, 'messages', id)}>{id}</Link>}
                  </li>
                ))}
              </ul>
            ),
          ],
        ]}
      />
    </Dialog>
  )
}
