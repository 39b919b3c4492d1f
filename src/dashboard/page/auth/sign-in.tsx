/** sign-in - an address and its password, or a passkey alone */
import { useState } from 'preact/hooks'
import { call } from '../api/call.ts'
import { Field, Form } from '../parts/form.tsx'
import { AuthFrame, goIn } from './doorway.tsx'
import { type SignInAnswer, useSecondStep } from './next-step.tsx'

/** The page. */
export function SignInPage() {
  const [address, setAddress] = useState('')
  const [password, setPassword] = useState('')
  const [step, goOn] = useSecondStep()
  if (step !== null) return step
  const send = async () => goOn(await call<SignInAnswer>('POST', '/session', { body: { address, password } }))
  const showPasskey = async () => {
    const { signInByPasskey } = await import('../api/passkey.ts')
    goIn(await signInByPasskey())
  }
  return (
    <AuthFrame title="Sign in">
      <Form act="Sign in" onSend={send} side={<a href="/dashboard/forgot">Forgot your password?</a>}>
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
      <Form act="Use a passkey" onSend={showPasskey} label="Passkey" isSecond>
        {null}
      </Form>
    </AuthFrame>
  )
}
