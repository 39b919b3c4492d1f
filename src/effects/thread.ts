/**
 * thread - the body of a mail thread: composes messages and transmits (or simulates) them off the main thread.
 *
 * Jobs come in batches and outcomes leave in batches, one of each per turn of the event loop, because a message between
 * threads costs more than a small job.
 */

import { networkInterfaces } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { ComposeInput } from '../mail/compose.ts'
import { simulatedOutcome } from '../mail/simulator.ts'
import { createBrokenTls } from './attempt.ts'
import { buildMessage, refuseBuilt } from './build.ts'
import { mayFinish, monotonicMs } from './fence.ts'
import { makeOutgoing } from './outgoing.ts'
import { createRelay, parseRelayUrl } from './relay.ts'
import { createResolver } from './resolve.ts'
import type { FromThread, MailJob, MailOutcome, SmtpSettings, ThreadData, ToThread, TransmitJob } from './thread-job.ts'
import type { TransmitDeps } from './transmit.ts'
import { transmit } from './transmit.ts'

const port = parentPort!
const { smtp, fence } = workerData as ThreadData
const deps = createDeps(smtp)
const outgoing = makeOutgoing()
const controllers = new Map<number, AbortController>()
const waiting: (() => void)[] = []
let done: { id: number; outcome: MailOutcome }[] = []
let running = 0

port.on('message', (told: ToThread) => {
  if (told.kind === 'cancel') controllers.get(told.id)?.abort()
  else for (const { id, job } of told.jobs) perform(id, job)
})

function perform(id: number, job: MailJob): void {
  const message = ownedMessage(job.message)
  if ('simulate' in job) {
    const built = buildMessage(message)
    const refusal = refuseBuilt(built)
    report(id, refusal ?? { ...simulatedOutcome(job.simulate), sizeBytes: (built as Buffer).length })
    return
  }
  const controller = new AbortController()
  controllers.set(id, controller)
  const begin = async () => {
    const outcome = await send({ ...job, message }, controller.signal)
    controllers.delete(id)
    report(id, outcome)
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

/** Builds, signs and transmits. Never rejects. */
async function send({ message, transmit: how }: TransmitJob, signal: AbortSignal): Promise<MailOutcome> {
  const { recipient, mailFrom, keys, copies } = how
  const ready = await outgoing({ message, keys, copies })
  if ('result' in ready) return ready
  const outcome = await transmit({ recipient, mailFrom, message: ready.bytes }, deps, signal)
  return { ...outcome, sizeBytes: ready.sizeBytes }
}

/** Attachments as Buffers, which they were before they crossed. */
function ownedMessage(input: ComposeInput): ComposeInput {
  if (input.attachments.length === 0) return input
  return { ...input, attachments: input.attachments.map((one) => ({ ...one, content: asBuffer(one.content) })) }
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
