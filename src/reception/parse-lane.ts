/**
 * parse-lane - performs parsing: reads a received mail from the content store, parses it in a thread, has it judged,
 * and stores the result, which the outcome names.
 *
 * Each account has a lane, with a few mails at a time in memory and in the threads: only one while its behaviour is
 * unknown here, and one if its last mail took long. Accounts with slow mail share a thread, so a mail that takes its
 * 20 seconds delays no other account. While the DNS of a sender is waited for, nothing is held but the mail's result.
 * Guarantees: raw mails in memory have 48 MiB together, and threads share them; a mail that cannot be parsed has an
 * outcome too.
 *
 * Spec inbound.parse, inbound.authentication
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import { msOf, shardOf } from '../../cluster/id.ts'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import type { CheckResult, ParseJob, ParseOutcome, ParseResult } from '../actors/inbound/parse-job.ts'
import { parseOutcome, prepareParse } from '../actors/inbound/parsed.ts'
import { failMail } from '../mail/mime/received-mail.ts'
import type { Metrics } from '../process/metrics.ts'
import type { Secrets } from '../process/secrets.ts'
import { NAMED_CHARS, newObjectId } from '../state/received/content-head.ts'
import { PARSE_LANE } from '../state/received/parse-item.ts'
import { type ReceivedStore, writeParsed } from '../store/received.ts'
import type { ByteGate, TakeMemory } from './byte-gate.ts'
import type { FreshMails } from './fresh-mails.ts'
import { type ParsedMail, packMail } from './parsed-mail.ts'
import { readReceivedMail } from './raw-mail.ts'
import type { ReceivedParser } from './received-parser.ts'
import { MAIL_STOP_MS, unlessStopped } from './unless-stopped.ts'

/**
 * Maximum number of mails in progress in a process and of one account. It is high because mails mostly wait for the
 * DNS of their senders.
 */
const UNDER_WAY_MAX = 64
const LANE_UNDER_WAY_MAX = 16
/** Maximum number of mails of one account that are read and parsed at the same time. */
const LANE_TURNS_MAX = 4
/** Maximum number of accounts whose last duration is cached. */
const KNOWN_MAX = 50_000
/** If reading and parsing a mail takes this long, its account counts as slow. */
const SLOW_MS = 2_000
/** Long enough for all mails of the account that are ahead to take 20 seconds each. */
const HOLD_MS = 10 * 60_000

/** A mail being judged: its bytes are needed until `isRead`, and then it only waits for the DNS. */
export interface JudgedReceived {
  readonly isRead: Promise<void>
  /** Null if the session is unknown. Rejects with NotPerformed if it could not begin. */
  readonly check: Promise<CheckResult | null>
}

/** Authenticates the sender of a mail. */
export type JudgeReceived = (raw: Uint8Array, job: ParseJob) => JudgedReceived

export interface ParseLaneDeps {
  readonly received: ReceivedStore
  /** Mails that this process has just accepted; null if it accepts none. */
  readonly freshMails: FreshMails | null
  /** The thread for accounts with slow mail, and the thread for all others. */
  readonly parsers: { readonly slow: ReceivedParser; readonly fast: ReceivedParser }
  readonly judge: JudgeReceived
  /** Raw mails in memory. */
  readonly bytes: ByteGate
  readonly secrets: Pick<Secrets, 'addressHmac'>
  readonly metrics: Pick<Metrics, 'parsed'>
  readonly random: () => number
  /** An additional bound for each lane; 0 holds the lane's items. */
  readonly room?: (lane: string) => number
}

/** The family of the lanes of accounts. */
export function makeParseLane(deps: ParseLaneDeps): LaneType {
  const lanes = new LaneBook()
  const { bytes } = deps
  const lane: LaneType<ParseJob, ParseOutcome> = {
    prefix: PARSE_LANE,
    prompt: true,
    holdMs: HOLD_MS,
    claimsStand: false,
    stopMs: MAIL_STOP_MS,
    prepare: prepareParse,
    outcome: parseOutcome,
    room: (name) => Math.min(lanes.room(name), deps.room?.(name) ?? Number.POSITIVE_INFINITY),
    async perform(job, { lane: name, signal }) {
      const leave = lanes.enter(name)
      const work = async (): Promise<ParseOutcome> => {
        const begun = await lanes.inTurn(name, (isSlow) =>
          bytes.hold(job.sizeBytes, async (take) => {
            if (signal.aborted) throw new NotPerformed('The process stops')
            return await begin(deps, job, { parser: isSlow ? deps.parsers.slow : deps.parsers.fast, take })
          }),
        )
        return await finish(deps, job, begun)
      }
      try {
        return await unlessStopped(signal, work())
      } finally {
        leave()
      }
    },
  }
  return lane as LaneType
}

/** A mail whose bytes are no longer needed. */
type Begun = 'away' | 'gone' | { readonly mail: ParsedMail; readonly check: JudgedReceived['check'] }

