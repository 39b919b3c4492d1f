/**
 * thread-pool - the threads that compose and transmit mail, so that a burst of mail does not slow acceptance.
 *
 * Guarantees: every job gets exactly one outcome, also when its thread dies (then `returned`); a thread that dies is
 * replaced, at most five times a minute; jobs of one turn of the event loop travel in one message per thread.
 */

import { setMaxListeners } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Fence } from '../../cluster/fence.ts'
import { LOST_CLAIM } from '../../cluster/items/lane-runner.ts'
import type { MailInput } from '../mail/compose/raw.ts'
import { monotonicMs } from '../process/fence.ts'
import { parseRelayUrl } from './thread/relay-target.ts'
import {
  type FromThread,
  type MailJob,
  type MailOutcome,
  makeUnperformed,
  type SmtpSettings,
  type ThreadData,
  TOO_LATE,
  type ToThread,
} from './thread/thread-job.ts'

const RESTARTS_MAX = 5
const RESTARTS_WITHIN_MS = 60_000
/** How long `close` waits for attempts that are under way. */
const CLOSE_GRACE_MS = 8000
const CLOSE_STEP_MS = 20

export interface MailThreadsOptions {
  /** Number of threads; one if the machine has two cores or fewer. */
  readonly size: number
  readonly smtp: SmtpSettings
  /** Until its first heartbeat no message is finished. */
  readonly fence: Fence
}

export interface MailThreads {
  /**
   * Performs one attempt; the signal cuts it off, with `TOO_LATE` and `LOST_CLAIM` only before its final dot. Never
   * rejects. A site's attempts are all in one thread.
   */
  run(job: MailJob, signal: AbortSignal): Promise<MailOutcome>
  /** Jobs under way. */
  pending(): number
  /** Connections to receiving servers and the relay, as last reported, at most a second ago. */
  connections(): number
  /**
   * Accepts no more jobs, cuts attempts whose message no server has asked for, waits for the others (8 s by default),
   * and ends the threads; remaining jobs are `returned`.
   */
  close(graceMs?: number): Promise<void>
}

type Settle = (outcome: MailOutcome) => void

interface Thread {
  worker: Worker | null
  readonly pending: Map<number, Settle>
  /** Jobs of this turn of the event loop. */
  outbox: { id: number; job: MailJob }[]
  /** Monotonic times of its starts within the last minute. */
  startedAtMs: number[]
  connections: number
  readonly data: ThreadData
}

/** Starts the threads. Throws for an invalid relay URL, which is an error of the configuration. */
export function createMailThreads(options: MailThreadsOptions): MailThreads {
  const { smtp } = options
  if (smtp.relayUrl !== null && parseRelayUrl(smtp.relayUrl) === null) throw new Error('Cannot use the relay URL')
  const size = Math.max(1, options.size)
  const share = (all: number) => Math.max(1, Math.floor(all / size))
  const dataOf = (index: number): ThreadData => {
    // Together exactly as many as are allowed; a thread without any is given nothing for the relay.
    const relayConnections = Math.floor((smtp.relayConnections + size - 1 - index) / size)
    return {
      fence: options.fence.cells,
      smtp: { ...smtp, relayConnections, connectionsMax: share(smtp.connectionsMax) },
    }
  }
  const threads = Array.from({ length: size }, (_, index) => makeThread(dataOf(index)))
  let isClosing = false
  let nextId = 0

  for (const thread of threads) start(thread)

  function run(job: MailJob, signal: AbortSignal): Promise<MailOutcome> {
    const thread = threadFor(threads, job)
    const isUp = !isClosing && (thread.worker !== null || start(thread))
    if (!isUp || signal.aborted)
      return Promise.resolve(makeUnperformed(signal.aborted ? 'attempt was cut off' : 'no mail thread'))
    nextId += 1
    return dispatch(thread, { id: nextId, job: detach(job) }, signal)
  }

  function pending(): number {
    return threads.reduce((sum, thread) => sum + thread.pending.size, 0)
  }

  async function close(graceMs: number = CLOSE_GRACE_MS): Promise<void> {
    isClosing = true
    for (const thread of threads) post(thread, { kind: 'drain' })
    const untilMs = monotonicMs() + graceMs
    while (pending() > 0 && monotonicMs() < untilMs) await new Promise((resolve) => setTimeout(resolve, CLOSE_STEP_MS))
    await Promise.all(threads.map((thread) => thread.worker?.terminate()))
  }

  const connections = (): number => threads.reduce((sum, thread) => sum + thread.connections, 0)

  return { run, pending, connections, close }
}

