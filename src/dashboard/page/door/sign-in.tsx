/** sign-in - an address and its password, and where there is one the second factor */
import { useState } from 'preact/hooks'
import type { SecondFactor, SignedIn } from '../../../../schemas/dashboard/session.ts'
import { call } from '../api/call.ts'
import { Field, Form } from '../parts/form.tsx'
import { Doorway, goIn } from './doorway.tsx'

/** The page. */
export function SignInPage() {
  const [address, setAddress] = useState('')
  const [password, setPassword] = useState('')
  const [factor, setFactor] = useState<SecondFactor | null>(null)
  if (factor !== null) return <SecondFactorPage factor={factor} />
  const send = async () => {
    const answer = await call<SignedIn | SecondFactor>('POST', '/session', { body: { address, password } })
    if ('secondFactor' in answer) setFactor(answer)
    else goIn()
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

/** The step after a password, where the user has a second factor. */
export function SecondFactorPage({ factor }: { factor: SecondFactor }) {
  const [code, setCode] = useState('')
  const { challenge } = factor
  const send = async () => {
    await call('POST', '/session/code', { body: { challenge, code: code.trim() } })
    goIn()
  }
  return (
    <Doorway
      title="One more step"
      text="Your password was right. Enter the code of your authenticator, or one of your recovery codes."
    >
      <Form act="Go on" onSend={send}>
        <Field
          name="code"
          label="Code"
          inputMode="numeric"
          autocomplete="one-time-code"
          value={code}
          onChange={setCode}
          autofocus
        />
      </Form>
    </Doorway>
  )
}
