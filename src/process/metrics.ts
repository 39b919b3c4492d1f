/**
 * metrics - the metrics of `/metrics`, counted as events happen and formatted only on request
 *
 * The hot path adds to plain numbers; the registry of prom-client is loaded and filled at the first request, so
 * that an unmonitored process spends nothing on it. Labels are codes and results, never addresses; of accounts 20
 * ids at most.
 */

import { AccountCounts } from './attempts/account-counts.ts'
import { AttemptCounts, type AttemptEnd } from './attempts/attempt-counts.ts'
import { CheckFigures } from './attempts/check-figures.ts'
import { type ContentActEnd, ContentFigures } from './attempts/content-figures.ts'
import { ExportFigures } from './attempts/export-figures.ts'
import type { Gauges } from './gauges.ts'
import { TimeHistogram } from './histogram.ts'
import { type FormatPage, type LabelledFigures, makePage, type PageFigure } from './metrics-page.ts'
import { RequestTallies } from './request-tally.ts'

/** Counters of one process. */
export interface Metrics {
  /** A send of `recipients` was accepted `ms` after its request had arrived completely, including the commit. */
  accepted(recipients: number, ms: number): void
  /** A commit was confirmed after `ms`. */
  committed(ms: number): void
  /** The store has lost this number of confirmed commits. */
  lostCommits(commits: number): void
  /** An accepted answer was given again for its Idempotency-Key. */
  replayed(): void
  /** A send was refused by its decision with this code of the contract. */
  refused(code: string): void
  /** A send was answered 503: `memory` or `disk` have no room, `content` was not kept, or how its ask ended. */
  notTaken(why: string): void
  /** An attempt for an account ended: its result, class and route. */
  attempted(ended: AttemptEnd, accountId: string): void
  /** An attempt with a source of outgoing mail ended. */
  attemptedBy(source: string, result: string): void
  /** A commit released recipients of a broadcast, or gave them up: suppressed, erased, or left over at its end. */
  broadcast(step: { readonly released: number; readonly failed: number }): void
  /** Messages were scheduled, cancelled, or moved to a new time. */
  scheduled(result: 'accepted' | 'cancelled' | 'moved', messages: number): void
  /** A received or returned mail, or a refused recipient, by kind. */
  received(kind: string): void
  /** A request to an unsubscribe link, by action and result. */
  unsubscribed(act: string, result: string): void
  /** A login or a message over SMTP was answered, by the code of the contract or the number of the reply. */
  submitted(what: 'login' | 'message', code: string): void
  /** `doctor` has run its checks here. */
  examined: CheckFigures['examined']
  /** The blocklists were asked about the sending addresses. */
  blocklists: CheckFigures['blocklists']
  /** Where the open sessions of SMTP submission are counted. */
  watchSubmission(connections: () => number): void
  /** Reports when the certificate of the SMTP listeners expires, Unix time in milliseconds. */
  watchCertificate(expiresMs: () => number): void
  /** A received mail was parsed, in `ms`, with an issue or null. */
  parsed(issue: string | null, ms: number): void
  /** A received mail was judged in `ms`, with the verdict of each check. */
  judged(verdicts: object, ms: number): void
  /** An attempt at a webhook ended: `delivered`, or the error. */
  posted(result: string): void
  /** A webhook that asks for the source of a received mail got it, or not: `included`, `omitted` or `no_room`. */
  rawEmail(result: string): void
  /** A delivery is attempted for the first time, `ms` after its event. */
  firstPosted(ms: number): void
  /** An act on the content store ended. */
  contentDone(act: ContentActEnd): void
  /** An attempt to send a report to an SMTP client ended. */
  bounceMailed(result: string): void
  /** An act on a sealed segment, or on packs, ended after `ms`. */
  sealedActed(act: string, result: string, ms: number): void
  sealedRead(result: string): void
  /** Counts since the last call, for a line of the log. */
  take(): Record<string, number>
  /** The text of `/metrics`. Takes the current figures of the runtime by name, and those with labels. */
  format(figures: Gauges, labelled?: LabelledFigures): Promise<string>
  /** Requests of the listeners of HTTP, by route. */
  readonly requests: RequestTallies
  /** Exports as CSV. */
  readonly exports: ExportFigures
  readonly contentType: string
}

