/**
 * link - the purpose of a link, and its use. Its token is after `#`, so it is in no server's log, and it is used only
 * when the user presses a button, because programs open links in mail too.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Link } from '../../../../schemas/dashboard/link.ts'
import { ApiError, call } from '../api/call.ts'
import { Field, Form } from '../parts/form.tsx'
import { AuthFrame } from './doorway.tsx'
import { type SignInAnswer, useSecondStep } from './next-step.tsx'

const TITLES = {
  setup: 'Welcome',
  invitation: 'You are invited',
  'sign-in': 'Sign in',
  reset: 'Another password',
} as const

/** The page. */
export function LinkPage() {
  const [token, setToken] = useState(() => location.hash.slice(1))
  const [link, setLink] = useState<Link | null>(null)
  const [error, setError] = useState<ApiError | null>(null)
  useEffect(() => {
    // A new link pasted into the same tab changes nothing but the part after `#`.
    const change = () => {
      setLink(null)
      setError(null)
      setToken(location.hash.slice(1))
    }
    addEventListener('hashchange', change)
    return () => removeEventListener('hashchange', change)
  }, [])
  useEffect(() => {
    call<Link>('POST', '/links/read', { body: { token } }).then(setLink, (fault: unknown) => {
      if (!(fault instanceof ApiError)) throw fault
      setError(fault)
    })
  }, [token])
  if (error !== null) return <Void error={error} />
  return link === null ? (
    <AuthFrame title="One moment">{null}</AuthFrame>
  ) : (
    <Use key={token} token={token} link={link} />
  )
}

function Void({ error }: { error: ApiError }) {
  const isOver = error.status === 410 || error.code === 'invalid_request'
  return (
    <AuthFrame
      title={isOver ? 'This link no longer works' : 'The link could not be read'}
      text={isOver ? 'It is invalid, expired or already used. Each link works once.' : error.message}
    >
      <p>
        <a href="/dashboard/forgot">Send a new link</a>, or ask who sent it.
      </p>
    </AuthFrame>
  )
}

function textOf({ purpose, accountName, role, address }: Link): string {
  if (purpose === 'setup' && address === null)
    return 'This is the first start. You become the administrator of the first account.'
  if (purpose === 'invitation' || purpose === 'setup')
    return `${accountName} wants you as ${role === 'administrator' ? 'an administrator' : 'a member'}.`
  return purpose === 'reset' ? 'Choose a new password. Your other sessions end.' : 'Press the button to sign in.'
}

function Use({ token, link }: { token: string; link: Link }) {
  const [address, setAddress] = useState(link.address ?? '')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [step, goOn] = useSecondStep()
  if (step !== null) return step
  const asksAddress = link.address === null
  const asksName = link.needsPassword === 'choose' && link.purpose !== 'reset'
  const send = async () => {
    const body = {
      token,
      ...(asksAddress && { address }),
      ...(asksName && { name }),
      ...(link.needsPassword !== null && { password }),
    }
    const answer = await call<SignInAnswer>('POST', '/links/consume', { body })
    history.replaceState(null, '', location.pathname)
    await goOn(answer)
  }
  return (
    <AuthFrame title={TITLES[link.purpose]} text={textOf(link)}>
      <Form act={link.purpose === 'reset' ? 'Set password' : 'Continue'} onSend={send}>
        {asksAddress ? (
          <Field
            name="address"
            label="Your address"
            type="email"
            autocomplete="username"
            value={address}
            onChange={setAddress}
            autofocus
          />
        ) : (
          <p class="dim">{link.address}</p>
        )}
        {asksName && <Field name="name" label="Your name" autocomplete="name" value={name} onChange={setName} />}
        {link.needsPassword !== null && (
          <Field
            name="password"
            label={link.needsPassword === 'choose' ? 'New password' : 'Your password'}
            type="password"
            autocomplete={link.needsPassword === 'choose' ? 'new-password' : 'current-password'}
            value={password}
            onChange={setPassword}
            hint={
              link.needsPassword === 'choose'
                ? '12 to 128 characters. A few words are better than one word with symbols.'
                : undefined
            }
          />
        )}
      </Form>
    </AuthFrame>
  )
}
