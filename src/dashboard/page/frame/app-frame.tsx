/** app-frame - the frame of every page: the side bar, the top bar, dialogs, and the page of the path */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Redirect, Route, Router, Switch, useLocation } from 'wouter-preact'
import { ApiError, gates } from '../api/call.ts'
import { noteLost } from '../api/connection.ts'
import { serverPath } from '../api/place.ts'
import { openSession, servers, session } from '../api/session.ts'
import { usePlace } from '../browser/crumbs.ts'
import type { PageProps } from '../browser/page-props.ts'
import { useScroll } from '../browser/scroll.ts'
import { LinkButton } from '../parts/button.tsx'
import { Empty, Fault, Head, Skeleton } from '../parts/card.tsx'
import { ConnectionLine } from '../parts/connection.tsx'
import { Questions } from '../parts/dialog.tsx'
import { Toasts } from '../parts/toast.tsx'
import { Bar } from './bar.tsx'
import { Confirmation } from './confirm.tsx'
import { FetchedPage } from './fetched.tsx'
import { PAGES, type PageRow } from './pages.tsx'
import { Side } from './side.tsx'

/** The dashboard of members. */
export function openApp(): VNode {
  return (
    <Router base="/dashboard">
      <App />
    </Router>
  )
}

function App() {
  const [error, setError] = useState<ApiError | null>(null)
  const open = () => {
    setError(null)
    openSession().catch((fault: unknown) => {
      if (!(fault instanceof ApiError)) throw fault
      if (fault.status !== 401) setError(fault)
    })
  }
  useEffect(() => {
    gates.lost = noteLost
    open()
  }, [])
  if (session.value === null || servers.value === null) return <Waiting error={error} onRetry={open} />
  return <Framed />
}

/** The frame before anything is known: the document of the page has the same, so that nothing moves. */
function Waiting({ error, onRetry }: { error: ApiError | null; onRetry: () => void }) {
  return (
    <div class="frame">
      <nav class="side" popover="auto" aria-label="Pages" />
      <div class="body">
        <div class="bar" />
        <main class="page">{error === null ? <Skeleton lines={6} /> : <Fault error={error} onRetry={onRetry} />}</main>
      </div>
    </div>
  )
}

function Framed() {
  const [path] = useLocation()
  useScroll(path)
  // The menu closes with a new page.
  useEffect(() => {
    document.getElementById('side')?.hidePopover?.()
  }, [path])
  return (
    <>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <div class="frame">
        <Side />
        <div class="body">
          <Bar />
          <ConnectionLine />
          <main class="page" id="main" tabIndex={-1}>
            <Switch>
              {PAGES.map((row) => (
                <Route path={row.path} key={row.path}>
                  {(params: Readonly<Record<string, string | undefined>>) => (
                    <Shown row={row} serverId={params.serverId ?? ''} id={params.id ?? ''} />
                  )}
                </Route>
              ))}
              <Route path="/">
                <Home />
              </Route>
              <Route>
                <Nowhere />
              </Route>
            </Switch>
          </main>
        </div>
      </div>
      <Toasts />
      <Questions />
      <Confirmation />
    </>
  )
}

function Shown({ row, ...props }: { row: PageRow } & PageProps) {
  if (session.value?.needsFactor && row.path !== ME) return <Redirect to={ME} replace />
  // Nothing is requested about a server of another account.
  if (props.serverId !== '' && servers.value?.every(({ serverId }) => serverId !== props.serverId)) return <Nowhere />
  if (row.isFetched) return <FetchedPage row={row} {...props} key={row.path} />
  const Page = row.page as (props: PageProps) => VNode
  return <Page {...props} key={`${row.path} ${props.serverId} ${props.id}`} />
}

/** The server that was shown last, or the first. */
function Home() {
  const known = servers.value ?? []
  const last = localStorage.getItem('server')
  const server =
    known.find(({ serverId }) => serverId === last) ?? known.find(({ mode }) => mode === 'test') ?? known[0]
  return server === undefined ? (
    <Redirect to="/servers" replace />
  ) : (
    <Redirect to={serverPath(server.serverId, HOME)} replace />
  )
}

const HOME = 'overview'
/** The page for setting up a second factor: until then an account that requires one answers nothing else. */
const ME = '/me'

function Nowhere() {
  usePlace({ word: 'Page not found' })
  return (
    <>
      <Head title="Page not found" />
      <div class="card">
        <Empty icon="search" title="Nothing is at this address">
          <p>The link may be old, or belong to another account.</p>
          <LinkButton href="/">Go to the overview</LinkButton>
        </Empty>
      </div>
    </>
  )
}