interface Counts {
  requests: number
  recipients: number
  replays: number
  lostCommits: number
  readonly refusals: Map<string, number>
  readonly notTaken: Map<string, number>
  readonly attempts: AttemptCounts
  readonly accounts: AccountCounts
  readonly checksRun: CheckFigures
  /** Recipients of broadcasts, by result. */
  readonly broadcasts: Map<string, number>
  /** Scheduled messages, by result. */
  readonly scheduled: Map<string, number>
  readonly received: Map<string, number>
  /** By act and result, joined by a blank. */
  readonly unsubscribes: Map<string, number>
  /** Logins and messages over SMTP, by kind and code, joined by a blank. */
  readonly submitted: Map<string, number>
  submissionConnections: () => number
  /** Null in a process without SMTP listeners. */
  certificateExpiresMs: (() => number) | null
  /** Received mails parsed, by issue. */
  readonly parses: Map<string, number>
  readonly parseTimes: TimeHistogram
  /** Checks of received mail, by check and verdict, joined by a blank. */
  readonly checks: Map<string, number>
  readonly judgeTimes: TimeHistogram
  readonly latency: TimeHistogram
  readonly commits: TimeHistogram
  /** Attempts at webhooks by result. */
  readonly posts: Map<string, number>
  readonly rawEmails: Map<string, number>
  readonly firstPosts: TimeHistogram
  readonly content: ContentFigures
  readonly exports: ExportFigures
  readonly sealedActs: Map<string, number>
  readonly sealedSeconds: Map<string, number>
  readonly sealedReads: Map<string, number>
}

/** Makes the counters of this process. Takes the library that serves HTTP; null if it does not. */
export function makeMetrics(httpEngine: string | null = null): Metrics {
  const counts = makeCounts()
  const requests = new RequestTallies()
  let told = sums(counts)
  let page: Promise<FormatPage> | null = null
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    requests,
    exports: counts.exports,
    accepted(recipients, ms) {
      counts.requests += 1
      counts.recipients += recipients
      counts.latency.record(ms)
    },
    committed: (ms) => counts.commits.record(ms),
    lostCommits(commits) {
      counts.lostCommits += commits
    },
    replayed() {
      counts.replays += 1
    },
    refused: (code) => addTo(counts.refusals, code),
    notTaken: (why) => addTo(counts.notTaken, why),
    attempted(end, accountId) {
      counts.attempts.count(end)
      counts.accounts.count(accountId, end.result)
    },
    attemptedBy: (source, result) => counts.attempts.countSource(source, result),
    examined: (findings) => counts.checksRun.examined(findings),
    blocklists: (results) => counts.checksRun.blocklists(results),
    broadcast(step) {
      for (const [result, by] of Object.entries(step)) if (by > 0) addTo(counts.broadcasts, result, by)
    },
    scheduled: (result, messages) => addTo(counts.scheduled, result, messages),
    received: (kind) => addTo(counts.received, kind),
    unsubscribed: (act, result) => addTo(counts.unsubscribes, `${act} ${result}`),
    submitted: (what, code) => addTo(counts.submitted, `${what} ${code}`),
    watchSubmission(connections) {
      counts.submissionConnections = connections
    },
    watchCertificate(expiresMs) {
      counts.certificateExpiresMs = expiresMs
    },
    parsed(issue, ms) {
      addTo(counts.parses, issue ?? 'none')
      counts.parseTimes.record(ms)
    },
    judged(verdicts, ms) {
      for (const [check, verdict] of Object.entries(verdicts))
        if (verdict !== null) addTo(counts.checks, `${check} ${verdict}`)
      counts.judgeTimes.record(ms)
    },
    posted: (result) => addTo(counts.posts, result),
    rawEmail: (result) => addTo(counts.rawEmails, result),
    firstPosted: (ms) => counts.firstPosts.record(ms),
    contentDone: (end) => counts.content.done(end),
    sealedActed: (act, result, ms) => countSealed(counts, { act, result, ms }),
    sealedRead: (result) => addTo(counts.sealedReads, result),
    bounceMailed: (result) => counts.attempts.bounceMailed(result),
    take() {
      const before = told
      told = sums(counts)
      return Object.fromEntries(Object.entries(told).map(([name, sum]) => [name, sum - (before[name] ?? 0)]))
    },
    async format(figures, labelled = {}) {
      page ??= makePage([...listFacts(httpEngine), ...listFigures(counts)], requests)
      return (await page)(figures, labelled)
    },
  }
}

