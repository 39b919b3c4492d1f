/**
 * thread - the body of a mail thread: composes messages and transmits (or simulates) them off the main thread.
 *
 * Jobs come in batches and outcomes leave in batches, one of each per turn of the event loop, because a message between
 * threads costs more than a small job.
 */

import { networkInterfaces } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { createResolver } from '../../dns/resolve.ts'
import type { MailInput } from '../../mail/compose/raw.ts'
import { isInsideAddress } from '../../mail/ip-address.ts'
import { simulatedOutcome } from '../../mail/simulator.ts'
import { monotonicMs, openFence } from '../../process/fence.ts'
import { createBrokenTls } from './attempt.ts'
import { buildMessage, refuseBuilt } from './build.ts'
import { createIssuers } from './dane.ts'
import { makeOutgoing } from './outgoing.ts'
import { Relay } from './relay.ts'
import { parseRelayUrl, type RelayTarget } from './relay-target.ts'
import { Relays } from './relays.ts'
import { SessionPool } from './session-pool.ts'
import {
  type ComposeJob,
  type FromThread,
  type MailJob,
  type MailOutcome,
  makeUnperformed,
  type SmtpSettings,
  type ThreadData,
  type ToThread,
  type TransmitJob,
} from './thread-job.ts'
import type { TransmitDeps } from './transmit.ts'
import { transmit } from './transmit.ts'

/** Interval at which a thread with open connections counts them. */
const LOOK_MS = 1000

const port = parentPort!
const { smtp, fence: cells } = workerData as ThreadData
const fence = openFence(cells)
const deps = createDeps(smtp)
const relay = createOwnRelay(smtp)
const relays = new Relays(relayOptions(smtp))
const outgoing = makeOutgoing()
const underWay = new Map<number, UnderWay>()
let done: { id: number; outcome: MailOutcome }[] = []
let isDraining = false
/** The last reported number of connections, and its timer. */
let told = 0
let watch: NodeJS.Timeout | null = null

interface UnderWay {
  readonly controller: AbortController
  /** The server has asked for the message and may have accepted it. */
  isPastData: boolean
  /** The final dot was sent: only its answer is missing. */
  isPastDot: boolean
}

port.on('message', (order: ToThread) => {
  if (order.kind === 'cancel') cancel(order.id, order.sparesDot)
  else if (order.kind === 'drain') drain()
  else for (const { id, job } of order.jobs) perform(id, job)
})

function cancel(id: number, sparesDot: boolean): void {
  const state = underWay.get(id)
  if (!(sparesDot && state?.isPastDot)) state?.controller.abort()
}

function drain(): void {
  isDraining = true
  for (const { controller, isPastData } of underWay.values()) if (!isPastData) controller.abort()
}

function perform(id: number, job: MailJob): void {
  const message = ownedMessage(job.message)
  if ('simulate' in job) {
    const built = buildMessage(message)
    const refusal = refuseBuilt(built, message)
    report(id, refusal ?? { ...simulatedOutcome(job.simulate), sizeBytes: (built as Buffer).length })
  } else if (isDraining) report(id, makeUnperformed('the service is stopping'))
  else if ('compose' in job) void composeOne(id, { ...job, message })
  else void transmitOne(id, { ...job, message })
}

/** Builds and signs. */
async function composeOne(id: number, { message, compose: { keys } }: ComposeJob): Promise<void> {
  const ready = await outgoing({ message, keys, copies: 1 })
  report(id, 'result' in ready ? ready : { ...makeUnperformed('the message was composed only'), ...ready })
}

/** Builds, signs and transmits. */
async function transmitOne(id: number, { message, transmit: how }: TransmitJob): Promise<void> {
  const { recipient, mailFrom, keys, copies, way, relay: own, sharers, pass } = how
  const state: UnderWay = { controller: new AbortController(), isPastData: false, isPastDot: false }
  underWay.set(id, state)
  const onData = () => {
    state.isPastData = true
    state.isPastDot = false
  }
  const mayBegin = () => fence.look(pass) !== 'shut'
  const mayFinish = () => {
    const standing = fence.look(pass)
    state.isPastDot = standing === 'open'
    return standing
  }
  const ready = await outgoing({ message, keys, copies })
  const outcome = 'result' in ready ? ready : { ...(await send(ready.bytes)), sizeBytes: ready.sizeBytes }
  underWay.delete(id)
  report(id, outcome)

  async function send(bytes: Buffer): Promise<MailOutcome> {
    const envelope = { recipient, mailFrom, message: bytes, mayBegin, mayFinish }
    const { signal } = state.controller
    const { outcome, ...rest } =
      way === null
        ? await (own === undefined ? relay : relays.of(own)).send({ ...envelope, onData }, signal, sharers)
        : await transmit({ send: envelope, way, onData }, deps, signal)
    return { ...outcome, ...rest, sizeBytes: bytes.length }
  }
}

/** Turns attachments, or a raw message, back into Buffers: messages between threads carry Uint8Arrays. */
function ownedMessage(input: MailInput): MailInput {
  if ('raw' in input) return { ...input, raw: asBuffer(input.raw) }
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
  tell(openConnections())
}

function openConnections(): number {
  return deps.pool.open + relay.open + relays.open
}

function tell(connections: number): void {
  const batch: FromThread = { done, connections }
  done = []
  told = connections
  port.postMessage(batch)
  if (connections > 0 && watch === null) watch = setInterval(look, LOOK_MS).unref()
}

/** Reports the number of connections until it is zero, because connections open and close between outcomes too. */
function look(): void {
  const connections = openConnections()
  if (connections !== told) tell(connections)
  if (connections > 0 || watch === null) return
  clearInterval(watch)
  watch = null
}

function createDeps(settings: SmtpSettings): TransmitDeps {
  const { ehloName, timeouts, ca, connectionsMax } = settings
  return {
    ehloName,
    timeouts,
    ca,
    port: settings.deliveryPort,
    usesIpv6: settings.usesIpv6,
    privateNetworksAllowed: settings.privateNetworksAllowed,
    ownAddresses: findOwnAddresses(),
    brokenTls: createBrokenTls(),
    issuers: createIssuers(monotonicMs),
    shunned: new Map(),
    resolver: createResolver({
      servers: settings.dnsServers,
      isTrusted: settings.isDnsTrusted,
      nowMs: monotonicMs,
    }),
    pool: new SessionPool({ connectionsMax, nowMs: monotonicMs }),
    nowMs: monotonicMs,
  }
}

/** The relay of the settings; without one a relay that nothing is ever given to. */
function createOwnRelay(settings: SmtpSettings): Relay {
  const { relayUrl, relayConnections: connectionsMax } = settings
  const target = parseRelayUrl(relayUrl ?? 'smtp://127.0.0.1') as RelayTarget
  return new Relay({ ...relayOptions(settings), target, connectionsMax })
}

function relayOptions({ ehloName, timeouts, ca }: SmtpSettings) {
  return { ehloName, timeouts, ca, isOutside: (address: string) => !isInsideAddress(address) }
}

function findOwnAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((one) => one.address))
}
