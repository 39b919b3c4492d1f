/** can-bind - whether this machine has an address, seen by binding a socket to it */

import { createSocket } from 'node:dgram'

/** Binds a UDP socket to a free port of the address for a moment: no packet is sent. Never rejects. */
export function canBind(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    socket.once('error', () => {
      socket.close()
      resolve(false)
    })
    socket.bind({ address, port: 0 }, () => {
      socket.close()
      resolve(true)
    })
  })
}
