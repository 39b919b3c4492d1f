/** place - the paths of pages, in one place */

/** A page of a server. */
export type ServerPage =
  | 'overview'
  | 'messages'
  | 'broadcasts'
  | 'received'
  | 'suppressions'
  | 'webhooks'
  | 'streams'
  | 'keys'
  | 'start'

/** The path of a server's page, or of one thing on it; beneath the router's base. */
export function serverPath(serverId: string, page: ServerPage, id?: string): string {
  const path = `/servers/${serverId}/${page}`
  return id === undefined ? path : `${path}/${id}`
}

/** The path of a server's part of the interface. */
export function serverApi(serverId: string, rest: string): string {
  return `/servers/${serverId}${rest}`
}

/** The list of a server's messages with filters, none of which is an address. */
export function messagesPath(serverId: string, filters: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== '')).toString()
  return serverPath(serverId, 'messages') + (query === '' ? '' : `?${query}`)
}
