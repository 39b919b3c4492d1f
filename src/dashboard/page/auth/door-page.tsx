/** door-page - which of the pages before a session the path names */
import { ForgotPage } from './forgot.tsx'
import { LinkPage } from './link.tsx'
import { SignInPage } from './sign-in.tsx'

/** The door. */
export function AuthPages() {
  const path = location.pathname.replace(/\/$/, '')
  if (path.endsWith('/link')) return <LinkPage />
  if (path.endsWith('/forgot')) return <ForgotPage />
  return <SignInPage />
}
