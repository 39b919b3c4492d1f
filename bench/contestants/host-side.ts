/**
 * host-side - the part of a contestant's process that speaks with the benchmark: start, profile, stop
 */

import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import type { EngineName } from '../../src/http/engine/engine.ts'
import type { Target } from '../load/message.ts'

/** How a contestant is to run. */
export interface HostOrder {
  readonly socketPath: string
  /** In place of it: nodes of a cluster, or the address of the one Redis. */
  readonly seeds: readonly string[] | null
  /** A directory of its own. */
  readonly dir: string
  /** Accounts of the product, each with a server and a key. */
  readonly accounts: number
  /** Messages are accepted and wait: no performer takes them. */
  readonly isHeld: boolean
  readonly mode: 'live' | 'test'
  readonly relayUrl: string | null
  /** Delivery to mail servers on the loopback; null: not at all, or through the relay. */
  readonly mx: { readonly dnsServer: string; readonly port: number } | null
  /** Processes with the actors beside the one that listens; 0: one process is all of it. */
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
  /** Listener of `/metrics`; null where there is none. */
  readonly operatorPort: number | null
  /** Where SMTP submission is listened for, if it is. */
  readonly submissionPort?: number
  /** Further processes of it, and where each tells its figures. */
  readonly workers?: readonly { readonly pid: number; readonly operatorPort: number }[]
}

/** What the benchmark sends. */
export type HostCall =
  | { readonly call: 'start'; readonly order: HostOrder }
  | { readonly call: 'profile' }
  | { readonly call: 'profiled'; readonly path: string }
  | { readonly call: 'stop' }

/** What goes back, one for each call. */
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
