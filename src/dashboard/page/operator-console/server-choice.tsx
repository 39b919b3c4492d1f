/** server-choice - a server of any account, chosen by its name, or entered as an id */

import { useState } from 'preact/hooks'
import type { Account } from '../../../../schemas/account.ts'
import type { Server } from '../../../../schemas/server.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { Field, Select } from '../parts/form.tsx'

interface ServerChoiceProps {
  readonly serverId: string
  readonly onChange: (serverId: string) => void
}

/** Two menus over the field of the id: the first 100 accounts, and the servers of the chosen one. */
export function ServerChoice({ serverId, onChange }: ServerChoiceProps) {
  const [accountId, setAccountId] = useState('')
  const accounts = useLoad<{ accounts: Account[] }>((signal) => call('GET', '/accounts?limit=100', { signal }), [])
  const servers = useLoad<{ servers: Server[] }>(
    accountId === '' ? null : (signal) => call('GET', `/accounts/${accountId}/servers?limit=100`, { signal }),
    [accountId],
  )
  const known = accountId === '' ? [] : (servers.value?.servers ?? [])
  return (
    <>
      <Select
        label="Account"
        value={accountId}
        onChange={setAccountId}
        options={[
          ['', 'Choose an account'],
          ...(accounts.value?.accounts ?? []).map((one) => [one.accountId, one.name] as const),
        ]}
      />
      {known.length > 0 && (
        <Select
          label="Server"
          value={known.some((one) => one.serverId === serverId) ? serverId : ''}
          onChange={onChange}
          options={[
            ['', 'Choose a server'],
            ...known.map((one) => [one.serverId, `${one.name} (${one.mode})`] as const),
          ]}
        />
      )}
      <Field name="serverId" label="Server id" value={serverId} onChange={onChange} mono />
    </>
  )
}
