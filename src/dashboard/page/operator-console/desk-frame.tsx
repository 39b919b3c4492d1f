/**
 * desk-frame - the frame of the operator's pages, and opening them with a key or link
 *
 * Either opens a session, whose token is kept in sessionStorage and sent as Bearer, because a cookie would reach the
 * public listener's port too. Closing the tab removes it; the key itself is not stored.
 */
import type { ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import { Link, Redirect, Route, Router, Switch } from 'wouter-preact'
import { useHashLocation } from 'wouter-preact/use-hash-location'
import type { OperatorSession } from '../../../../schemas/operator/session.ts'
import { ApiError, call, gates } from '../api/call.ts'
import { noteLost } from '../api/connection.ts'
import { Button } from '../parts/button.tsx'
import { ConnectionLine } from '../parts/connection.tsx'
import { Questions } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/form.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { Logo } from '../parts/logo.tsx'
import { sayFault, Toasts } from '../parts/toast.tsx'
import { AccountAtDesk } from './account.tsx'
import { AccountsPage } from './accounts.tsx'
import { DeskAuditPage } from './desk-audit.tsx'
import { DeskSuppressionsPage } from './desk-suppressions.tsx'
import { HealthPage } from './health.tsx'
import { NoteDialog } from './note.tsx'
import { QueuePage } from './queue.tsx'
import { RecipientsPage } from './recipients.tsx'
import { ShardsPage } from './shards.tsx'
import { TailPage } from './tail.tsx'

const SESSION = 'operator-session'
const BASE = '/v1/operator'
const LINK = '#link='

const PAGES: readonly (readonly [path: string, word: string, icon: IconName, page: ComponentType])[] = [
  ['/health', 'Health', 'activity', HealthPage],
  ['/accounts', 'Accounts', 'people', AccountsPage],
  ['/queue', 'Queue', 'clock', QueuePage],
  ['/shards', 'Shards', 'server', ShardsPage],
  ['/suppressions', 'Suppressions', 'shield', DeskSuppressionsPage],
  ['/recipients', 'Recipients', 'search', RecipientsPage],
  ['/tail', 'Tail', 'requests', TailPage],
  ['/audit', 'Audit', 'text', DeskAuditPage],
]

/** The key while a session is opened with it. */
let key: string | null = null

/** The operator's console. */
export function OperatorConsole() {
  const [isOpen, setOpen] = useState(() => sessionStorage.getItem(SESSION) !== null)
  gates.base = BASE
  gates.lost = noteLost
  gates.probe = '/'
  gates.authorization = () => {
    const token = key ?? sessionStorage.getItem(SESSION)
    return token === null ? null : `Bearer ${token}`
  }
  gates.signedOut = () => {
    sessionStorage.removeItem(SESSION)
    setOpen(false)
  }
  // If the session is still active, the page stays, because the user must know.
  const leave = async () => {
    try {
      await call('DELETE', '/session')
      gates.signedOut()
    } catch (fault) {
      if (!(fault instanceof ApiError)) throw fault
      sayFault(fault)
    }
  }
  if (isOpen) return <Opened onLeave={leave} />
  return <Door onOpen={() => setOpen(true)} />
}

/** Keeps the session that a request has opened. */
async function open(path: string, body: object): Promise<void> {
  const { token } = await call<OperatorSession>('POST', path, { body })
  sessionStorage.setItem(SESSION, token)
}

function Door({ onOpen }: { onOpen: () => void }) {
  const [token, setToken] = useState(() => (location.hash.startsWith(LINK) ? location.hash.slice(LINK.length) : null))
  return (
    <main class="door desk">
      <div class="brand">
        <Logo size={22} />
        Sendwright, operator
      </div>
      <section class="card">
        <h1>Operator</h1>
        {token === null ? (
          <ByKey onOpen={onOpen} />
        ) : (
          <ByLink token={token} onOpen={onOpen} onKey={() => setToken(null)} />
        )}
      </section>
    </main>
  )
}

function ByLink({ token, onOpen, onKey }: { token: string; onOpen: () => void; onKey: () => void }) {
  const send = async () => {
    await open('/session/link', { token })
    history.replaceState(null, '', '#/health')
    onOpen()
  }
  return (
    <>
      <p class="dialog-text">This link works once and opens the console for 8 hours.</p>
      <Form act="Continue" onSend={send}>
        {null}
      </Form>
      <footer class="more">
        <Button onPress={onKey}>Continue with the key</Button>
      </footer>
    </>
  )
}

function ByKey({ onOpen }: { onOpen: () => void }) {
  const [typed, setTyped] = useState('')
  const send = async () => {
    key = typed.trim()
    try {
      await open('/session', {})
    } finally {
      key = null
    }
    onOpen()
  }
  return (
    <>
      <p class="dialog-text">
        The key is in first-run.json in the data directory. It opens this console for 8 hours, or until you close the
        tab.
      </p>
      <Form act="Continue" onSend={send}>
        <Field
          name="key"
          label="Operator key"
          type="password"
          placeholder="ok_…"
          value={typed}
          onChange={setTyped}
          mono
          autofocus
        />
      </Form>
    </>
  )
}

function Opened({ onLeave }: { onLeave: () => Promise<void> }) {
  const [path] = useHashLocation()
  return (
    <Router hook={useHashLocation}>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <div class="frame desk">
        <Side onLeave={onLeave} />
        <div class="body">
          <div class="bar">
            <button type="button" class="menu button bare icon" popoverTarget="side" aria-label="Menu">
              <Icon name="menu" size={18} />
            </button>
            <nav class="crumbs" aria-label="Place">
              <span>Operator</span>
              <span class="slash" aria-hidden="true">
                /
              </span>
              <span aria-current="page">{PAGES.find(([href]) => path.startsWith(href))?.[1]}</span>
            </nav>
          </div>
          <ConnectionLine />
          <main class="page" id="main" tabIndex={-1}>
            <Switch>
              {PAGES.map(([path, , , Page]) => (
                <Route path={path} key={path}>
                  <Page />
                </Route>
              ))}
              <Route path="/tail/:id">
                {(params: Readonly<Record<string, string | undefined>>) => <TailPage named={params.id ?? ''} />}
              </Route>
              <Route path="/accounts/:id">
                {(params: Readonly<Record<string, string | undefined>>) => (
                  <AccountAtDesk id={params.id ?? ''} key={params.id} />
                )}
              </Route>
              <Route>
                <Redirect to="/health" replace />
              </Route>
            </Switch>
          </main>
        </div>
      </div>
      <Toasts />
      <Questions />
      <NoteDialog />
    </Router>
  )
}

function Side({ onLeave }: { onLeave: () => Promise<void> }) {
  const [path] = useHashLocation()
  return (
    <nav class="side" id="side" popover="auto" aria-label="Pages">
      <Link href="/" class="brand">
        <Logo />
        Operator
      </Link>
      <ul>
        {PAGES.map(([href, word, icon]) => (
          <li key={href}>
            <Link href={href} aria-current={path === href || path.startsWith(`${href}/`) ? 'page' : undefined}>
              <Icon name={icon} />
              {word}
            </Link>
          </li>
        ))}
      </ul>
      <div class="who">
        <span class="grow">No message content</span>
        <button type="button" class="button bare icon" aria-label="Leave" title="Leave" onClick={() => void onLeave()}>
          <Icon name="leave" />
        </button>
      </div>
    </nav>
  )
}
