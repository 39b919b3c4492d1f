/**
 * probe-smtp - checks whether a mail server is reachable: connects, waits for its greeting, sends QUIT. Sends no mail.
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
  /** Whether the server sends a greeting in the clear; with TLS from the first byte it does not. */
  readonly greets: boolean
}

export type Probed =
  /** `localAddress` is the local address of the connection; `greeting` is the server's first line. */
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

/** The first line of the server; empty if it sends none. */
async function readGreeting(socket: Socket): Promise<string> {
  const [bytes] = await once(socket, 'data', { signal: AbortSignal.timeout(GREETING_MS_MAX) }).catch(() => [''])
  return String(bytes).split('\r\n')[0]?.slice(0, 200) ?? ''
}
