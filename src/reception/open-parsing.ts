/**
 * open-parsing - parses and judges received mail in a process with actors: the threads, and the lanes that they work
 * for
 *
 * Threads start with the first mail. It has a separate DNS resolver, so that slow name servers of senders delay no
 * other query.
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import { msOf } from '../../cluster/id.ts'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import type { DnsClient } from '../dns/client.ts'
import { createResolver } from '../dns/resolve.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'
import type { Metrics } from '../process/metrics.ts'
import type { SubmittedBody } from '../sending/submitted-body.ts'
import { ByteGate } from './byte-gate.ts'
import { FreshMails } from './fresh-mails.ts'
import { makeJudgeLane } from './judge-lane.ts'
import { makeLookLane } from './look-lane.ts'
import { type MailJudge, makeMailJudge } from './mail-judge.ts'
import { type JudgeReceived, makeParseLane, type ParseLaneDeps } from './parse-lane.ts'
import { makeReceivedParser } from './received-parser.ts'
import { makeBodyReader } from './submission/body-reader.ts'

/** Bytes of raw mails in memory. */
const RAW_BYTES_MAX = 48 * 1024 * 1024

/** Received mail, taken apart and judged. */
export interface Parsing {
  /** Mails that this process has just accepted and will parse; null if it accepts none or parses none. */
  readonly freshMails: FreshMails | null
  /** Judges other mail, in the same threads. */
  readonly judges: Pick<MailJudge, 'judge'>
  /** The lanes. `room` is an additional bound for each lane. */
  lanes(room: ((lane: string) => number) | undefined): LaneType[]
  /** Parses a message that a client handed over; `busy`: too much is waiting. */
  readonly readSubmitted: (raw: Buffer) => SubmittedBody | Promise<SubmittedBody | 'busy'>
  /** Ends the threads. */
  close(): Promise<void>
}

/** Dependencies of the threads. */
export type ParsingDeps = Pick<ParseLaneDeps, 'received' | 'secrets'> & {
  readonly config: Pick<Config, 'roles' | 'smtpHostname'>
  readonly metrics: Pick<Metrics, 'parsed' | 'judged'>
  readonly dns: DnsClient
}

/** Makes the parsers and the judges. */
export function openParsing({ received, secrets, config, metrics, dns }: ParsingDeps): Parsing {
  const parsers = { slow: makeReceivedParser(), fast: makeReceivedParser() }
  const resolver = createResolver({ client: dns, nowMs: monotonicMs })
  const judges = makeMailJudge({ resolver, nowMs: monotonicMs })
  const judge = makeJudge(judges, { receiver: config.smtpHostname, metrics })
  const submitted = makeBodyReader()
  const bytes = new ByteGate(RAW_BYTES_MAX)
  const { roles } = config
  const freshMails = roles.includes('mx') && roles.includes('actors') ? new FreshMails(monotonicMs) : null
  return {
    freshMails,
    judges,
    lanes(room) {
      const deps = { received, freshMails, judge, bytes, ...(room !== undefined && { room }) }
      const parses = makeParseLane({ ...deps, parsers, secrets, metrics, random: Math.random })
      return [parses, makeJudgeLane(deps), makeLookLane({ received, secrets, ...(room !== undefined && { room }) })]
    },
    readSubmitted: (raw) => submitted.read({ edited: raw, isKeyed: false }),
    async close() {
      resolver.close()
      await Promise.all([parsers.slow.close(), parsers.fast.close(), judges.close(), submitted.close()])
    },
  }
}

/** Signatures are judged for the moment at which the mail came, whenever that is done. */
function makeJudge(
  judge: MailJudge,
  { receiver, metrics }: { receiver: string; metrics: Pick<Metrics, 'judged'> },
): JudgeReceived {
  return (raw, { head, messageId }) => {
    if (head.session === null) return { isRead: Promise.resolve(), check: Promise.resolve(null) }
    const sender = { address: head.sender ?? '', ...head.session, receiver }
    const startedAtMs = performance.now()
    const { isRead, judgement } = judge.judge({ raw, sender, checkedAtMs: msOf(messageId) })
    const check = judgement.then((judged) => {
      if (judged === null) throw new NotPerformed('Too many messages are being checked, or the process stops')
      metrics.judged(judged.authentication, performance.now() - startedAtMs)
      return { authentication: judged.authentication, checkedAtMs: Date.now() }
    })
    return { isRead, check }
  }
}
