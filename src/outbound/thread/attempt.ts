/**
 * attempt - a session with one address of one mail server, in the clear when its TLS is broken and nothing demands TLS.
 *
 * TLS is opportunistic (RFC 3207, RFC 7435): encryption without a verified certificate is better than none, and mail
 * that cannot be encrypted is better than mail that is lost. A server whose handshake failed is recorded for three
 * days. If MTA-STS requires it, TLS with a certificate that holds is the only way (RFC 8461 5); if the server has TLSA
 * records, TLS with a certificate that they name (RFC 7672 2).
 *
 * Spec delivery.tls, delivery.sts, delivery.dane
 */

import { isIP } from 'node:net'
import type { Outcome } from '../../mail/outcome.ts'
import { makeDeferred, makeReturned } from '../../mail/outcome.ts'
import type { Contact } from '../../mail/site-pace.ts'
import { connect } from './connect.ts'
import type { OpenInput, Session, SessionFailure, SmtpTimeouts } from './converse.ts'
import { openSession } from './converse.ts'
import { type DaneChecked, type DaneDemand, type Issuers, type OpenedAt, openDane } from './dane.ts'
import { judgeFailure } from './judge.ts'

/** The begin of our text about a server that no TLSA record authenticates; a reply begins with its code. */
export const DANE_REFUSAL = '4.7.5 DANE'
const BROKEN_TLS_AGE_MS = 3 * 24 * 3_600_000
const BROKEN_TLS_MAX = 10_000

export interface AttemptDeps {
  readonly ehloName: string
  readonly port: number
  readonly timeouts: SmtpTimeouts
  readonly brokenTls: BrokenTls
  /** Issuers that TLSA records named. */
  readonly issuers: Issuers
  /** Authority in place of the system's (PEM); null = the system's. */
  readonly ca: string | null
  /** Monotonic clock in milliseconds. */
  nowMs(): number
}

/** A session, or the outcome of its failure, the state of the server, and how long the connection took. */
export type Attempted =
  | { readonly ok: true; readonly session: Session; readonly checked: DaneChecked }
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
  /** The demand of the server's TLSA records; null if it has none, undefined if they were not looked up. */
  readonly dane?: DaneDemand | null | undefined
  /** Absent: the system chooses the address, and the name is that of the settings. */
  readonly source?: WaySource
}

/** An own address, and the name in EHLO. */
export interface WaySource {
  readonly address: string
  readonly ehlo: string | null
}

/** Connects and greets. Never rejects. */
export async function attemptAddress(input: AttemptInput, deps: AttemptDeps, signal: AbortSignal): Promise<Attempted> {
  const where = `${input.host}[${input.address}]:${deps.port}`
  const { opened, checked, refused } = await (input.dane
    ? openDane(input.dane, (tls, check) => openAt(input, { tls: 'required', tlsOptions: tls, check, deps }, signal), {
        ...deps,
        ...input,
      })
    : openPlainly(input, deps, signal))
  if (opened.ok) return { ...opened, checked }
  if (signal.aborted)
    return { ok: false, outcome: makeReturned('abort', 'attempt was cut off'), contact: 'none', connectMs: null }
  const { connectMs } = opened
  if ('text' in opened) {
    const contact = opened.text.includes('ETIMEDOUT') ? 'silent' : 'refused'
    return { ok: false, outcome: makeDeferred('conn', 'NoAnswerFromHost', opened.text), contact, connectMs }
  }
  return { ...judgeOpening(opened.failure, { where, refused, input }), connectMs }
}

/** Encrypted and verified if MTA-STS demands it, otherwise as well as the server can. */
async function openPlainly(input: AttemptInput, deps: AttemptDeps, signal: AbortSignal) {
  const isKnownBroken = deps.brokenTls.has(input.host, deps.nowMs())
  const tls = input.isVerified ? 'required' : isKnownBroken ? 'none' : 'opportunistic'
  const servername = isIP(input.host) === 0 ? { servername: input.host } : {}
  const tlsOptions = { rejectUnauthorized: tls === 'required', ...servername }
  let opened = await openAt(input, { tls, tlsOptions, deps }, signal)
  if (tls === 'opportunistic' && !opened.ok && 'failure' in opened && opened.failure.kind === 'handshake') {
    deps.brokenTls.add(input.host, deps.nowMs())
    opened = await openAt(input, { tls: 'none', tlsOptions, deps }, signal)
  }
  const checked = { dane: null, checkedFor: input.dane === null ? '' : null, isPublic: true }
  return { opened, checked, refused: null }
}

interface JudgeInput {
  readonly where: string
  readonly refused: string | null
  readonly input: AttemptInput
}

function judgeOpening(
  failure: SessionFailure,
  { where, refused, input: { isVerified, dane } }: JudgeInput,
): Omit<Attempted & { ok: false }, 'connectMs'> {
  if (failure.kind === 'handshake' && (isVerified || dane)) {
    const rule = dane && !(isVerified && dane.records.length === 0) ? DANE_REFUSAL : '4.7.5 MTA-STS'
    const text = `${rule}: no verified TLS with ${where} (${refused ?? failure.text})`
    return { ok: false, outcome: makeDeferred('conn', 'PolicyRelated', text), contact: 'answered' }
  }
  const contact = failure.kind === 'lost' ? 'refused' : failure.kind === 'timeout' ? 'silent' : 'answered'
  return { ok: false, outcome: judgeFailure(failure, where), contact }
}

interface OpenAtInput extends Pick<OpenInput, 'tlsOptions'> {
  readonly tls: 'required' | 'opportunistic' | 'none'
  readonly check?: OpenInput['checkPeer']
  readonly deps: AttemptDeps
}

async function openAt(
  { host, address, source }: AttemptInput,
  { tls, tlsOptions, check, deps }: OpenAtInput,
  signal: AbortSignal,
): Promise<OpenedAt> {
  const from = source && { localAddress: source.address }
  const connected = await connect(
    { host, address, port: deps.port, timeoutMs: deps.timeouts.connectMs, ...from },
    signal,
  )
  const connectMs = connected.ms
  if (!connected.ok) return { ok: false, text: connected.text, connectMs }
  const ca = deps.ca === null ? {} : { ca: deps.ca }
  const opened = await openSession(
    {
      socket: connected.socket,
      host,
      ehloName: source?.ehlo ?? deps.ehloName,
      tls,
      tlsOptions: { minVersion: 'TLSv1.2', ...ca, ...tlsOptions },
      ...(check && { checkPeer: check }),
      auth: null,
      timeouts: deps.timeouts,
      connectMs,
    },
    signal,
  )
  return { ...opened, connectMs }
}
