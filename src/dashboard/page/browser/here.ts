/** here - which server the page is about: that of its path, else the one looked at last */
import type { Server } from '../../../../schemas/server.ts'
import { servers } from '../api/session.ts'

/** In: the path beneath the router's base. Out: null where the account has no server. */
export function shownServer(path: string): Server | null {
  const known = servers.value ?? []
  const [, kind, id] = path.split('/')
  const named = kind === 'servers' ? known.find(({ serverId }) => serverId === id) : undefined
  if (named !== undefined) localStorage.setItem('server', named.serverId)
  const last = localStorage.getItem('server')
  return (
    named ??
    known.find(({ serverId }) => serverId === last) ??
    known.find(({ mode }) => mode === 'test') ??
    known[0] ??
    null
  )
}
