/** desk-audit - operators' actions with their notes */
import type { AuditEntry } from '../../../../schemas/operator/audit.ts'
import { useGetList } from '../api/lists.ts'
import { wordsOfName } from '../api/words.ts'
import { Empty, Head } from '../parts/card.tsx'
import { TargetId } from '../parts/copy.tsx'
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
          { title: 'What', kind: 'clip', cell: ({ act }) => <b class="name">{wordsOfName(act)}</b> },
          { title: 'Note', kind: 'grow', cell: ({ note }) => note ?? <span class="dim">none</span> },
          { title: 'By', cell: ({ actorName, actor }) => actorName ?? (actor === null ? 'no key' : actor.slice(0, 8)) },
          { title: 'Of', kind: 'wide', cell: ({ targets }) => <TargetId targets={targets} /> },
          { title: 'Time', kind: 'end', cell: ({ at }) => <Time at={at} /> },
        ]}
        empty={<Empty icon="text" title="No actions yet" />}
      />
    </>
  )
}
