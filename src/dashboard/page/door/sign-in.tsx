/** sign-in - an address and its password */
import { useState } from 'preact/hooks'
import type { SignedIn } from '../../../../schemas/dashboard/session.ts'
import { call } from '../api/call.ts'
import { Field, Form } from '../parts/form.tsx'
import { Doorway, goIn } from './doorway.tsx'

/** The page. */
export function SignInPage() {
  const [address, setAddress] = useState('')
  const [password, setPassword] = useState('')
  const send = async () => {
    await call<SignedIn>('POST', '/session', { body: { address, password } })
    goIn()
  }
  return (
    <Doorway title="Sign in">
      <Form act="Sign in" onSend={send} side={<a href="/dashboard/forgot">No password at hand?</a>}>
        <Field
          name="address"
          label="Address"
          type="email"
          autocomplete="username"
          value={address}
          onChange={setAddress}
          autofocus
        />
        <Field
          name="password"
          label="Password"
          type="password"
          autocomplete="current-password"
          value={password}
          onChange={setPassword}
        />
      </Form>
    </Doorway>
  )
}
