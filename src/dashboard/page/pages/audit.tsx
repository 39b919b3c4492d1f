/** audit - the log of members' actions for 13 months: writes, sign-ins, refused tries, reads of content */
import type { Act } from '../../../../schemas/dashboard/account.ts'
import { useGetList } from '../api/lists.ts'
import { count, wordsOfName } from '../api/words.ts'
import { usePlace } from '../browser/crumbs.ts'
import { Empty, Head } from '../parts/card.tsx'
import { TargetId } from '../parts/copy.tsx'
import { ExportButton } from '../parts/export.tsx'
import { List } from '../parts/list.tsx'
import { Time } from '../parts/time.tsx'

/** The page. */
export function AuditPage() {
  usePlace({ word: 'Activity' })
  const list = useGetList<Act>('/audit', 'acts')
  return (
    <>
      <Head title="Activity" meta="Actions taken in the dashboard, and exports. API calls are listed under Requests.">
        <ExportButton path="/activity/export" />
      </Head>
      <List
        label="Activity"
        list={list}
        keyOf={({ auditId }) => auditId}
        columns={[
          { title: 'What', kind: 'grow', cell: ({ act }) => <b class="name">{wordsOfName(act)}</b> },
          { title: 'Who', kind: 'clip', cell: (act) => act.userName ?? <span class="dim">{actorOf(act)}</span> },
          { title: 'With', kind: 'wide', cell: ({ targets }) => <Targets targets={targets} /> },
          { title: 'Time', kind: 'end', cell: ({ at }) => <Time at={at} /> },
        ]}
        empty={<Empty icon="activity" title="Nothing yet" />}
      />
    </>
  )
}

/** An author without a name. */
function actorOf({ userId, targets }: Act): string {
  return userId === null && targets.tokenId !== undefined ? 'an API key' : 'unknown'
}

function Targets({ targets }: Pick<Act, 'targets'>) {
  if (targets.rows === undefined) return <TargetId targets={targets} />
  return <span class="dim">{`${count(Number(targets.rows), 'row')}, ${targets.result}`}</span>
}
