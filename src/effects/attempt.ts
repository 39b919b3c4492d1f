/**
 * attempt - one session with one address of one mail server, in the clear when its TLS is broken.
 *
 * TLS is opportunistic (RFC 3207, RFC 7435): encryption without a verified certificate is better than none, and mail that
 * cannot be encrypted is better than mail that is lost. A server whose handshake failed is remembered for three days.
 */

import { isIP } from 'node:net'
import type { Outcome } from '../mail/outcome.ts'
import { makeDeferred } from '../mail/outcome.ts'
import { connect } from './connect.ts'
import type { Opened, SendInput, SmtpTimeouts } from './converse.ts'
import { openSession } from './converse.ts'
import { judgeFailure, judgeSent } from './judge.ts'

const BROKEN_TLS_AGE_MS = 3 * 24 * 3_600_000
const BROKEN_TLS_MAX = 10_000

export interface AttemptDeps {
  readonly ehloName: string
  readonly port: number
  readonly timeouts: SmtpTimeouts
  readonly brokenTls: BrokenTls
  /** Monotonic clock in milliseconds. */
  nowMs(): number
  /** Read right before the final dot; false = the connection is dropped. */
  mayFinish(): boolean
}

export interface Tried {
  readonly outcome: Outcome
  /** No other server may be tried. */
  readonly isFinal: boolean
  /** The server said something: it was a session, not only an address. */
  readonly answered: boolean
}

/** Hosts whose TLS handshake failed, forgotten after three days. */
export interface BrokenTls {
  has(host: string, nowMs: number): boolean
  add(host: string, nowMs: number): void
}

/** An empty memory of at most 10,000 hosts; the oldest goes. */
export function createBrokenTls(): BrokenTls {
  const untilMs = new Map<string, number>()
  return {
    has: (host, nowMs) => (untilMs.get(host) ?? 0) > nowMs,
    add: (host, nowMs) => {
      untilMs.delete(host)
      if (untilMs.size >= BROKEN_TLS_MAX) untilMs.delete(untilMs.keys().next().value as string)
      untilMs.set(host, nowMs + BROKEN_TLS_AGE_MS)
    },
  }
}

interface AttemptInput {
  readonly host: string
  /** Checked by the caller. */
  readonly address: string
  readonly send: SendInput
}

/** Connects, speaks, and says whether another server may be tried after it. Never rejects. */
export async function attemptAddress(input: AttemptInput, deps: AttemptDeps, signal: AbortSignal): Promise<Tried> {
  const where = `${input.host}[${input.address}]:${deps.port}`
  const isKnownBroken = deps.brokenTls.has(input.host, deps.nowMs())
  let opened = await openAt(input, deps, signal, isKnownBroken)
  if (typeof opened !== 'string' && !opened.ok && opened.failure.kind === 'handshake') {
    deps.brokenTls.add(input.host, deps.nowMs())
    opened = await openAt(input, deps, signal, true)
  }
  if (typeof opened === 'string') {
    const outcome = signal.aborted
      ? makeDeferred('abort', 'TransientFailure', '4.3.2 attempt was cut off')
      : makeDeferred('conn', 'NoAnswerFromHost', opened)
    return { outcome, isFinal: signal.aborted, answered: false }
  }
  if (!opened.ok) {
    const { failure } = opened
    return { outcome: judgeFailure(failure, where), isFinal: signal.aborted, answered: failure.kind === 'reply' }
  }
  const sent = await opened.session.send(input.send, signal)
  if (opened.session.isOpen()) opened.session.quit()
  else opened.session.destroy()
  const outcome = judgeSent(sent, where)
  // 421 closes this session only; a loss before the server wanted the message has done nothing yet.
  const isElsewhere =
    outcome.code === 421 || (!sent.ok && sent.failure.kind === 'lost' && sent.failure.phase === 'mail')
  return { outcome, isFinal: !isElsewhere, answered: true }
}

/** A session, why there is none, or the text of a failed connection. */
async function openAt(
  { host, address }: AttemptInput,
  deps: AttemptDeps,
  signal: AbortSignal,
  isPlain: boolean,
): Promise<Opened | string> {
  const connected = await connect({ host, address, port: deps.port, timeoutMs: deps.timeouts.connectMs }, signal)
  if (!connected.ok) return connected.text
  const servername = isIP(host) === 0 ? { servername: host } : {}
  return openSession(
    {
      socket: connected.socket,
      host,
      ehloName: deps.ehloName,
      tls: isPlain ? 'none' : 'opportunistic',
      tlsOptions: { rejectUnauthorized: false, minVersion: 'TLSv1.2', ...servername },
      auth: null,
      timeouts: deps.timeouts,
    },
    signal,
  )
}
