/**
 * port - ports of the loopback that no other test gets while this process lives
 *
 * A port that the system has just reported as free may be the next that it assigns, to a listener of another test or
 * to a connection. These ports are below the range that the system assigns from, and each is reserved: the UDP port of
 * the same number, on an address that nothing else uses, is held until the process ends.
 */
import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Linux gives away ports from 32,768 on. */
const PORT_FIRST = 12_000
const PORT_LAST = 32_000
const KEEPER = '127.255.255.254'
const TRIES_MAX = 200
/** The distance between the port of a Redis Cluster node and its bus port. */
const BUS = 10_000

const kept: Socket[] = []

/** A port without a listener. */
export function freePort(): Promise<number> {
  return freePorts(1)
}

/**
 * The first of `count` such ports in a row. `withBus`: nodes of a Redis Cluster listen there, and the ports that they
 * open beside them are kept too.
 */
export async function freePorts(count: number, { withBus = false } = {}): Promise<number> {
  const above = withBus ? [0, BUS] : [0]
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const first = randomInt(PORT_FIRST, PORT_LAST - count - Math.max(...above))
    const rows = above.map((by) => Array.from({ length: count }, (_, n) => first + by + n))
    if (await areFree(rows.flat())) return first
  }
  throw new Error(`No ${count} free ports from ${PORT_FIRST} to ${PORT_LAST}`)
}

/** Reserves the ports. False, without reserving any, if one of them has an owner. */
async function areFree(ports: readonly number[]): Promise<boolean> {
  const keepers: Socket[] = []
  for (const port of ports) {
    const keeper = await keep(port)
    if (keeper !== null) keepers.push(keeper)
    if (keeper !== null && (await isUnheard(port))) continue
    for (const one of keepers) one.close()
    return false
  }
  kept.push(...keepers)
  return true
}

async function keep(port: number): Promise<Socket | null> {
  const socket = createSocket('udp4')
  try {
    socket.bind({ port, address: KEEPER, exclusive: true })
    await once(socket, 'listening')
    return socket.unref()
  } catch {
    socket.close()
    return null
  }
}

/** Whether the port has no listener, on any address. */
async function isUnheard(port: number): Promise<boolean> {
  const probe = createServer()
  try {
    await once(probe.listen(port, '0.0.0.0'), 'listening')
    probe.close()
    await once(probe, 'close')
    return true
  } catch {
    return false
  }
}
