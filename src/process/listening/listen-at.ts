/** listen-at - makes a server listen, and names the fix for the operator if it cannot. */

import type { Server } from 'node:net'

/** Where a listener listens. */
export interface ListenPlace {
  readonly host: string
  readonly port: number
  /** The descriptor of a socket that listens already; absent or null: this process opens one. */
  readonly fd?: number | null
}

interface NamedPlace extends ListenPlace {
  /** The setting of its port. */
  readonly setting: string
}

/** Makes a server listen. Rejects with `listenFault`. */
export function listenAt(server: Server, place: NamedPlace): Promise<void> {
  const { host, port, fd = null } = place
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(listenFault(place, error))
    server.once('error', onError)
    server.listen(fd === null ? { host, port } : { fd }, () => {
      server.off('error', onError)
      resolve()
    })
  })
}

/** Takes the system's error, or null if only the failure is known. */
export function listenFault({ setting, host, port }: NamedPlace, error: NodeJS.ErrnoException | null): Error {
  const place = `${setting}: cannot listen on ${host}:${port}`
  const another = `set ${setting} to another port, or stop the program that uses it`
  if (error === null) return new Error(`${place}: in use, or not an address of this machine: ${another}`)
  return new Error(error.code === 'EADDRINUSE' ? `${place}: in use: ${another}` : `${place}: ${error.message}`)
}
