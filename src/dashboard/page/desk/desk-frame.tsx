/**
 * desk-frame - what stands around the operator's pages, and the key that opens them
 *
 * The key is kept in sessionStorage and sent as Bearer: a cookie would reach the public listener's port too. A tab that
 * is closed forgets it.
 */
import type { ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import { Link, Redirect, Route, Router, Switch } from 'wouter-preact'
import { useHashLocation } from 'wouter-preact/use-hash-location'
import { call, gates } from '../api/call.ts'
import { Questions } from '../parts/dialog.tsx'
import { Field, Form } from '../parts/form.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { Mark } from '../parts/mark.tsx'
import { Toasts } from '../parts/toast.tsx'
import { AccountAtDesk } from './account.tsx'
import { AccountsPage } from './accounts.tsx'
import { DeskAuditPage } from './desk-audit.tsx'
import { DeskSuppressionsPage } from './desk-suppressions.tsx'
import { HealthPage } from './health.tsx'
import { NoteDialog } from './note.tsx'
import { QueuePage } from './queue.tsx'
import { ShardsPage } from './shards.tsx'
import { TailPage } from './tail.tsx'

const KEY = 'operator-key'
const BASE = '/v1/operator'

const PAGES: readonly (readonly [path: string, word: string, icon: IconName, page: ComponentType])[] = [
  ['/health', 'Health', 'activity', HealthPage],
  ['/accounts', 'Accounts', 'people', AccountsPage],
  ['/queue', 'Queue', 'clock', QueuePage],
  ['/shards', 'Shards', 'server', ShardsPage],
  ['/suppressions', 'Suppressions', 'shield', DeskSuppressionsPage],
  ['/tail', 'Tail', 'requests', TailPage],
  ['/audit', 'Audit', 'text', DeskAuditPage],
]

/** The whole of it. */
export function Desk() {
  const [isOpen, setOpen] = useState(() => sessionStorage.getItem(KEY) !== null)
  gates.base = BASE
  gates.authorization = () => {
    const key = sessionStorage.getItem(KEY)
    return key === null ? null : `Bearer ${key}`
  }
  gates.signedOut = () => {
    sessionStorage.removeItem(KEY)
    setOpen(false)
  }
  return isOpen ? <Opened onLeave={gates.signedOut} /> : <AskKey onOpen={() => setOpen(true)} />
}

function AskKey({ onOpen }: { onOpen: () => void }) {
  const [key, setKey] = useState('')
  const send = async () => {
    sessionStorage.setItem(KEY, key.trim())
    await call('GET', '/accounts?limit=1')
    onOpen()
  }
  return (
    <main class="door desk">
      <div class="brand">
        <Mark size={22} />
        Sendwright, operator
      </div>
      <section class="card">
        <h1>Operator</h1>
        <p class="dialog-text">
          The key stands in first-run.json of the data directory. This tab keeps it until it is closed.
        </p>
        <Form act="Go in" onSend={send}>
          <Field
            name="key"
            label="Operator key"
            type="password"
            placeholder="ok_…"
            value={key}
            onChange={setKey}
            mono
            autofocus
          />
        </Form>
      </section>
    </main>
  )
}

function Opened({ onLeave }: { onLeave: () => void }) {
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
              <span aria-current="page">Operator</span>
            </nav>
          </div>
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

function Side({ onLeave }: { onLeave: () => void }) {
  const [path] = useHashLocation()
  return (
    <nav class="side" id="side" popover="auto" aria-label="Pages">
      <Link href="/" class="brand">
        <Mark />
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
        <span class="grow">No mail content here</span>
        <button
          type="button"
          class="button bare icon"
          aria-label="Forget the key"
          title="Forget the key"
          onClick={onLeave}
        >
          <Icon name="leave" />
        </button>
      </div>
    </nav>
  )
}
