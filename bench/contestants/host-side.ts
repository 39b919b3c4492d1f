/** host-side - the part of a contestant's process that talks to the benchmark: start, profile, stop */

import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import type { EngineName } from '../../src/http/engine/engine.ts'
import type { Target } from '../load/message.ts'

/** Settings of a contestant. */
export interface HostOrder {
  readonly socketPath: string
  /** Instead of the socket: nodes of a cluster, or the address of the one Redis. */
  readonly seeds: readonly string[] | null
  /** Its own directory. */
  readonly dir: string
  /** Accounts of the product, each with a server and a key. */
  readonly accounts: number
  /** Accepted messages stay queued, without a performer. */
  readonly isHeld: boolean
  readonly mode: 'live' | 'test'
  readonly relayUrl: string | null
  /** Delivery to mail servers on the loopback; null for no delivery, or for delivery through the relay. */
  readonly mx: { readonly dnsServer: string; readonly port: number } | null
  /** Separate processes with the actors; 0 if one process does everything. */
  readonly workers: number
  /** Whether the product listens for SMTP submission. */
  readonly isSubmission: boolean
  /** `CONTENT_STORE`; null: unset. */
  readonly contentStore: 'file' | 'redis' | null
  /** `HTTP_ENGINE` of the product. */
  readonly engine: EngineName | 'auto'
}

/** A contestant that answers. */
export interface Ready extends Target {
  /** Port of `/metrics`; null if it is not served. */
  readonly operatorPort: number | null
  /** Where SMTP submission is listened for, if it is. */
  readonly submissionPort?: number
  /** Its further processes, and the ports of their metrics. */
  readonly workers?: readonly { readonly pid: number; readonly operatorPort: number }[]
}

/** Calls of the benchmark. */
export type HostCall =
  | { readonly call: 'start'; readonly order: HostOrder }
  | { readonly call: 'profile' }
  | { readonly call: 'profiled'; readonly path: string }
  | { readonly call: 'stop' }

/** Answers, one for each call. */
export type HostAnswer = { readonly ready: Ready } | { readonly done: true } | { readonly fault: string }

export interface Hosted {
  readonly ready: Ready
  stop(): Promise<void>
}

const PROFILE_INTERVAL_US = 250

/** Obeys the benchmark's calls until `stop`. */
export function obey(start: (order: HostOrder) => Promise<Hosted>): void {
  const session = new Session()
  let hosted: Hosted | null = null

  async function act(call: HostCall): Promise<HostAnswer> {
    if (call.call === 'start') {
      hosted = await start(call.order)
      return { ready: hosted.ready }
    }
    if (call.call === 'profile') await startProfile(session)
    else if (call.call === 'profiled') await writeProfile(session, call.path)
    else await hosted?.stop()
    return { done: true }
  }

  process.on('message', (message) => {
    const call = message as HostCall
    act(call)
      .catch((error: Error): HostAnswer => ({ fault: error.stack ?? error.message }))
      .then((answer) => {
        const isLast = call.call === 'stop' || 'fault' in answer
        process.send?.(answer, () => (isLast ? process.exit(0) : undefined))
      })
  })
  // The benchmark is gone: so is the reason to be here.
  process.on('disconnect', () => process.exit(1))
}

async function startProfile(session: Session): Promise<void> {
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: PROFILE_INTERVAL_US })
  await session.post('Profiler.start')
}

async function writeProfile(session: Session, path: string): Promise<void> {
  const { profile } = await session.post('Profiler.stop')
  writeFileSync(path, JSON.stringify(profile))
  session.disconnect()
}