function countSealed(counts: Counts, { act, result, ms }: { act: string; result: string; ms: number }): void {
  addTo(counts.sealedActs, `${act} ${result}`)
  addTo(counts.sealedSeconds, act, ms / 1000)
}

/** Counters that have counted nothing. */
function makeCounts(): Counts {
  return {
    requests: 0,
    recipients: 0,
    replays: 0,
    lostCommits: 0,
    refusals: new Map(),
    notTaken: new Map(),
    attempts: new AttemptCounts(),
    accounts: new AccountCounts(() => performance.now()),
    checksRun: new CheckFigures(),
    broadcasts: new Map(),
    scheduled: new Map(),
    received: new Map(),
    unsubscribes: new Map(),
    submitted: new Map(),
    submissionConnections: () => 0,
    certificateExpiresMs: null,
    parses: new Map(),
    parseTimes: new TimeHistogram(),
    checks: new Map(),
    judgeTimes: new TimeHistogram(),
    latency: new TimeHistogram(),
    commits: new TimeHistogram(),
    posts: new Map(),
    rawEmails: new Map(),
    firstPosts: new TimeHistogram(),
    content: new ContentFigures(),
    exports: new ExportFigures(),
    sealedActs: new Map(),
    sealedSeconds: new Map(),
    sealedReads: new Map(),
  }
}

function listFacts(httpEngine: string | null): readonly PageFigure[] {
  if (httpEngine === null) return []
  return [{ fact: 'http_engine', help: 'Names the library that serves HTTP.', labels: { engine: httpEngine } }]
}

/** Content of the page, in its order. */
function listFigures(counts: Counts): readonly PageFigure[] {
  return [...sendFigures(counts), ...receivedFigures(counts), ...listTimes(counts), ...contentFigures(counts)]
}

function sendFigures(counts: Counts): readonly PageFigure[] {
  return [
    { total: 'accepted_requests', help: 'Counts sends accepted by this process.', read: () => counts.requests },
    {
      total: 'accepted_recipients',
      help: 'Counts recipients of accepted sends.',
      read: () => counts.recipients,
    },
    { total: 'replayed_requests', help: 'Counts replays for an Idempotency-Key.', read: () => counts.replays },
    {
      total: 'store_lost_commits',
      help: 'Counts confirmed commits that the store has lost.',
      read: () => counts.lostCommits,
    },
    labelled('refused_sends', 'Counts refused sends, by code.', counts.refusals, 'code'),
    labelled(
      'sends_not_taken',
      'Counts sends answered 503, by reason: memory full, disk full or no answer from the store.',
      counts.notTaken,
      'why',
    ),
    ...counts.attempts.figures(),
    counts.accounts.figure(),
    ...counts.checksRun.figures(),
    labelled(
      'scheduled_messages',
      'Counts messages scheduled with sendAt, cancelled before their time or moved to a new time.',
      counts.scheduled,
      'result',
    ),
    labelled(
      'broadcast_recipients',
      'Counts recipients of broadcasts, released or failed.',
      counts.broadcasts,
      'result',
    ),
  ]
}

