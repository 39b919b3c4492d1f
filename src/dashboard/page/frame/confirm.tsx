/** confirm - what makes something that outlives a session is asked for once more: the password */
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { call, gates } from '../api/call.ts'
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
  const send = async () => {
    await call('POST', '/session/confirm', { body: { password } })
    onEnd(true)
  }
  return (
    <Dialog title="Confirm that it is you" onClose={() => onEnd(false)}>
      <p class="dialog-text">
        This makes or ends something that outlives your session. It is asked for once in 15 minutes.
      </p>
      <Form act="Confirm" onSend={send}>
        <Field
          name="password"
          label="Password"
          type="password"
          autocomplete="current-password"
          value={password}
          onChange={setPassword}
          autofocus
        />
      </Form>
    </Dialog>
  )
}
