/** sender - our side of a transmit test: a zone, settings that reach the loopback, short time limits. */

import type { Test } from 'tap'
import { findRoute, type MxRouteDeps } from '../../../src/dns/mx-route.ts'
import { createResolver } from '../../../src/dns/resolve.ts'
import { parseEnvelope } from '../../../src/mail/address.ts'
import { makeUnasked } from '../../../src/mail/classify.ts'
import type { Outcome } from '../../../src/mail/outcome.ts'
import { createBrokenTls } from '../../../src/outbound/thread/attempt.ts'
import { type SendInput, SMTP_TIMEOUTS } from '../../../src/outbound/thread/converse.ts'
import { createIssuers } from '../../../src/outbound/thread/dane.ts'
import { SessionPool } from '../../../src/outbound/thread/session-pool.ts'
import { type TransmitDeps, type Transmitted, transmit } from '../../../src/outbound/thread/transmit.ts'
import type { MxScript } from './mx.ts'
import { startMx } from './mx.ts'
import type { Zone } from './zone.ts'
import { startZone } from './zone.ts'

const NEVER = new AbortController().signal

/** Long enough for a loaded machine, short enough for a test of silence. */
export const SHORT_TIMEOUTS = { ...SMTP_TIMEOUTS, connectMs: 5000, closeMs: 500 }

export type Job = Pick<SendInput, 'recipient' | 'mailFrom' | 'message' | 'mayBegin' | 'mayFinish'>
export type SenderDeps = TransmitDeps & MxRouteDeps

/** Mail to `ann@a.test`; `message` has a line that begins with a dot. */
export const JOB: Job = {
  recipient: 'ann@a.test',
  mailFrom: 'bounce@rp.svc.test',
  message: Buffer.from('Subject: x\r\n\r\nhello\r\n.dot\r\n'),
  mayBegin: () => true,
  mayFinish: () => 'open',
}

/** Dependencies with a resolver on the zone. Everything else can be replaced. */
export function makeDeps(zone: Zone, port: number, more: Partial<SenderDeps> = {}): SenderDeps {
  return {
    resolver: createResolver({ servers: [zone.server], nowMs: () => 0 }),
    policies: { find: async () => null },
    siteLimits: new Map(),
    ownHosts: ['mx.svc.test'],
    ownDomains: ['svc.test'],
    privateNetworksAllowed: ['127.0.0.0/8'],
    ownAddresses: [],
    usesIpv6: false,
    ehloName: 'out.svc.test',
    port,
    timeouts: SHORT_TIMEOUTS,
    ca: null,
    brokenTls: createBrokenTls(),
    issuers: createIssuers(() => performance.now()),
    shunned: new Map(),
    pool: new SessionPool({ connectionsMax: 256, nowMs: () => performance.now() }),
    nowMs: () => performance.now(),
    unit: () => 0.5,
    ...more,
  }
}

/** Routes and transmits as the service would, without waiting for a site. */
export async function transmitJob(job: Job, deps: SenderDeps, signal: AbortSignal = NEVER): Promise<Transmitted> {
  const envelope = parseEnvelope(job.recipient)
  const ended = (outcome: Outcome) => ({ outcome, contact: 'none', route: null, afterMs: null }) as const
  if (envelope === null) return ended(makeUnasked('bad-address'))
  const route = await findRoute(envelope.domain, deps)
  if ('result' in route) return ended(route)
  const { site, hosts, limits, isOwn, sts: mtaSts, secureNames } = route
  const at = { mtaSts, dnsMs: 0, isVerified: mtaSts === 'enforce', connections: limits.connectionsStart }
  const way = { site, hosts, limits, isOwn, secureNames, ...at }
  const send = { ...job, recipient: `${envelope.local}@${envelope.domain}` }
  return transmit({ send, way, onData: () => undefined }, deps, signal)
}

/** A domain `a.test` whose only MX is a server that obeys `script`; `run` performs one attempt. */
export async function setUpTransmit(t: Test, script: MxScript, more: Partial<SenderDeps> = {}) {
  const [mx, zone] = await Promise.all([startMx(script), startZone()])
  zone.set('a.test', { type: 'MX', exchange: 'mx.test', priority: 10 })
  zone.set('mx.test', { type: 'A', address: '127.0.0.1' })
  const deps = makeDeps(zone, mx.port, more)
  t.teardown(async () => {
    deps.resolver.close()
    deps.pool.close()
    await Promise.all([mx.close(), zone.close()])
  })
  const attempt = (job = JOB, signal = NEVER) => transmitJob(job, deps, signal)
  return { mx, zone, deps, attempt, run: async (job = JOB, signal = NEVER) => (await attempt(job, signal)).outcome }
}