function receivedFigures(counts: Counts): readonly PageFigure[] {
  const { received, parses, unsubscribes, checks, submitted } = counts
  return [
    labelled('received', 'Counts received mail, returned mail and refused recipients, by kind.', received, 'kind'),
    labelled('parsed', 'Counts parsed received messages, by issue.', parses, 'issue'),
    labelled(
      'unsubscribe_requests',
      'Counts requests to unsubscribe links, by action and result.',
      unsubscribes,
      'act',
      'result',
    ),
    labelled('checks', 'Counts authentication checks of received mail, by verdict.', checks, 'check', 'verdict'),
    labelled('submission_replies', 'Counts logins and messages over SMTP, by code.', submitted, 'what', 'code'),
    {
      now: 'submission_connections',
      help: 'Open SMTP submission sessions.',
      read: () => counts.submissionConnections(),
    },
    ...certificateOf(counts.certificateExpiresMs),
  ]
}

function certificateOf(expiresMs: (() => number) | null): readonly PageFigure[] {
  if (expiresMs === null) return []
  const help = 'Seconds until the certificate of the SMTP listeners expires; negative after that.'
  return [{ now: 'certificate_expires_seconds', help, read: () => Math.round((expiresMs() - Date.now()) / 1000) }]
}

function listTimes({ latency, commits, parseTimes, judgeTimes, firstPosts }: Counts): readonly PageFigure[] {
  return [
    {
      seconds: 'accept',
      help: 'Time from a complete send request to its committed answer.',
      histogram: latency,
    },
    {
      seconds: 'commit',
      help: 'Time from sending a commit to its confirmation, the fsync of the store.',
      histogram: commits,
    },
    { seconds: 'parse', help: 'Time to parse and authenticate received messages.', histogram: parseTimes },
    {
      seconds: 'judge',
      help: 'Time to authenticate received messages, DNS included.',
      histogram: judgeTimes,
    },
    {
      seconds: 'webhook_first_attempt',
      help: 'Time from an event to the first attempt to deliver it to a webhook.',
      histogram: firstPosts,
    },
  ]
}

function contentFigures({ posts, rawEmails, content, exports, ...counts }: Counts): readonly PageFigure[] {
  return [
    labelled('webhook_attempts', 'Counts finished webhook attempts, by result.', posts, 'result'),
    labelled('webhook_raw_emails', 'Counts sources of mail for webhooks, by result.', rawEmails, 'result'),
    ...content.figures(),
    ...exports.figures(),
    labelled(
      'sealed_acts',
      'Counts acts on sealed segments of the log, by result.',
      counts.sealedActs,
      'act',
      'result',
    ),
    labelled(
      'sealed_seconds',
      'Counts seconds spent in acts on sealed segments of the log.',
      counts.sealedSeconds,
      'act',
    ),
    labelled('sealed_reads', 'Counts reads of sealed segments of the log, by result.', counts.sealedReads, 'result'),
  ]
}

/** Counts by the values of labels. */
function labelled(
  name: string,
  help: string,
  values: ReadonlyMap<string, number>,
  ...labels: readonly string[]
): PageFigure {
  return { labelled: name, help, labels, values }
}

function addTo(map: Map<string, number>, key: string, by = 1): void {
  map.set(key, (map.get(key) ?? 0) + by)
}

function sums(counts: Counts): Record<string, number> {
  const sum = (map: Map<string, number>) => [...map.values()].reduce((total, value) => total + value, 0)
  return {
    acceptedRequests: counts.requests,
    acceptedRecipients: counts.recipients,
    replayedRequests: counts.replays,
    refusedSends: sum(counts.refusals),
    sendsNotTaken: sum(counts.notTaken),
    attempts: counts.attempts.sum,
    posts: sum(counts.posts),
  }
}
