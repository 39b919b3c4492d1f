/** me - the user's own settings: name, password, second factors, signed-in browsers, theme */
import { useState } from 'preact/hooks'
import type { Me, SessionList } from '../../../../../schemas/dashboard/me.ts'
import { call } from '../../api/call.ts'
import { type Loaded, useLoad } from '../../api/load.ts'
import { openSession, session } from '../../api/session.ts'
import { usePlace } from '../../browser/crumbs.ts'
import { chooseTheme, readTheme, type Theme } from '../../browser/theme.ts'
import { Button, Segments } from '../../parts/button.tsx'
import { Card, Head, Shown } from '../../parts/card.tsx'
import { Field, Form } from '../../parts/form.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'
import { Factors } from './factors.tsx'

/** The page. */
export function MePage() {
  usePlace({ word: 'You' })
  const me = useLoad<Me>((signal) => call('GET', '/me', { signal }), [])
  return (
    <Shown of={me} lines={8}>
      {(shown) => (
        <>
          <Head title={shown.name} meta={shown.address} />
          {session.value?.needsFactor && (
            <p class="note" role="status">
              {session.value.account.name} takes a second factor of everybody. Set one up below to go on.
            </p>
          )}
          <div class="columns even">
            <div class="stack">
              <Name me={shown} onChange={me.set} />
              <Password me={shown} onChange={me.reload} />
            </div>
            <div class="stack">
              <Factors me={shown} onChange={me.reload} />
              <Look />
            </div>
          </div>
          <Sessions />
        </>
      )}
    </Shown>
  )
}

function Name({ me, onChange }: { me: Me; onChange: (me: Me) => void }) {
  const [name, setName] = useState(me.name)
  const send = async () => {
    onChange(await call<Me>('PATCH', '/me', { body: { name } }))
    await openSession()
    say('Saved')
  }
  return (
    <Card title="Name">
      <div class="inset">
        <Form act="Save" onSend={send}>
          <Field name="name" label="Name" autocomplete="name" value={name} onChange={setName} />
        </Form>
      </div>
    </Card>
  )
}

function Password({ me, onChange }: { me: Me; onChange: () => void }) {
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const send = async () => {
    await call('POST', '/me/password', { body: { current, password } })
    setCurrent('')
    setPassword('')
    say('Password changed. Your other sessions have ended')
    onChange()
  }
  return (
    <Card title="Password">
      <div class="inset">
        <Form act={me.hasPassword ? 'Change password' : 'Set password'} onSend={send}>
          {me.hasPassword && (
            <Field
              name="current"
              label="Current password"
              type="password"
              autocomplete="current-password"
              value={current}
              onChange={setCurrent}
            />
          )}
          <Field
            name="password"
            label="New password"
            type="password"
            autocomplete="new-password"
            value={password}
            onChange={setPassword}
            hint="12 to 128 characters."
          />
        </Form>
      </div>
    </Card>
  )
}

function Look() {
  const [theme, setTheme] = useState<Theme>(readTheme())
  const choose = (next: Theme) => {
    chooseTheme(next)
    setTheme(next)
  }
  return (
    <Card title="Look">
      <div class="inset">
        <Segments
          label="Theme"
          options={[
            ['system', 'System'],
            ['light', 'Light'],
            ['dark', 'Dark'],
          ]}
          value={theme}
          onChange={choose}
        />
      </div>
    </Card>
  )
}

function Sessions() {
  const list = useLoad<SessionList>((signal) => call('GET', '/me/sessions', { signal }), [])
  return (
    <Card title="Signed in">
      <Shown of={list}>{({ sessions }) => <SessionRows sessions={sessions} onChange={list} />}</Shown>
    </Card>
  )
}

function SessionRows({ sessions, onChange }: { sessions: SessionList['sessions']; onChange: Loaded<SessionList> }) {
  const end = async (sessionId: string) => {
    await call('DELETE', `/me/sessions/${sessionId}`)
    onChange.reload()
  }
  return (
    <ul class="needs">
      {sessions.map(({ sessionId, userAgent, accountName, lastSeenAt, current }) => (
        <li key={sessionId}>
          <div>
            <b>
              {describeBrowser(userAgent)} {current && <span class="tag">This one</span>}
            </b>
            <p>
              {accountName === null ? '' : `${accountName}, `}
              used <Time at={lastSeenAt} as="ago" />
            </p>
          </div>
          {!current && <Button onPress={() => end(sessionId)}>End it</Button>}
        </li>
      ))}
    </ul>
  )
}

/** A browser and its system, from its user agent. */
function describeBrowser(userAgent: string): string {
  const browser = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari'].find((one) => userAgent.includes(one))
  const system = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS', 'Linux'].find((one) => userAgent.includes(one))
  const names: Readonly<Record<string, string>> = { Edg: 'Edge', OPR: 'Opera' }
  if (browser === undefined) return userAgent === '' ? 'A browser' : userAgent
  return `${names[browser] ?? browser}${system === undefined ? '' : ` on ${system}`}`
}
