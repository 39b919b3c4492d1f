/** second-step - the step after a password: a code of an authenticator, a recovery code, a passkey */
import { useState } from 'preact/hooks'
import type { SecondFactor, SignedIn } from '../../../../schemas/dashboard/session.ts'
import { call } from '../api/call.ts'
import { signInByPasskey } from '../api/passkey.ts'
import { Field, Form } from '../parts/form.tsx'
import { AuthFrame, goIn } from './doorway.tsx'

/** The page. */
export function SecondStepPage({ factor }: { factor: SecondFactor }) {
  const { challenge, secondFactor } = factor
  const [code, setCode] = useState('')
  const hasPasskey = secondFactor.includes('passkey')
  const hasTotp = secondFactor.includes('totp')
  const sendCode = async () =>
    goIn(await call<SignedIn>('POST', '/session/code', { body: { challenge, code: code.trim() } }))
  const showPasskey = async () => goIn(await signInByPasskey(challenge))
  return (
    <AuthFrame title="One more step" text={textOf(hasTotp, hasPasskey)}>
      {hasPasskey && (
        <Form act="Use a passkey" onSend={showPasskey} label="Passkey">
          {null}
        </Form>
      )}
      <Form act="Go on" onSend={sendCode} side={<a href="/dashboard/sign-in">Back</a>}>
        <Field
          name="code"
          label={hasTotp ? 'Code' : 'Recovery code'}
          autocomplete="one-time-code"
          value={code}
          onChange={setCode}
          hint="If you lost everything, ask the operator of the service for a link."
          autofocus
        />
      </Form>
    </AuthFrame>
  )
}

function textOf(hasTotp: boolean, hasPasskey: boolean): string {
  if (!hasTotp) return 'Use your passkey, or enter one of your recovery codes.'
  const first = hasPasskey ? 'Use your passkey, or enter' : 'Enter'
  return `${first} the code of your authenticator, or one of your recovery codes.`
}
