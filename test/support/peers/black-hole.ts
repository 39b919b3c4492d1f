/**
 * black-hole - an address and port that does not answer SYNs: a listener with a full queue that accepts no connection
 *
 * Linux drops a SYN for which the accept queue has no room, so a client gets no answer at all, as behind a firewall
 * that drops packets.
 */

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { spawnNode } from '../machine/node.ts'

/** False, or why a test that needs it is skipped. */
export const BLACK_HOLE_SKIP: false | string =
  process.platform === 'linux' ? false : 'only Linux drops what its queue has no room for'

const FILL_MAX = 16
const ANSWER_MS_MAX = 500

/** Listens there, accepts no connection, and fills the queue. */
export async function openBlackHole(host: string, port: number): Promise<{ close(): Promise<void> }> {
  const options = JSON.stringify({ host, port, backlog: 1 })
  const sleep = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'
  const listen = `require('node:net').createServer().listen(${options}, () => { require('node:fs').writeSync(1, 'up'); ${sleep} })`
  const child = spawnNode(['-e', listen])
  await once(child.stdout, 'data')
  const sockets: Socket[] = []
  while (await answers(host, port, sockets))
    if (sockets.length > FILL_MAX) throw new Error(`${FILL_MAX} connections do not fill the queue`)
  return {
    async close() {
      for (const socket of sockets) socket.destroy()
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

function answers(host: string, port: number, sockets: Socket[]): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    sockets.push(socket)
    socket.on('error', () => undefined)
    // Everything that has arrived by then is processed before the silence is declared, however late the timer is.
    const timer = setTimeout(() => setImmediate(resolve, false), ANSWER_MS_MAX)
    socket.once('connect', () => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
