/** confirm - the dialog for actions that outlive a session: password, code or passkey */
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { call, gates } from '../api/call.ts'
import { session } from '../api/session.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/form.tsx'

const asked = signal<((isConfirmed: boolean) => void) | null>(null)

gates.confirm = () =>
  new Promise((resolve) => {
    asked.value = resolve
  })

/** Where it is asked; once on a page. */
export function Confirmation() {
  const answer = asked.value
  if (answer === null) return null
  const end = (isConfirmed: boolean) => {
    asked.value = null
    answer(isConfirmed)
  }
  return <Asked onEnd={end} />
}

function Asked({ onEnd }: { onEnd: (isConfirmed: boolean) => void }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const factors = session.value?.factors ?? []
  // With a factor, changing factors requires more than the password; other actions accept a code as well.
  const [takesCode, setTakesCode] = useState(factors.length > 0)
  const confirm = async (body: object) => {
    await call('POST', '/session/confirm', { body })
    onEnd(true)
  }
  const send = () => confirm(takesCode ? { code: code.trim() } : { password })
  const showPasskey = async () => {
    const { confirmByPasskey } = await import('../api/passkey.ts')
    await confirm(await confirmByPasskey())
  }
  const others = factors.length > 0 && (
    <>
      <Button onPress={() => setTakesCode(!takesCode)}>{takesCode ? 'Use the password' : 'Use a code'}</Button>
      {factors.includes('passkey') && (
        <Button icon="passkey" onPress={showPasskey}>
          Passkey
        </Button>
      )}
    </>
  )
  return (
    <Dialog title="Confirm that it is you" onClose={() => onEnd(false)}>
      <p class="dialog-text">This action has lasting effects. You confirm once in 15 minutes.</p>
      <Form act="Confirm" onSend={send} side={others}>
        {takesCode ? (
          <Field
            key="code"
            name="code"
            label="Code"
            autocomplete="one-time-code"
            value={code}
            onChange={setCode}
            hint="Of your authenticator, or a recovery code."
            autofocus
          />
        ) : (
          <Field
            key="password"
            name="password"
            label="Password"
            type="password"
            autocomplete="current-password"
            value={password}
            onChange={setPassword}
            autofocus
          />
        )}
      </Form>
    </Dialog>
  )
}
