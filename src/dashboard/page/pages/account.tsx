/** account - the account's status, its limits and its keys */
import type { Account } from '../../../../schemas/account.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { may } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import { Card, Head, Shown } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { Limits } from '../parts/limits.tsx'
import { KeyList } from './keys.tsx'

/** The page. */
export function AccountPage() {
  usePlace({ word: 'Account' })
  const account = useLoad<Account>((signal) => call('GET', '/account', { signal }), [])
  const isAdministrator = may('administer')
  return (
    <Shown of={account} lines={8}>
      {(shown) => (
        <>
          <Head title={shown.name} meta={<StatusChip status={shown.status} />} />
          <div class="columns even">
            <Card title="Limits">
              <Limits limits={shown.limits} />
            </Card>
          </div>
          {isAdministrator && (
            <KeyList
              base="/account/tokens"
              title="Account keys"
              about="They manage servers, keys and domains, and never send. Two live at most."
              mayChange={false}
            />
          )}
        </>
      )}
    </Shown>
  )
}
