/**
 * side - the switches between servers and accounts, the pages of the server and the account, and the signed-in user
 */
import { useRef, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import type { Server } from '../../../../schemas/server.ts'
import { ApiError } from '../api/call.ts'
import { serverPath } from '../api/place.ts'
import { may, servers, session, signOut, switchAccount } from '../api/session.ts'
import { currentServer } from '../browser/current-server.ts'
import { Chip } from '../parts/chip.tsx'
import { Icon } from '../parts/icon.tsx'
import { Logo } from '../parts/logo.tsx'
import { sayFault } from '../parts/toast.tsx'
import { PAGES, type PageRow } from './pages.tsx'

/** The side: beside the page, on a phone over it. */
export function Side() {
  const [path] = useLocation()
  const server = currentServer(path)
  const linked = PAGES.filter(({ side, needs }) => side !== null && (needs === undefined || may(needs)))
  const of = (whose: 'server' | 'account') => linked.filter(({ side }) => side?.of === whose)
  return (
    <nav class="side" id="side" popover="auto" aria-label="Pages">
      <Link href="/" class="brand">
        <Logo />
        Sendwright
      </Link>
      {server !== null && <Switch server={server} />}
      {server !== null && (
        <ul>
          {of('server').map((row) => (
            <Entry key={row.path} row={row} href={row.path.replace(':serverId', server.serverId)} />
          ))}
        </ul>
      )}
      <div>
        <AccountName />
        <ul>
          {of('account').map((row) => (
            <Entry key={row.path} row={row} href={row.path} />
          ))}
        </ul>
      </div>
      <Who />
    </nav>
  )
}

/** The account's name; members of several accounts switch here. */
function AccountName() {
  const known = session.value
  if (known === null) return null
  const { account, accounts } = known
  if (accounts.length < 2) return <h2>{account.name}</h2>
  return (
    <>
      <h2 class="unseen">{account.name}</h2>
      <button type="button" class="switch of-account" popoverTarget="accounts">
        <span class="unseen">Switch from account </span>
        <span class="switch-name">{account.name}</span>
        <Icon name="down" />
      </button>
      <div popover="auto" id="accounts" class="menu-list">
        {accounts.map(({ accountId, name, role, readOnly }) => (
          <AccountChoice
            key={accountId}
            id={accountId}
            name={name}
            role={readOnly ? 'reads' : role}
            isHere={accountId === account.accountId}
          />
        ))}
      </div>
    </>
  )
}

function AccountChoice({ id, name, role, isHere }: { id: string; name: string; role: string; isHere: boolean }) {
  const [isBusy, setBusy] = useState(false)
  const go = () => {
    setBusy(true)
    switchAccount(id).catch((fault: unknown) => {
      setBusy(false)
      if (!(fault instanceof ApiError)) throw fault
      sayFault(fault)
    })
  }
  return (
    <button type="button" aria-current={isHere ? 'true' : undefined} disabled={isBusy || isHere} onClick={go}>
      <span class="switch-name">{name}</span>
      <small>{role}</small>
    </button>
  )
}

function Entry({ row, href }: { row: PageRow; href: string }) {
  const [path] = useLocation()
  const isHere = path === href || (row.path !== '/servers' && path.startsWith(`${href}/`))
  return (
    <li>
      <Link href={href} aria-current={isHere ? 'page' : undefined}>
        <Icon name={row.side?.icon ?? 'info'} />
        {row.side?.word}
      </Link>
    </li>
  )
}

function Switch({ server }: { server: Server }) {
  const list = useRef<HTMLDivElement>(null)
  const known = servers.value ?? []
  const [path] = useLocation()
  const pathOn = (serverId: string) => {
    const [, kind, , page] = path.split('/')
    const row = kind === 'servers' ? PAGES.find((one) => one.path === `/servers/:serverId/${page}`) : undefined
    return row === undefined ? serverPath(serverId, 'messages') : row.path.replace(':serverId', serverId)
  }
  return (
    <div>
      <button type="button" class="switch" popoverTarget="servers">
        <span class="unseen">Switch from server </span>
        <span class="switch-name">{server.name}</span>
        {server.mode === 'test' && <Chip tone="test">Test</Chip>}
        <Icon name="down" />
      </button>
      <div popover="auto" id="servers" class="menu-list" ref={list}>
        {known.map(({ serverId, name, mode }) => (
          <Link
            key={serverId}
            href={pathOn(serverId)}
            aria-current={serverId === server.serverId ? 'true' : undefined}
            onClick={() => list.current?.hidePopover()}
          >
            <span>{name}</span>
            {mode === 'test' && <Chip tone="test">Test</Chip>}
          </Link>
        ))}
      </div>
    </div>
  )
}

/** If signing out fails, the page stays and shows the error. */
async function leave(): Promise<void> {
  try {
    await signOut()
  } catch (fault) {
    if (!(fault instanceof ApiError)) throw fault
    sayFault(fault)
  }
}

function Who() {
  const known = session.value
  if (known === null) return null
  return (
    <div class="who">
      <Link href="/me" title="Your name, password and sessions">
        {known.user.address}
      </Link>
      <button
        type="button"
        class="button bare icon"
        aria-label="Sign out"
        title="Sign out"
        onClick={() => void leave()}
      >
        <Icon name="leave" />
      </button>
    </div>
  )
}
