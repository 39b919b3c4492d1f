/** forgot - a link by mail: to sign in, or to choose another password */
import { useState } from 'preact/hooks'
import { call } from '../api/call.ts'
import { Field, Form, Select } from '../parts/form.tsx'
import { AuthFrame } from './doorway.tsx'

/** The page. */
export function ForgotPage() {
  const [address, setAddress] = useState('')
  const [purpose, setPurpose] = useState('sign-in')
  const [isSent, setSent] = useState(false)
  if (isSent)
    return (
      <AuthFrame
        title="Check your mail"
        text={`If ${address} belongs to a user, a link is on its way. It works once, within 30 minutes.`}
      >
        <a href="/dashboard/sign-in">Back to signing in</a>
      </AuthFrame>
    )
  const send = async () => {
    await call('POST', '/links', { body: { address, purpose } })
    setSent(true)
  }
  return (
    <AuthFrame title="Get a link by mail" text="Not receiving our email? Ask your operator for a sign-in link.">
      <Form act="Send it" onSend={send} side={<a href="/dashboard/sign-in">Back</a>}>
        <Field
          name="address"
          label="Address"
          type="email"
          autocomplete="username"
          value={address}
          onChange={setAddress}
          autofocus
        />
        <Select
          label="What for"
          value={purpose}
          onChange={setPurpose}
          options={[
            ['sign-in', 'To sign in this once'],
            ['reset', 'To choose a new password'],
          ]}
        />
      </Form>
    </AuthFrame>
  )
}
