/**
 * relay - a mail server on the loopback that accepts everything, with replies as long as those of a large provider
 *
 * Replies are stored with each recipient, so their length is part of what a message takes.
 */

import { randomBytes } from 'node:crypto'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A line that is longer has no end: the client is broken. */
const LINE_CHARS_MAX = 8_192
const END_OF_DATA = '\r\n.\r\n'

export interface Relay {
  readonly port: number
  /** Messages so far. */
  readonly accepted: () => number
  close(): Promise<void>
}

/** Starts it. */
export async function startRelay(): Promise<Relay> {
  let accepted = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.write('220 mx.relay.test ESMTP\r\n')
    converse(socket, () => {
      accepted += 1
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    accepted: () => accepted,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function converse(socket: Socket, accepted: () => void): void {
  let isData = false
  let left = ''
  socket.setEncoding('latin1')
  socket.on('data', (piece: string) => {
    left += piece
    for (;;) {
      const end = left.indexOf(isData ? END_OF_DATA : '\r\n')
      if (end < 0) {
        if (isData) left = left.slice(-END_OF_DATA.length)
        else if (left.length > LINE_CHARS_MAX) socket.destroy()
        return
      }
      const line = left.slice(0, end)
      left = left.slice(end + (isData ? END_OF_DATA.length : 2))
      if (isData) accepted()
      socket.write(isData ? queuedReply() : replyTo(line))
      isData = !isData && /^DATA/i.test(line)
    }
  })
}

function replyTo(line: string): string {
  switch (line.slice(0, 4).toUpperCase()) {
    case 'EHLO':
      return '250-mx.relay.test\r\n250-SIZE 157286400\r\n250-8BITMIME\r\n250-PIPELINING\r\n250 SMTPUTF8\r\n'
    case 'DATA':
      return '354 Go ahead\r\n'
    case 'QUIT':
      return '221 2.0.0 closing connection\r\n'
    default:
      return '250 2.1.0 OK\r\n'
  }
}

function queuedReply(): string {
  const id = randomBytes(18).toString('hex')
  return `250 2.0.0 OK  ${Math.floor(Date.now() / 1000)} ${id.slice(0, 14)}-${id.slice(14)}.119 - gsmtp\r\n`
}
