/**
 * mx - a receiving server that follows a script, on a real socket: its reply at each step, and where it drops or
 * hangs.
 *
 * It records every command per session. Nagle is off, because otherwise every pipelined message would wait 40 ms.
 */

import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'

/**
 * A reply (one line, or several joined by `\n`), or an action instead of one: the connection is cut, closed, or no
 * reply is sent until `answer`. A reply that ends with ` !drop` is followed by the cut. A function gets the command's
 * line.
 */
export type MxAction = string | 'drop' | 'fin' | 'hang' | ((line: string) => string)

export interface MxScript {
  readonly banner?: MxAction
  /** Lines after the greeting line of EHLO. */
  readonly capabilities?: readonly string[]
  readonly ehlo?: MxAction
  readonly helo?: MxAction
  readonly starttls?: MxAction
  /** The bytes after `220` to STARTTLS: a real handshake, other bytes, or silence. */
  readonly handshake?: 'tls' | 'old' | 'garbage' | 'hang'
  /** Key and certificate in PEM, needed for a real handshake. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** TLS from the first byte. */
  readonly implicitTls?: boolean
  readonly auth?: MxAction
  readonly mail?: MxAction
  readonly rcpt?: MxAction
  readonly data?: MxAction
  /** After the final dot. */
  readonly dot?: MxAction
  readonly rset?: MxAction
  /** Another script for a client's address. */
  readonly from?: (address: string) => MxScript | undefined
}

export interface MxSession {
  /** Address of the client. */
  readonly from: string
  readonly commands: string[]
  /** Bytes between DATA and the dot, dots unstuffed; one per finished message. */
  readonly messages: string[]
  /** The same bytes as they came, the dot with them. */
  readonly raw: string[]
  /** Bytes of the command that were read together: more than one command = pipelined. */
  readonly reads: string[]
  secure: boolean
  closed: boolean
}

export interface FakeMx {
  readonly port: number
  readonly sessions: MxSession[]
  /** Replaces the script for sessions from now on. */
  script(script: MxScript): void
  /** Cuts every connection. */
  sever(): void
  /** Sends a line on every open connection: the pending reply, or one out of turn. */
  answer(text: string): void
  /** Connections open now, and the most there were at once. */
  readonly open: { now: number; most: number }
  close(): Promise<void>
}

const ANSWERS = {
  banner: '220 mx.test ESMTP',
  helo: '250 mx.test',
  starttls: '220 go',
  auth: '235 2.7.0 welcome',
  mail: '250 2.1.0 ok',
  rcpt: '250 2.1.5 ok',
  data: '354 go ahead',
  dot: '250 2.0.0 queued',
  rset: '250 2.0.0 ok',
}

