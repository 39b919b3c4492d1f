/** account - the account's status, limits and cap, its keys, and rules for all members */
import { useState } from 'preact/hooks'
import type { Account } from '../../../../schemas/account.ts'
import { call } from '../api/call.ts'
import { useLoad } from '../api/load.ts'
import { may, openSession, session } from '../api/session.ts'
import { formatNumber } from '../api/words.ts'
import { usePlace } from '../browser/crumbs.ts'
import { Card, Head, Shown } from '../parts/card.tsx'
import { StatusChip } from '../parts/chip.tsx'
import { Field, Form, Tick } from '../parts/form.tsx'
import { Limits } from '../parts/limits.tsx'
import { RetentionForm } from '../parts/retention.tsx'
import { say } from '../parts/toast.tsx'
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
          {shown.status === 'pending' && <Application />}
          <div class="columns even">
            <Card title="Limits">
              <Limits limits={shown.limits} />
              {isAdministrator && shown.status !== 'closed' && <Cap account={shown} onChange={account.set} />}
            </Card>
            {isAdministrator && <Settings account={shown} onChange={account.set} />}
            {isAdministrator && shown.status !== 'closed' && (
              <Card title="Retention">
                <div class="inset">
                  <RetentionForm path="/account" />
                </div>
              </Card>
            )}
          </div>
          {isAdministrator && (
            <KeyList
              base="/account/tokens"
              title="Account keys"
              about="They manage servers, keys and domains, and cannot send. At most two can be active."
              mayChange
            />
          )}
        </>
      )}
    </Shown>
  )
}

interface ChangeProps {
  readonly account: Account
  readonly onChange: (account: Account) => void
}

function Cap({ account, onChange }: ChangeProps) {
  const [cap, setCap] = useState(String(account.monthlyCap))
  const highest = account.highestCap ?? account.approvedCap * 10
  const send = async () => {
    onChange(await call<Account>('PATCH', '/account', { body: { monthlyCap: Number(cap) } }))
    say(`The cap is ${formatNumber(Number(cap))} now`)
  }
  return (
    <div class="inset lined">
      <Form act="Set the cap" onSend={send}>
        <Field
          name="monthlyCap"
          label="Emails a month"
          type="number"
          inputMode="numeric"
          value={cap}
          onChange={setCap}
          hint={`Up to ${formatNumber(highest)}. Mail above the cap is refused.`}
        />
      </Form>
    </div>
  )
}

function Settings({ account, onChange }: ChangeProps) {
  const known = session.value?.account
  const [name, setName] = useState(account.name)
  const [requireSecondFactor, setRequired] = useState(known?.requireSecondFactor ?? false)
  const [hideContent, setHidden] = useState(known?.hideContent ?? false)
  const send = async () => {
    onChange(await call<Account>('PATCH', '/account', { body: { name, requireSecondFactor, hideContent } }))
    await openSession()
    say('Saved')
  }
  return (
    <Card title="Settings">
      <div class="inset">
        <Form act="Save" onSend={send}>
          <Field name="name" label="Name" value={name} onChange={setName} />
          <Tick
            label="Require a second factor"
            checked={requireSecondFactor}
            onChange={setRequired}
            hint="Members without a second factor set one up at their next sign-in. You need one yourself."
          />
          <Tick
            label="Hide content"
            checked={hideContent}
            onChange={setHidden}
            hint="No role can read the text and HTML of live mail here."
          />
        </Form>
      </div>
    </Card>
  )
}

function Application() {
  const applied = session.value?.account.application ?? null
  const [volume, setVolume] = useState(String(applied?.monthlyVolume ?? 10_000))
  const [purpose, setPurpose] = useState(applied?.purpose ?? '')
  const [website, setWebsite] = useState(applied?.website ?? '')
  const send = async () => {
    const body = { monthlyVolume: Number(volume), purpose, website: website === '' ? null : website }
    await call('POST', '/account/application', { body })
    await openSession()
    say('The operator of the service sees it')
  }
  if (!may('administer')) return null
  return (
    <Card title={applied === null ? 'Ask to be approved' : 'Your application'}>
      <div class="inset">
        <Form act={applied === null ? 'Send it' : 'Send again'} onSend={send}>
          <Field name="monthlyVolume" label="Emails a month" type="number" value={volume} onChange={setVolume} />
          <Field name="purpose" label="What for" lines={3} value={purpose} onChange={setPurpose} />
          <Field name="website" label="Website" type="url" value={website} onChange={setWebsite} />
        </Form>
      </div>
    </Card>
  )
}
