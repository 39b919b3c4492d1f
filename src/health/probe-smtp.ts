/**
 * probe-smtp - whether a mail server can be reached: connects, waits for its greeting, says QUIT. Sends no mail.
 */

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from '../outbound/thread/connect.ts'

const CONNECT_MS_MAX = 5000
const GREETING_MS_MAX = 5000

export interface ProbeTarget {
  readonly host: string
  /** Checked by the caller. */
  readonly address: string
  readonly port: number
  /** Whether the server speaks first in the clear; with TLS from the first byte it does not. */
  readonly greets: boolean
}

export type Probed =
  /** `localAddress`: the address that the connection was made from; `greeting`: what was said first. */
  | { readonly ok: true; readonly localAddress: string; readonly greeting: string }
  | { readonly ok: false; readonly text: string }

/** Probes one server. Never rejects. */
export async function probeSmtp({ greets, ...target }: ProbeTarget): Promise<Probed> {
  const connected = await connect({ ...target, timeoutMs: CONNECT_MS_MAX }, AbortSignal.timeout(CONNECT_MS_MAX))
  if (!connected.ok) return connected
  const { socket } = connected
  const { localAddress = '' } = socket
  // A socket that fails later must not end the process.
  socket.on('error', () => undefined)
  const greeting = greets ? await readGreeting(socket) : '220'
  socket.end('QUIT\r\n')
  socket.destroySoon()
  if (!greeting.startsWith('220')) return { ok: false, text: greeting === '' ? 'no greeting' : greeting }
  return { ok: true, localAddress, greeting }
}

/** The first line that the server says; empty when it says none. */
async function readGreeting(socket: Socket): Promise<string> {
  const [bytes] = await once(socket, 'data', { signal: AbortSignal.timeout(GREETING_MS_MAX) }).catch(() => [''])
  return String(bytes).split('\r\n')[0]?.slice(0, 200) ?? ''
}
