/**
 * thread - the body of a mail thread: composes messages and transmits (or simulates) them off the main thread.
 *
 * Jobs come in batches and outcomes leave in batches, one of each per turn of the event loop, because a message between
 * threads costs more than a small job. A message of some size is built once for all its recipients.
 */

import { networkInterfaces } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { ComposeInput } from '../mail/compose.ts'
import { simulatedOutcome } from '../mail/simulator.ts'
import { createBrokenTls } from './attempt.ts'
import { buildMessage, refuseBuilt } from './build.ts'
import { mayFinish, monotonicMs } from './fence.ts'
import { createRelay, parseRelayUrl } from './relay.ts'
import { createResolver } from './resolve.ts'
import type { FromThread, MailJob, MailOutcome, SmtpSettings, ThreadData, ToThread } from './thread-job.ts'
import type { TransmitDeps } from './transmit.ts'
import { transmit } from './transmit.ts'

/** Messages from this size on are kept for their other recipients: below, building is cheaper than keeping. */
const KEPT_BYTES_MIN = 65_536
const KEPT_MAX = 4

const port = parentPort!
const { smtp, fence } = workerData as ThreadData
const deps = createDeps(smtp)
const kept = new Map<string, Buffer>()
const controllers = new Map<number, AbortController>()
const waiting: (() => void)[] = []
let done: { id: number; outcome: MailOutcome }[] = []
let running = 0

port.on('message', (told: ToThread) => {
  if (told.kind === 'cancel') controllers.get(told.id)?.abort()
  else for (const { id, job } of told.jobs) perform(id, job)
})

function perform(id: number, job: MailJob): void {
  const message = build(job.message)
  const refusal = refuseBuilt(message)
  if (message === null || refusal !== null) report(id, refusal as MailOutcome)
  else if ('simulate' in job) report(id, { ...simulatedOutcome(job.simulate), sizeBytes: message.length })
  else {
    const controller = new AbortController()
    controllers.set(id, controller)
    const begin = async () => {
      const outcome = await transmit({ ...job.transmit, message }, deps, controller.signal)
      controllers.delete(id)
      report(id, { ...outcome, sizeBytes: message.length })
      // The place is handed on, so the count stays.
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
    // The main thread bounds what waits here: it holds a promise for each.
    if (running >= smtp.connectionsMax) waiting.push(begin)
    else {
      running += 1
      void begin()
    }
  }
}

/** The bytes of a message, null when it cannot be built. */
function build(input: ComposeInput): Buffer | null {
  const known = kept.get(input.messageId)
  if (known) return known
  const attachments = input.attachments.map((one) => ({ ...one, content: asBuffer(one.content) }))
  const message = buildMessage({ ...input, attachments })
  if (message !== null && message.length >= KEPT_BYTES_MIN) keep(input.messageId, message)
  return message
}

function keep(messageId: string, message: Buffer): void {
  if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value as string)
  kept.set(messageId, message)
}

/** A Buffer arrives as a Uint8Array. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function report(id: number, outcome: MailOutcome): void {
  if (done.length === 0) setImmediate(flush)
  done.push({ id, outcome })
}

function flush(): void {
  const batch: FromThread = done
  done = []
  port.postMessage(batch)
}

function createDeps(settings: SmtpSettings): TransmitDeps {
  const target = settings.relayUrl === null ? null : parseRelayUrl(settings.relayUrl)
  const { ehloName, timeouts } = settings
  return {
    ehloName,
    timeouts,
    port: settings.deliveryPort,
    privateNetworksAllowed: settings.privateNetworksAllowed,
    ownAddresses: findOwnAddresses(),
    brokenTls: createBrokenTls(),
    resolver: createResolver({ servers: settings.dnsServers, nowMs: monotonicMs }),
    relay:
      target &&
      createRelay({ target, connectionsMax: settings.relayConnections, ehloName, timeouts, ca: settings.relayCa }),
    nowMs: monotonicMs,
    mayFinish: () => mayFinish(fence),
    unit: Math.random,
  }
}

function findOwnAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((one) => one.address))
}
