/** audit - the log of members' actions for 13 months: writes, sign-ins, refused tries, reads of content */
import type { Act } from '../../../../schemas/dashboard/account.ts'
import { useGetList } from '../api/lists.ts'
import { usePlace } from '../browser/crumbs.ts'
import { Empty, Head } from '../parts/card.tsx'
import { CopyValue } from '../parts/copy.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

/** The page. */
export function AuditPage() {
  usePlace({ word: 'Activity' })
  const list = useGetList<Act>('/audit', 'acts')
  return (
    <>
      <Head title="Activity" meta="Actions taken in the dashboard. API calls are listed under Requests." />
      <List
        label="Activity"
        list={list}
        keyOf={({ auditId }) => auditId}
        columns={[
          { title: 'What', kind: 'grow', cell: ({ act }) => <b class="name">{sentenceOf(act)}</b> },
          { title: 'Who', kind: 'clip', cell: ({ userName }) => userName ?? <span class="dim">somebody unknown</span> },
          { title: 'With', kind: 'wide', cell: ({ targets }) => <Targets targets={targets} /> },
          { title: 'Time', kind: 'end', cell: ({ at }) => <Time at={at} /> },
        ]}
        empty={<Empty icon="activity" title="Nothing yet" />}
      />
    </>
  )
}

/** Names of routes are in one word: `createServerToken` reads as a sentence. */
function sentenceOf(act: string): string {
  const words = act.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function Targets({ targets }: Pick<Act, 'targets'>) {
  const [first] = Object.entries(targets)
  if (first === undefined) return null
  const [name, value] = first
  return <CopyValue value={value} shown={`${name} ${value.slice(0, 8)}…`} label={name} />
}
