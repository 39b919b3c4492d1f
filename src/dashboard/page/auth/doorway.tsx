/** doorway - the frame of the pages before a session, and the redirect after signing in */
import type { ComponentChildren } from 'preact'
import type { SignedIn } from '../../../../schemas/dashboard/session.ts'
import { tellEntered } from '../api/entered.ts'
import { Logo } from '../parts/logo.tsx'

interface AuthFrameProps {
  readonly title: string
  readonly text?: string
  readonly children: ComponentChildren
}

/** The frame of these pages. */
export function AuthFrame({ title, text, children }: AuthFrameProps) {
  document.title = `${title} · Sendwright`
  return (
    <main class="door">
      <div class="brand">
        <Logo size={22} />
        Sendwright
      </div>
      <section class="card">
        <h1>{title}</h1>
        {text !== undefined && <p class="dialog-text">{text}</p>}
        {children}
      </section>
    </main>
  )
}

/** Goes to the page requested before signing in, and notifies the other tabs of the session. */
export function goIn(session: SignedIn): void {
  tellEntered(session)
  const next = sessionStorage.getItem('next')
  sessionStorage.removeItem('next')
  location.replace(next !== null && /^\/dashboard(?:\/(?!\/)|$)/.test(next) ? next : '/dashboard')
}
