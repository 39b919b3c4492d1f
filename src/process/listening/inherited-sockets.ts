/**
 * inherited-sockets - the listening sockets that a service manager passes to this process (sd_listen_fds(3))
 *
 * The manager keeps them open while the process restarts, so that clients wait in their queues and none are refused. A
 * socket belongs to the listener that has its port.
 */

import { readFileSync, readlinkSync } from 'node:fs'

/** The first descriptor that is passed. */
const FIRST_FD = 3
/** More are a mistake, because the service has five listeners. */
const FDS_MAX = 16
/** TCP_LISTEN of the kernel. */
const LISTENING = '0A'

export interface InheritedSockets {
  /** The descriptor of the socket with this port; null if none was passed. Each is handed out once. */
  take(port: number): number | null
  /** Ports of sockets that were not handed out. */
  left(): number[]
}

/** Reads the ports of the passed sockets. Throws Error if a descriptor is not a listening TCP socket. */
export function readInheritedSockets(count: number): InheritedSockets {
  const fds = Array.from({ length: Math.min(count, FDS_MAX) }, (_, n) => FIRST_FD + n)
  const ports = fds.length === 0 ? new Map<string, number>() : readListening()
  const byPort = new Map<number, number>()
  for (const fd of fds) {
    const port = ports.get(readInode(fd))
    if (port === undefined)
      throw new Error(`LISTEN_FDS: descriptor ${fd} is not a listening TCP socket: use ListenStream= with a port`)
    if (byPort.has(port))
      throw new Error(`LISTEN_FDS: two sockets have port ${port}: one ListenStream= for each port is possible`)
    byPort.set(port, fd)
  }
  return {
    take(port) {
      const fd = byPort.get(port) ?? null
      byPort.delete(port)
      return fd
    },
    left: () => [...byPort.keys()],
  }
}

/** The inode of a descriptor's socket; '' if it is not a socket. */
function readInode(fd: number): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? ''
  } catch {
    return ''
  }
}

/** The ports of all listening TCP sockets by inode (proc_pid_net(5)). */
function readListening(): Map<string, number> {
  const ports = new Map<string, number>()
  for (const name of ['tcp', 'tcp6']) {
    for (const line of readTable(`/proc/self/net/${name}`).split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      if (state === LISTENING) ports.set(inode, Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16))
    }
  }
  return ports
}

/** A machine without IPv6 does not have its table. */
function readTable(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
