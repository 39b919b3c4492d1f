/** accounts - all accounts, those first that wait to be approved */
import { Link } from 'wouter-preact'
import type { Account } from '../../../../schemas/account.ts'
import { useGetList } from '../api/lists.ts'
import { formatNumber } from '../api/words.ts'
import { Card, Empty, Head } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { List } from '../parts/list.tsx'
import { RetentionForm } from '../parts/retention.tsx'
import { Time } from '../parts/time.tsx'

/** The page. */
export function AccountsPage() {
  const list = useGetList<Account>('/accounts', 'accounts')
  const waits = ({ status }: Account) => (status === 'pending' ? 0 : 1)
  const sorted = list.value === null ? null : [...list.value.rows].sort((one, other) => waits(one) - waits(other))
  return (
    <>
      <Head title="Accounts" meta="Accounts waiting for approval come first." />
      <List
        label="Accounts"
        list={sorted === null || list.value === null ? list : { ...list, value: { ...list.value, rows: sorted } }}
        keyOf={({ accountId }) => accountId}
        columns={[
          { title: 'Status', cell: ({ status }) => <StatusChip status={status} /> },
          {
            title: 'Name',
            kind: 'grow',
            cell: ({ name, accountId }) => (
              <Link href={`/accounts/${accountId}`} class="row-link">
                {name}
              </Link>
            ),
          },
          { title: 'Cap', kind: 'wide', cell: ({ monthlyCap }) => <span class="num">{formatNumber(monthlyCap)}</span> },
          { title: 'Created', kind: 'end', cell: ({ createdAt }) => <Time at={createdAt} /> },
        ]}
        empty={<Empty icon="people" title="No account yet" />}
      />
      <Card title="Retention of all accounts">
        <div class="inset">
          <RetentionForm path="" />
        </div>
      </Card>
    </>
  )
}
