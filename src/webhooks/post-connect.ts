/**
 * post-connect - a TLS connection to a receiver of events, to an address that was resolved and checked for it.
 *
 * Guarantees: no connection to a forbidden address; the connection goes to an address that was checked, never to a
 * name; it ends within its time, finished or not.
 *
 * Spec webhook.private, webhook.fair
 */

import { isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Resolver } from '../dns/resolve.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import type { Pace } from './pace.ts'

/** Addresses of a host tried in one attempt. */
const ADDRESSES_MAX = 3
const HTTPS_PORT = 443
/** Below it are the services of a host; a webhook must not reveal which of them run. */
const SERVICE_PORTS_END = 1024
/** Reasons as named by Node.js, which contain no data of the receiver. */
const REASON = /^[A-Z0-9_]{1,60}$/

type TlsFailure = 'tls_failed' | `tls_failed: ${string}`
type ConnectError = 'port_not_allowed' | 'dns_error' | 'private_address' | 'connect_failed' | TlsFailure

/** Why a connection could not be made. */
export class NotConnected extends Error {
  readonly reason: ConnectError

  constructor(reason: ConnectError) {
    super(reason)
    this.reason = reason
  }
}

/** The function that undici calls for a connection. */
export type Connect = (options: ConnectOptions, done: (error: Error | null, socket: Socket | null) => void) => void

interface ConnectOptions {
  readonly hostname: string
  readonly port?: string
}

export interface ConnectDeps {
  readonly resolver: Resolver
  /** CIDRs that may be connected to although they are private. */
  readonly privateNetworksAllowed: readonly string[]
  /** Allowed ports below 1024 besides 443. */
  readonly webhookPorts: readonly number[]
  /** Certificates to trust instead of the default ones; null for the default. */
  readonly ca: string | null
  /** For look-up and handshake together. */
  readonly timeoutMs: number
  readonly pace: Pace
  /** Whether a host must be resolved again; called once for each connection. */
  readonly isFresh: (hostname: string) => boolean
}

/** Makes the connector, for receivers that have answered (`isProven`) or for the others. */
export function makeConnect(deps: ConnectDeps, isProven: boolean): Connect {
  const { pace, timeoutMs, ca, isFresh } = deps
  return ({ hostname, port }, done) => {
    const host = hostname.replace(/^\[|\]$/g, '')
    const target = { host, port: Number(port) || HTTPS_PORT, ca, endsAtMs: performance.now() + timeoutMs }
    if (!mayConnectTo(target.port, deps.webhookPorts)) return done(new NotConnected('port_not_allowed'), null)
    findAddresses(deps, host, isFresh(hostname))
      .then((addresses) => pace({ host, isProven }).then(() => connectToOne(addresses, target)))
      .then(
        (socket) => done(null, socket),
        (error: Error) => done(error, null),
      )
  }
}

/** Whether a delivery may connect to a port. `allowed` lists ports below 1024 besides 443. */
export function mayConnectTo(port: number, allowed: readonly number[]): boolean {
  return port === HTTPS_PORT || port >= SERVICE_PORTS_END || allowed.includes(port)
}

interface ConnectTarget {
  readonly host: string
  readonly port: number
  readonly ca: string | null
  readonly endsAtMs: number
}

/** The first of some addresses that answers. */
async function connectToOne(addresses: readonly string[], target: ConnectTarget): Promise<Socket> {
  for (const address of addresses.slice(0, ADDRESSES_MAX)) {
    const connected = await connectTo(address, target)
    if (typeof connected !== 'string') return connected
    if (connected !== 'connect_failed') throw new NotConnected(connected)
  }
  throw new NotConnected('connect_failed')
}

function connectTo(
  address: string,
  { host, port, ca, endsAtMs }: ConnectTarget,
): Promise<Socket | 'connect_failed' | TlsFailure> {
  return new Promise((resolve) => {
    const servername = isIP(host) === 0 ? { servername: host } : {}
    const trust = ca === null ? {} : { ca }
    const socket = connectTls({ host: address, port, ALPNProtocols: ['http/1.1'], ...servername, ...trust })
    let isTcpUp = false
    const fail = (error?: NodeJS.ErrnoException): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isTcpUp ? tlsFailure(error) : 'connect_failed')
    }
    const timer = setTimeout(() => fail(), Math.max(1, endsAtMs - performance.now()))
    socket.setNoDelay(true)
    socket.once('connect', () => {
      isTcpUp = true
    })
    // Stays after a failure, because a destroyed socket may still report its error.
    socket.on('error', fail)
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      socket.off('error', fail)
      resolve(socket)
    })
  })
}

function tlsFailure({ code = '' }: NodeJS.ErrnoException = new Error()): TlsFailure {
  return REASON.test(code) ? `tls_failed: ${code}` : 'tls_failed'
}

/** The addresses of the host, all of which are allowed. Rejects with NotConnected. Spec webhook.private */
export async function findAddresses(
  { resolver, privateNetworksAllowed }: Pick<ConnectDeps, 'resolver' | 'privateNetworksAllowed'>,
  host: string,
  fresh: boolean,
): Promise<readonly string[]> {
  const addresses = await lookUpAddresses(resolver, host, fresh)
  if (addresses === null) throw new NotConnected('dns_error')
  if (!addresses.every((address) => isPublicAddress(address, privateNetworksAllowed)))
    throw new NotConnected('private_address')
  return addresses
}

/** Every address of a host, IPv4 first; null if none is known. `localhost` is the loopback (RFC 6761 6.3). */
async function lookUpAddresses(resolver: Resolver, host: string, fresh: boolean): Promise<readonly string[] | null> {
  if (isIP(host) !== 0) return [host]
  if (host === 'localhost' || host.endsWith('.localhost')) return ['127.0.0.1']
  const [v4, v6] = await Promise.all([resolver.look('A', host, { fresh }), resolver.look('AAAA', host, { fresh })])
  const found = [v4, v6].flatMap((answer) => (answer.status === 'ok' ? answer.records : []))
  return found.length === 0 ? null : found
}
