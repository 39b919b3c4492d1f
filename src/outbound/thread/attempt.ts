/**
 * attempt - a session with one address of one mail server, in the clear when its TLS is broken and nothing demands TLS.
 *
 * TLS is opportunistic (RFC 3207, RFC 7435): encryption without a verified certificate is better than none, and mail
 * that cannot be encrypted is better than mail that is lost. A server whose handshake failed is recorded for three
 * days. If MTA-STS requires it, TLS with a certificate that holds is the only way (RFC 8461 5).
 *
 * Spec delivery.tls, delivery.sts
 */

import { isIP } from 'node:net'
import type { Outcome } from '../../mail/outcome.ts'
import { makeDeferred, makeReturned } from '../../mail/outcome.ts'
import type { Contact } from '../../mail/site-pace.ts'
import { connect } from './connect.ts'
import type { Opened, Session, SessionFailure, SmtpTimeouts } from './converse.ts'
import { openSession } from './converse.ts'
import { judgeFailure } from './judge.ts'

const BROKEN_TLS_AGE_MS = 3 * 24 * 3_600_000
const BROKEN_TLS_MAX = 10_000

export interface AttemptDeps {
  readonly ehloName: string
  readonly port: number
  readonly timeouts: SmtpTimeouts
  readonly brokenTls: BrokenTls
  /** Authority in place of the system's (PEM); null = the system's. */
  readonly ca: string | null
  /** Monotonic clock in milliseconds. */
  nowMs(): number
}

/** A session, or the outcome of its failure, the state of the server, and how long the connection took. */
export type Attempted =
  | { readonly ok: true; readonly session: Session }
  | { readonly ok: false; readonly outcome: Outcome; readonly contact: Contact; readonly connectMs: number | null }

/** Hosts whose TLS handshake failed, kept for three days. */
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
  /** MTA-STS: encrypted and verified, or not at all. */
  readonly isVerified: boolean
}

/** Connects and greets. Never rejects. */
export async function attemptAddress(input: AttemptInput, deps: AttemptDeps, signal: AbortSignal): Promise<Attempted> {
  const where = `${input.host}[${input.address}]:${deps.port}`
  const isKnownBroken = deps.brokenTls.has(input.host, deps.nowMs())
  const tls = input.isVerified ? 'required' : isKnownBroken ? 'none' : 'opportunistic'
  let opened = await openAt(input, { tls, deps }, signal)
  if (tls === 'opportunistic' && !opened.ok && 'failure' in opened && opened.failure.kind === 'handshake') {
    deps.brokenTls.add(input.host, deps.nowMs())
    opened = await openAt(input, { tls: 'none', deps }, signal)
  }
  if (opened.ok) return opened
  if (signal.aborted)
    return { ok: false, outcome: makeReturned('abort', 'attempt was cut off'), contact: 'none', connectMs: null }
  const { connectMs } = opened
  if ('text' in opened) {
    const contact = opened.text.includes('ETIMEDOUT') ? 'silent' : 'refused'
    return { ok: false, outcome: makeDeferred('conn', 'NoAnswerFromHost', opened.text), contact, connectMs }
  }
  return { ...judgeOpening(opened.failure, { where, isVerified: input.isVerified }), connectMs }
}

function judgeOpening(
  failure: SessionFailure,
  { where, isVerified }: { where: string; isVerified: boolean },
): Omit<Attempted & { ok: false }, 'connectMs'> {
  if (failure.kind === 'handshake' && isVerified) {
    const text = `4.7.5 MTA-STS: no verified TLS with ${where} (${failure.text})`
    return { ok: false, outcome: makeDeferred('conn', 'PolicyRelated', text), contact: 'answered' }
  }
  const contact = failure.kind === 'lost' ? 'refused' : failure.kind === 'timeout' ? 'silent' : 'answered'
  return { ok: false, outcome: judgeFailure(failure, where), contact }
}

/** A session, the reason why there is none, or the text of a failed connection. */
async function openAt(
  { host, address }: AttemptInput,
  { tls, deps }: { tls: 'required' | 'opportunistic' | 'none'; deps: AttemptDeps },
  signal: AbortSignal,
): Promise<(Opened | { readonly ok: false; readonly text: string }) & { readonly connectMs: number }> {
  const connected = await connect({ host, address, port: deps.port, timeoutMs: deps.timeouts.connectMs }, signal)
  const connectMs = connected.ms
  if (!connected.ok) return { ok: false, text: connected.text, connectMs }
  const servername = isIP(host) === 0 ? { servername: host } : {}
  const ca = deps.ca === null ? {} : { ca: deps.ca }
  const opened = await openSession(
    {
      socket: connected.socket,
      host,
      ehloName: deps.ehloName,
      tls,
      tlsOptions: { rejectUnauthorized: tls === 'required', minVersion: 'TLSv1.2', ...servername, ...ca },
      auth: null,
      timeouts: deps.timeouts,
      connectMs,
    },
    signal,
  )
  return { ...opened, connectMs }
}
