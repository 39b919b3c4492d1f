/** open - the DNS of a process: clients of one thread, and a resolver for all lookups outside delivery */

import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'
import { createResolver, type Resolver } from './resolve.ts'
import { type ClientThread, makeClientThread } from './threaded-client.ts'

export interface Dns extends ClientThread {
  readonly resolver: Resolver
}

/** Opens it; the thread starts with the first question. */
export function openDns({ dnsServers, dnssec }: Pick<Config, 'dnsServers' | 'dnssec'>): Dns {
  const thread = makeClientThread({ servers: dnsServers, isTrusted: dnssec === 'trusted' })
  return { ...thread, resolver: createResolver({ client: thread.open(), nowMs: monotonicMs }) }
}
