/** factors - a user's second factors: an authenticator, passkeys, and recovery codes */
import type { ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import type { Me, Passkey } from '../../../../../schemas/dashboard/me.ts'
import { call } from '../../api/call.ts'
import { readServers, readSession } from '../../api/session.ts'
import { Button } from '../../parts/button.tsx'
import { Card } from '../../parts/card.tsx'
import { ask } from '../../parts/dialog.tsx'
import { Time } from '../../parts/time.tsx'
import { say } from '../../parts/toast.tsx'
import type { FactorDialogProps } from './factor-dialogs.tsx'

interface FactorProps {
  readonly me: Me
  readonly onChange: () => void
}

type Shown = { readonly Dialog: ComponentType<FactorDialogProps>; readonly passkey: Passkey | null }

/** The card. Its dialogs, the picture for authenticators among them, come when they are opened. */
export function Factors({ me, onChange }: FactorProps) {
  const [shown, setShown] = useState<Shown | null>(null)
  const changed = async () => {
    await Promise.all([readSession(), readServers()])
    onChange()
  }
  const open = async (name: 'NewAuthenticator' | 'NewPasskey' | 'NewCodes' | 'OtherName', passkey?: Passkey) => {
    const dialogs = await import('./factor-dialogs.tsx')
    setShown({ Dialog: dialogs[name], passkey: passkey ?? null })
  }
  const close = () => {
    setShown(null)
    void changed()
  }
  const hasFactor = me.totp || me.passkeys.length > 0
  return (
    <Card title="Second factor">
      <ul class="needs">
        <Authenticator me={me} onChange={changed} onAdd={() => open('NewAuthenticator')} />
        {me.passkeys.map((passkey) => (
          <PasskeyRow
            key={passkey.passkeyId}
            passkey={passkey}
            onChange={changed}
            onRename={() => open('OtherName', passkey)}
          />
        ))}
        <li>
          <div>
            <b>{me.passkeys.length === 0 ? 'Passkeys' : 'Another passkey'}</b>
            <p>This device, a phone or a security key. A passkey signs you in without the password.</p>
          </div>
          <Button icon="passkey" onPress={() => open('NewPasskey')}>
            Add a passkey
          </Button>
        </li>
        {hasFactor && (
          <li>
            <div>
              <b>Recovery codes</b>
              <p>{me.recoveryCodesLeft} left. Each works once, for who has lost everything else.</p>
            </div>
            <Button onPress={() => open('NewCodes')}>New codes</Button>
          </li>
        )}
      </ul>
      {shown !== null && <shown.Dialog passkey={shown.passkey} onClose={close} />}
    </Card>
  )
}

function Authenticator({ me, onChange, onAdd }: FactorProps & { onAdd: () => unknown }) {
  const remove = async () => {
    const isMeant = await ask({
      title: 'Remove the authenticator?',
      text: 'Its codes stop working. Removing your last second factor also removes your recovery codes.',
      act: 'Remove it',
      isDanger: true,
    })
    if (!isMeant) return
    await call('DELETE', '/me/totp')
    say('Removed')
    onChange()
  }
  return (
    <li>
      <div>
        <b>Authenticator {me.totp && <span class="tag">On</span>}</b>
        <p>An app that shows a new six-digit code every 30 seconds.</p>
      </div>
      {me.totp ? <Button onPress={remove}>Remove authenticator</Button> : <Button onPress={onAdd}>Set up</Button>}
    </li>
  )
}

function PasskeyRow({
  passkey,
  onChange,
  onRename,
}: {
  passkey: Passkey
  onChange: () => unknown
  onRename: () => unknown
}) {
  const { passkeyId, name, createdAt, lastUsedAt } = passkey
  const remove = async () => {
    const isMeant = await ask({
      title: `Remove “${name}”?`,
      text: 'It can no longer sign you in. Remove it from your device or browser too.',
      act: 'Remove it',
      isDanger: true,
    })
    if (!isMeant) return
    await call('DELETE', `/me/passkeys/${passkeyId}`)
    say('Removed')
    onChange()
  }
  return (
    <li>
      <div>
        <b dir="auto">{name}</b>
        <p>
          Made <Time at={createdAt} />
          {lastUsedAt !== null && (
            <>
              , used <Time at={lastUsedAt} as="ago" />
            </>
          )}
        </p>
      </div>
      <span class="row-acts">
        <Button onPress={onRename}>Rename</Button>
        <Button onPress={remove}>Remove</Button>
      </span>
    </li>
  )
}
