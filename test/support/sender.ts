/** sender - what a transmit test needs on our side: a zone, settings that reach the loopback, short time limits. */

import type { Test } from 'tap'
import { createBrokenTls } from '../../src/effects/attempt.ts'
import { SMTP_TIMEOUTS } from '../../src/effects/converse.ts'
import { createResolver } from '../../src/effects/resolve.ts'
import type { TransmitDeps, TransmitJob } from '../../src/effects/transmit.ts'
import { transmit } from '../../src/effects/transmit.ts'
import type { MxScript } from './mx.ts'
import { startMx } from './mx.ts'
import type { Zone } from './zone.ts'
import { startZone } from './zone.ts'

const NEVER = new AbortController().signal

/** Long enough for a loaded machine, short enough for a test of silence. */
export const SHORT_TIMEOUTS = { ...SMTP_TIMEOUTS, connectMs: 2000, closeMs: 500 }

/** Mail to `ann@a.test`; `message` has a line that begins with a dot. */
export const JOB: TransmitJob = {
  recipient: 'ann@a.test',
  mailFrom: 'bounce@rp.svc.test',
  message: Buffer.from('Subject: x\r\n\r\nhello\r\n.dot\r\n'),
}

/** Dependencies with a resolver on the zone; everything else may be replaced. */
export function makeDeps(zone: Zone, port: number, more: Partial<TransmitDeps> = {}): TransmitDeps {
  return {
    resolver: createResolver({ servers: [zone.server], nowMs: () => 0 }),
    relay: null,
    privateNetworksAllowed: ['127.0.0.0/8'],
    ownAddresses: [],
    ehloName: 'out.svc.test',
    port,
    timeouts: SHORT_TIMEOUTS,
    brokenTls: createBrokenTls(),
    nowMs: () => performance.now(),
    mayFinish: () => true,
    unit: () => 0.5,
    ...more,
  }
}

/** A domain `a.test` whose only MX is a server that obeys `script`; `run` performs one attempt. */
export async function setUpTransmit(t: Test, script: MxScript, more: Partial<TransmitDeps> = {}) {
  const [mx, zone] = await Promise.all([startMx(script), startZone()])
  zone.set('a.test', { type: 'MX', exchange: 'mx.test', priority: 10 })
  zone.set('mx.test', { type: 'A', address: '127.0.0.1' })
  const deps = makeDeps(zone, mx.port, more)
  t.teardown(async () => {
    deps.resolver.close()
    await Promise.all([mx.close(), zone.close()])
  })
  return { mx, zone, deps, run: (job = JOB, signal = NEVER) => transmit(job, deps, signal) }
}
