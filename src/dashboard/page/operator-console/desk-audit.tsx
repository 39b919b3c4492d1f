/** desk-audit - operators' actions with their notes */
import type { AuditEntry } from '../../../../schemas/operator/audit.ts'
import { useGetList } from '../api/lists.ts'
import { Empty, Head } from '../parts/card.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

/** The page. */
export function DeskAuditPage() {
  const list = useGetList<AuditEntry>('/audit', 'entries')
  return (
    <>
      <Head title="Audit" meta="Every write of an operator." />
      <List
        label="Audit"
        list={list}
        keyOf={({ auditId }) => auditId}
        columns={[
          { title: 'What', kind: 'clip', cell: ({ act }) => <b class="name">{act}</b> },
          { title: 'Note', kind: 'grow', cell: ({ note }) => note ?? <span class="dim">none</span> },
          { title: 'Of', kind: 'wide', cell: ({ targets }) => <code>{Object.values(targets)[0]?.slice(0, 13)}</code> },
          { title: 'Time', kind: 'end', cell: ({ at }) => <Time at={at} /> },
        ]}
        empty={<Empty icon="text" title="No actions yet" />}
      />
    </>
  )
}