/** Starts a server on 127.0.0.1 (or `host`), on `port` or a free one. */
export async function startMx(first: MxScript = {}, { host = '127.0.0.1', port = 0 } = {}): Promise<FakeMx> {
  const sessions: MxSession[] = []
  const sockets = new Map<Socket, (action: MxAction) => void>()
  const open = { now: 0, most: 0 }
  let script = first
  const listener = createServer((socket) => {
    socket.setNoDelay(true)
    open.now += 1
    open.most = Math.max(open.most, open.now)
    socket.on('error', () => undefined)
    const from = socket.remoteAddress ?? ''
    const session: MxSession = { from, commands: [], messages: [], raw: [], reads: [], secure: false, closed: false }
    sessions.push(session)
    socket.on('close', () => {
      session.closed = true
      open.now -= 1
      sockets.delete(socket)
    })
    sockets.set(socket, converse(socket, session, script.from?.(from) ?? script))
  })
  await new Promise<void>((resolve) => listener.listen(port, host, resolve))
  return {
    port: (listener.address() as AddressInfo).port,
    sessions,
    script: (next) => {
      script = next
    },
    sever: () => {
      for (const socket of sockets.keys()) socket.destroy()
    },
    answer: (text) => {
      for (const say of sockets.values()) say(text)
    },
    open,
    close: async () => {
      for (const socket of sockets.keys()) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

/** Returns a function that sends a line at any time. */
function converse(plain: Socket, session: MxSession, script: MxScript): (action: MxAction) => void {
  let socket: Socket = plain
  let buffered = ''
  let isData = false

  const say = (given: MxAction) => {
    const action = actionOf(given)
    const text = action.replace(/ !drop$/, '')
    if (action === 'drop') plain.destroy()
    else if (action === 'fin') plain.end()
    else if (action !== 'hang') socket.write(`${text.split('\n').join('\r\n')}\r\n`, 'latin1')
    // The reply is on its way when the end follows it.
    if (text !== action) plain.end()
  }

  const actionOf = (action: MxAction): string =>
    typeof action === 'string' ? action : action(session.commands.at(-1) ?? '')

  const onData = (chunk: Buffer) => {
    const text = chunk.toString('latin1')
    buffered += text
    if (!isData) session.reads.push(text)
    while (true) {
      const step = isData ? takeMessage() : takeCommand()
      if (!step || plain.destroyed) return
    }
  }

  function takeMessage(): boolean {
    const end = buffered.startsWith('.\r\n') ? 0 : buffered.indexOf('\r\n.\r\n') + 2
    if (end === 1) return false
    session.raw.push(buffered.slice(0, end + 3))
    session.messages.push(buffered.slice(0, end).replace(/^\.\./gm, '.'))
    buffered = buffered.slice(end + 3)
    isData = false
    say(script.dot ?? ANSWERS.dot)
    return true
  }

  function takeCommand(): boolean {
    const end = buffered.indexOf('\n')
    if (end < 0) return false
    const line = buffered.slice(0, end).replace(/\r$/, '')
    buffered = buffered.slice(end + 1)
    session.commands.push(line)
    const verb = line.split(/[ :]/)[0]!.toLowerCase()
    if (verb === 'starttls') upgrade()
    else if (verb === 'ehlo') say(script.ehlo ?? formatEhlo(script, session))
    else if (verb === 'quit') {
      say('221 2.0.0 bye')
      socket.end()
    } else if (verb === 'data') {
      const action = actionOf(script.data ?? ANSWERS.data)
      isData = action.startsWith('354')
      say(action)
    } else say(script[verb as 'mail'] ?? ANSWERS[verb as 'mail'] ?? '500 5.5.1 unknown')
    return verb !== 'starttls'
  }

  function upgrade(): void {
    const action = actionOf(script.starttls ?? ANSWERS.starttls)
    say(action)
    if (!action.startsWith('220')) {
      return
    }
    buffered = ''
    plain.removeListener('data', onData)
    // After the client's first bytes. Earlier bytes are discarded as plain text.
    if (script.handshake === 'garbage') plain.once('data', () => plain.write('this is no handshake\r\n'))
    else if (script.handshake === 'hang') plain.resume()
    else secure()
  }

  function secure(): void {
    const old = script.handshake === 'old' ? ({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as const) : {}
    const secureContext = createSecureContext({ ...script.tls, ...old })
    const secured = new TLSSocket(plain, { isServer: true, secureContext })
    secured.on('error', () => undefined)
    secured.on('secure', () => {
      session.secure = true
    })
    secured.on('data', onData)
    socket = secured
  }

  if (script.implicitTls) secure()
  else plain.on('data', onData)
  say(script.banner ?? ANSWERS.banner)
  return say
}

function formatEhlo(script: MxScript, session: MxSession): string {
  const capabilities = (script.capabilities ?? ['PIPELINING', 'ENHANCEDSTATUSCODES']).filter(
    (one) => !(session.secure && one === 'STARTTLS'),
  )
  const lines = ['mx.test', ...capabilities]
  return lines.map((line, index) => `250${index === lines.length - 1 ? ' ' : '-'}${line}`).join('\n')
}