/** The thread that has the job's site, or the one with the least work. */
function threadFor(threads: readonly Thread[], job: MailJob): Thread {
  // All connections of a relay are in one thread, and so are all of a site.
  const site = 'transmit' in job ? (job.transmit.way?.site ?? job.transmit.relay?.source) : undefined
  if (site === undefined) {
    const able = 'transmit' in job ? threads.filter(({ data }) => data.smtp.relayConnections > 0) : threads
    return able.reduce((best, one) => (one.pending.size < best.pending.size ? one : best))
  }
  let hash = 0
  for (let at = 0; at < site.length; at += 1) hash = (hash * 31 + site.charCodeAt(at)) >>> 0
  return threads[hash % threads.length] as Thread
}

function makeThread(data: ThreadData): Thread {
  return { worker: null, pending: new Map(), outbox: [], startedAtMs: [], connections: 0, data }
}

/** Starts a thread's worker; false if it has died too often recently. */
function start(thread: Thread): boolean {
  const nowMs = monotonicMs()
  thread.startedAtMs = thread.startedAtMs.filter((atMs) => nowMs - atMs < RESTARTS_WITHIN_MS)
  if (thread.startedAtMs.length > RESTARTS_MAX) return false
  thread.startedAtMs.push(nowMs)
  // Nothing of the process's own start is inherited: loaders and options of NODE_OPTIONS are not for this thread.
  const worker = new Worker(new URL('./thread/thread.js', import.meta.url), {
    workerData: thread.data,
    execArgv: [],
    env: {},
  })
  thread.worker = worker
  worker.on('message', ({ done, connections }: FromThread) => {
    thread.connections = connections
    for (const { id, outcome } of done) thread.pending.get(id)?.(outcome)
  })
  // An error is followed by `exit`, which is handled; without a listener it would end the process.
  worker.on('error', () => undefined)
  worker.on('exit', () => {
    if (thread.worker === worker) thread.worker = null
    thread.connections = 0
    for (const settle of [...thread.pending.values()]) settle(makeUnperformed('mail thread ended'))
    thread.outbox = []
  })
  return true
}

function dispatch(thread: Thread, entry: { id: number; job: MailJob }, signal: AbortSignal): Promise<MailOutcome> {
  return new Promise((resolve) => {
    const onAbort = () =>
      post(thread, {
        kind: 'cancel',
        id: entry.id,
        sparesDot: signal.reason === TOO_LATE || signal.reason === LOST_CLAIM,
      })
    // One signal may have any number of jobs.
    setMaxListeners(0, signal)
    thread.pending.set(entry.id, (outcome) => {
      thread.pending.delete(entry.id)
      signal.removeEventListener('abort', onAbort)
      resolve(outcome)
    })
    signal.addEventListener('abort', onAbort, { once: true })
    if (thread.outbox.length === 0) setImmediate(flush, thread)
    thread.outbox.push(entry)
  })
}

function flush(thread: Thread): void {
  const jobs = thread.outbox
  thread.outbox = []
  if (jobs.length > 0) post(thread, { kind: 'jobs', jobs })
}

function post(thread: Thread, told: ToThread): void {
  // A cancel must not overtake its job.
  if (told.kind !== 'jobs') flush(thread)
  const owned = told.kind === 'jobs' ? told.jobs.flatMap(({ job }) => ownBuffers(job.message)) : []
  thread.worker?.postMessage(told, owned)
}

/**
 * Copies attachments, or a message received whole, into buffers of their own, because cloning a slice of a larger
 * buffer copies the whole buffer.
 */
function detach(job: MailJob): MailJob {
  const { message } = job
  if ('raw' in message) return { ...job, message: { ...message, raw: Uint8Array.from(message.raw) as Buffer } }
  if (message.attachments.length === 0) return job
  const attachments = message.attachments.map((one) => ({
    ...one,
    content: Uint8Array.from(one.content) as Buffer,
  }))
  return { ...job, message: { ...message, attachments } }
}

function ownBuffers(message: MailInput): ArrayBuffer[] {
  if ('raw' in message) return [message.raw.buffer as ArrayBuffer]
  return message.attachments.map(({ content }) => content.buffer as ArrayBuffer)
}
