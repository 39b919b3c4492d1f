/** smtp-dialog - a client that sends SMTP line by line over a real socket, and receives each reply. */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** A reply: its lines without line ends. Empty once the peer has closed. */
export type Reply = readonly string[]

export interface SmtpDialog {
  /** Sends a line and answers the reply to it; null sends nothing and waits. */
  say(line: string | null): Promise<string>
  /** Sends bytes as they are. */
  write(bytes: string | Uint8Array): void
  /** Continues under TLS with any certificate. Returns the protocol. */
  upgrade(): Promise<string>
  /** Whether the peer has closed. */
  closed(): Promise<void>
  end(): void
}

/** Connects, from an address if one is given, and waits for the greeting, which is the first reply. */
export async function openDialog(
  port: number,
  host = '127.0.0.1',
  localAddress?: string,
): Promise<SmtpDialog & { greeting: string }> {
  let socket: Socket = connect({ port, host, ...(localAddress === undefined ? {} : { localAddress }) })
  await once(socket, 'connect')
  let text = ''
  let isClosed = false
  let wake: () => void = () => undefined
  const listen = (one: Socket) => {
    one.setEncoding('latin1')
    one.on('data', (piece: string) => {
      text += piece
      wake()
    })
    one.on('error', () => undefined)
    one.on('close', () => {
      isClosed = true
      wake()
    })
  }
  listen(socket)
  const reply = async (): Promise<string> => {
    for (;;) {
      const whole = /^(?:\d{3}-[^\r\n]*\r\n)*\d{3}(?: [^\r\n]*)?\r\n/.exec(text)
      if (whole !== null) {
        text = text.slice(whole[0].length)
        return whole[0].trimEnd().split('\r\n').join('\n')
      }
      if (isClosed) return ''
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return {
    greeting: await reply(),
    async say(line) {
      if (line !== null) socket.write(`${line}\r\n`)
      return reply()
    },
    write: (bytes) => void socket.write(bytes),
    async upgrade() {
      socket.removeAllListeners('data')
      const secure = connectTls({ socket, rejectUnauthorized: false })
      const closed = once(secure, 'close').then(() => {
        throw new Error('The peer closed before TLS began')
      })
      closed.catch(() => undefined)
      await Promise.race([once(secure, 'secureConnect'), closed])
      listen(secure)
      socket = secure
      return secure.getProtocol() ?? ''
    },
    async closed() {
      while (!isClosed)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    },
    end: () => socket.destroy(),
  }
}

/** Sends one mail from `<>`. Returns the reply to RCPT if it is a refusal, otherwise that to the final dot. */
export async function deliverMail(
  port: number,
  recipients: string | readonly string[],
  mail: string,
  localAddress?: string,
): Promise<string> {
  const dialog = await openDialog(port, '127.0.0.1', localAddress)
  try {
    await dialog.say('EHLO mx.example.net')
    await dialog.say('MAIL FROM:<>')
    for (const recipient of [recipients].flat()) {
      const reply = await dialog.say(`RCPT TO:<${recipient}>`)
      if (!reply.startsWith('250')) return reply
    }
    await dialog.say('DATA')
    return await dialog.say(`${mail.replace(/\r?\n/g, '\r\n').replace(/^\./gm, '..')}\r\n.`)
  } finally {
    dialog.end()
  }
}