async function begin(
  deps: ParseLaneDeps,
  job: ParseJob,
  { parser, take }: { parser: ReceivedParser; take: TakeMemory },
): Promise<Begun> {
  const raw = await readReceivedMail(deps, job, take)
  if (typeof raw === 'string') return raw
  const startedAtMs = performance.now()
  const { isRead, check } = deps.judge(raw, job)
  // If parsing fails, the check is never awaited.
  check.catch(() => undefined)
  const [mail] = await Promise.all([parser.parse(raw), isRead])
  if (mail === null) throw new NotPerformed('Too many messages are being parsed, or the process stops')
  deps.metrics.parsed(mail.parseIssue, performance.now() - startedAtMs)
  return { mail, check }
}

async function finish(deps: ParseLaneDeps, job: ParseJob, begun: Begun): Promise<ParseOutcome> {
  if (begun === 'away') return { result: 'later' }
  const { serverId, head, sizeBytes, messageId } = job
  if (begun === 'gone') {
    const lost = packMail(failMail(null, { issue: 'parser_error', sizeBytes }))
    return { result: 'parsed', parsed: makeResult(deps, job, { mail: lost, parsedId: null, check: null }) }
  }
  const { mail } = begun
  const parsedId = newObjectId(msOf(messageId), deps.random)
  const shard = shardOf(serverId) as number
  if (!(await writeParsed(deps.received, { shard, serverId, key: head.key, parsedId }, mail.packed)))
    return { result: 'later' }
  return { result: 'parsed', parsed: makeResult(deps, job, { mail, parsedId, check: await begun.check }) }
}

/** The data for the message's rows. */
function makeResult(
  { secrets }: Pick<ParseLaneDeps, 'secrets'>,
  { accountId }: ParseJob,
  { mail, parsedId, check }: { mail: ParsedMail; parsedId: string | null; check: CheckResult | null },
): ParseResult {
  const hmacOf = (address: string) => secrets.addressHmac(accountId, address)
  const { from, hasText, hasHtml, attachmentCount, parseIssue, subject, date, named, isNamedWhole } = mail
  return {
    parsedId,
    hasText,
    hasHtml,
    attachmentCount,
    parseIssue,
    from: from === null ? null : { hmac: hmacOf(from.address), ...from },
    subject,
    dateMs: date === null ? null : Date.parse(date),
    named: { hashes: named.map((address) => hmacOf(address).slice(0, NAMED_CHARS)).join(''), isWhole: isNamedWhole },
    check,
  }
}

/** Mails in progress by account, their turns, and the accounts with slow mail. */
class LaneBook {
  readonly #slow = new Map<string, boolean>()
  readonly #underWay = new Map<string, number>()
  readonly #turns = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()
  #all = 0

  room(lane: string): number {
    return Math.min(UNDER_WAY_MAX - this.#all, LANE_UNDER_WAY_MAX - (this.#underWay.get(lane) ?? 0))
  }

  /** Counts a mail as in progress. Returns a function that ends this. */
  enter(lane: string): () => void {
    this.#all += 1
    add(this.#underWay, lane, 1)
    return () => {
      this.#all -= 1
      add(this.#underWay, lane, -1)
    }
  }

  /** Runs `run` when it is the mail's turn within its account, and passes whether the account's mail is slow. */
  async inTurn<Result>(lane: string, run: (isSlow: boolean) => Promise<Result>): Promise<Result> {
    while ((this.#turns.get(lane) ?? 0) >= this.#turnsMax(lane)) await this.#wait(lane)
    add(this.#turns, lane, 1)
    const startedAtMs = performance.now()
    try {
      return await run(this.#slow.get(lane) === true)
    } finally {
      this.#note(lane, performance.now() - startedAtMs >= SLOW_MS)
      add(this.#turns, lane, -1)
      const waiting = this.#waiting.get(lane) ?? []
      this.#waiting.delete(lane)
      for (const wake of waiting) wake()
    }
  }

  #turnsMax(lane: string): number {
    return this.#slow.get(lane) === false ? LANE_TURNS_MAX : 1
  }

  #wait(lane: string): Promise<void> {
    return new Promise((wake) => this.#waiting.set(lane, [...(this.#waiting.get(lane) ?? []), wake]))
  }

  #note(lane: string, isSlow: boolean): void {
    // A Map is in order of insertion, so the account parsed longest ago is evicted.
    this.#slow.delete(lane)
    if (this.#slow.size >= KNOWN_MAX) this.#slow.delete(this.#slow.keys().next().value as string)
    this.#slow.set(lane, isSlow)
  }
}

function add(counts: Map<string, number>, lane: string, by: number): void {
  const count = (counts.get(lane) ?? 0) + by
  if (count === 0) counts.delete(lane)
  else counts.set(lane, count)
}
