/** current-server - the server of the page: that of its path, or the one shown last */
import type { Server } from '../../../../schemas/server.ts'
import { servers } from '../api/session.ts'

/** Takes the path below the router's base. Returns null if the account has no server. */
export function currentServer(path: string): Server | null {
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
