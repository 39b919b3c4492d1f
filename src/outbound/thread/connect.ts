/** connect - a TCP connection to an address that was checked before; the name is never resolved again (rebinding). */

import type { Socket } from 'node:net'
import { connect as connectSocket } from 'node:net'

export interface ConnectInput {
  /** For the text of a failure only. */
  readonly host: string
  readonly address: string
  readonly port: number
  readonly timeoutMs: number
  /** Address of this machine to connect from; absent: the system chooses. */
  readonly localAddress?: string
}

/** The connection, or the reason why there is none, after `ms`. */
export type Connected = { readonly ms: number } & (
  | { readonly ok: true; readonly socket: Socket }
  | { readonly ok: false; readonly text: string }
)

/** Connects; a failure's text is like `connect ETIMEDOUT mx.example.net[192.0.2.1]:25`. Never rejects. */
export function connect(input: ConnectInput, signal: AbortSignal): Promise<Connected> {
  return new Promise((resolve) => {
    const beganMs = performance.now()
    const socket = connectSocket({
      host: input.address,
      port: input.port,
      ...(input.localAddress !== undefined && { localAddress: input.localAddress }),
    })
    const timer = setTimeout(() => finish('ETIMEDOUT'), input.timeoutMs)
    const onAbort = () => finish('ECANCELED')
    const onError = (error: NodeJS.ErrnoException) => finish(error.code ?? 'EUNKNOWN')

    function finish(code: string | null): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.removeListener('connect', onConnect)
      if (code === null) {
        socket.removeListener('error', onError)
        resolve({ ok: true, socket, ms: performance.now() - beganMs })
        return
      }
      socket.destroy()
      const text = `connect ${code} ${input.host}[${input.address}]:${input.port}`
      resolve({ ok: false, text, ms: performance.now() - beganMs })
    }
    const onConnect = () => finish(null)

    socket.once('connect', onConnect)
    // Stays after a failure, because a destroyed socket may still report its error.
    socket.on('error', onError)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
  })
}
