/**
 * metrics - what `/metrics` tells, counted where it happens and formatted only when asked
 *
 * The hot path adds to plain numbers; the registry of prom-client is loaded and filled at the first look, so that a
 * process that nobody watches spends nothing on it. Labels are codes and results, never ids or addresses.
 */

import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { Counter, Gauge, Registry } from 'prom-client'

/** How often the loop's lag is sampled once somebody watches; finer costs wake-ups in an idle process. */
const LAG_RESOLUTION_MS = 100
const QUANTILES = [50, 90, 99] as const
const LATENCY_US_MAX = 60_000_000

/** What is counted of an attempt. */
export interface AttemptEnd {
  readonly result: string
  readonly classification: string | null
  /** Absent or null where there was none. */
  readonly session?: { readonly protocol: string | null; readonly isVerified: boolean; readonly isNew: boolean } | null
}

/** How many recipients wait for one site since less than `age`, as a label of the page says it. */
export interface WaitingMail {
  readonly site: string
  readonly age: string
  readonly recipients: number
}

/** What is counted of an act on the content store. */
export interface ContentActEnd {
  readonly home: string
  readonly act: string
  readonly result: string
  readonly ms: number
  readonly bytes: number
  readonly objects: number
}

/** Counters of one process. */
export interface Metrics {
  /** A send of `recipients` was accepted `ms` after its request had arrived whole: the commit is part of that time. */
  accepted(recipients: number, ms: number): void
  /** A commit was confirmed after `ms`. */
  committed(ms: number): void
  /** The store stands before so many commits that it had confirmed. */
  lostCommits(commits: number): void
  /** An accepted answer was given again for its Idempotency-Key. */
  replayed(): void
  /** A send was refused by its decision with this code of the contract. */
  refused(code: string): void
  /**
   * A send was not taken and told to come back: `memory` or `disk` have no room, `content` was not kept, or how its ask
   * ended.
   */
  notTaken(why: string): void
  /** An attempt ended: with what, in which class, over which session. */
  attempted(ended: AttemptEnd): void
  /** A mail that came in or came back, or a recipient that was refused, by what it was. */
  received(kind: string): void
  /** A request to an unsubscribe link: what was asked, and what came of it. */
  unsubscribed(act: string, result: string): void
  /** A login or a message over SMTP was answered, by the code of the contract or the number of the reply. */
  submitted(what: 'login' | 'message', code: string): void
  /** Where the open sessions of SMTP submission are counted. */
  watchSubmission(connections: () => number): void
  /** A received mail was parsed, in `ms`, with an issue or with none. */
  parsed(issue: string | null, ms: number): void
  /** A received mail was judged, in `ms`: each check with its verdict. */
  judged(verdicts: object, ms: number): void
  /** An attempt at a webhook ended: `delivered`, or what went wrong. */
  posted(result: string): void
  /** A delivery is attempted for the first time, `ms` after its event. */
  firstPosted(ms: number): void
  /** An act on the content store ended. */
  contentDone(act: ContentActEnd): void
  /** What was counted since the last call, for a line of the log. */
  take(): Record<string, number>
  /** The text of `/metrics`. In: figures of the runtime at this moment, by name; what waits to be delivered. */
  format(figures: Readonly<Record<string, number>>, queue?: readonly WaitingMail[]): Promise<string>
  readonly contentType: string
}

interface Counts {
  requests: number
  recipients: number
  replays: number
  lostCommits: number
  readonly refusals: Map<string, number>
  readonly notTaken: Map<string, number>
  /** By result and class, joined by a blank. */
  readonly attempts: Map<string, number>
  /** Sessions opened with receiving servers, by TLS version and whether the certificate held. */
  readonly sessions: Map<string, number>
  readonly received: Map<string, number>
  /** By act and result, joined by a blank. */
  readonly unsubscribes: Map<string, number>
  /** Logins and messages over SMTP, by what and code, joined by a blank. */
  readonly submitted: Map<string, number>
  submissionConnections: () => number
  /** Received mails parsed, by issue. */
  readonly parses: Map<string, number>
  readonly parseTimes: RecordableHistogram
  /** Checks of received mail, by check and verdict, joined by a blank. */
  readonly checks: Map<string, number>
  readonly judgeTimes: RecordableHistogram
  /** Microseconds. */
  readonly latency: RecordableHistogram
  readonly commits: RecordableHistogram
  /** Attempts at webhooks by result. */
  readonly posts: Map<string, number>
  readonly firstPosts: RecordableHistogram
  /** Acts on the content store, by home, act and result; objects, bytes and seconds by home and act. */
  readonly contentActs: Map<string, number>
  readonly contentObjects: Map<string, number>
  readonly contentBytes: Map<string, number>
  readonly contentSeconds: Map<string, number>
}

/** Makes the counters of this process. */
export function makeMetrics(): Metrics {
  const counts = makeCounts()
  let told = sums(counts)
  let page: Promise<Page> | null = null
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    accepted(recipients, ms) {
      counts.requests += 1
      counts.recipients += recipients
      recordMs(counts.latency, ms)
    },
    committed: (ms) => recordMs(counts.commits, ms),
    lostCommits(commits) {
      counts.lostCommits += commits
    },
    replayed() {
      counts.replays += 1
    },
    refused: (code) => addTo(counts.refusals, code),
    notTaken: (why) => addTo(counts.notTaken, why),
    attempted({ result, classification, session }) {
      addTo(counts.attempts, `${result} ${classification ?? ''}`)
      if (session?.isNew) addTo(counts.sessions, `${session.protocol ?? 'none'} ${session.isVerified}`)
    },
    received: (kind) => addTo(counts.received, kind),
    unsubscribed: (act, result) => addTo(counts.unsubscribes, `${act} ${result}`),
    submitted: (what, code) => addTo(counts.submitted, `${what} ${code}`),
    watchSubmission(connections) {
      counts.submissionConnections = connections
    },
    parsed(issue, ms) {
      addTo(counts.parses, issue ?? 'none')
      recordMs(counts.parseTimes, ms)
    },
    judged(verdicts, ms) {
      for (const [check, verdict] of Object.entries(verdicts))
        if (verdict !== null) addTo(counts.checks, `${check} ${verdict}`)
      recordMs(counts.judgeTimes, ms)
    },
    posted: (result) => addTo(counts.posts, result),
    firstPosted: (ms) => recordMs(counts.firstPosts, ms),
    contentDone({ home, act, result, ms, bytes, objects }) {
      const key = `${home} ${act}`
      addTo(counts.contentActs, `${key} ${result}`)
      addTo(counts.contentObjects, key, objects)
      addTo(counts.contentBytes, key, bytes)
      addTo(counts.contentSeconds, key, ms / 1000)
    },
    take() {
      const before = told
      told = sums(counts)
      return Object.fromEntries(Object.entries(told).map(([name, sum]) => [name, sum - (before[name] ?? 0)]))
    },
    async format(figures, queue = []) {
      page ??= makePage(counts)
      return (await page)(figures, queue)
    },
  }
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
    attempts: new Map(),
    sessions: new Map(),
    received: new Map(),
    unsubscribes: new Map(),
    submitted: new Map(),
    submissionConnections: () => 0,
    parses: new Map(),
    parseTimes: makeHistogram(),
    checks: new Map(),
    judgeTimes: makeHistogram(),
    latency: makeHistogram(),
    commits: makeHistogram(),
    posts: new Map(),
    firstPosts: makeHistogram(),
    contentActs: new Map(),
    contentObjects: new Map(),
    contentBytes: new Map(),
    contentSeconds: new Map(),
  }
}

type Page = (figures: Readonly<Record<string, number>>, queue: readonly WaitingMail[]) => Promise<string>

/** Loads prom-client, registers everything once and answers what formats it. */
async function makePage(counts: Counts): Promise<Page> {
  const prom = await import('prom-client')
  const registry: Registry = new prom.Registry()
  const registers = [registry]
  prom.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_RESOLUTION_MS })
  const total = (name: string, help: string, read: () => number) =>
    new prom.Counter({ name: `sendwright_${name}_total`, help, registers, collect: countFrom(read) })
  const labelled = (
    name: string,
    help: string,
    { labels, values }: { labels: string[]; values: Map<string, number> },
  ) =>
    new prom.Counter({
      name: `sendwright_${name}_total`,
      help,
      labelNames: labels,
      registers,
      collect: countEach(labels, values),
    })
  total('accepted_requests', 'Sends accepted by this process', () => counts.requests)
  total('accepted_recipients', 'Recipients of accepted sends', () => counts.recipients)
  total('replayed_requests', 'Accepted answers given again for their Idempotency-Key', () => counts.replays)
  total('store_lost_commits', 'Commits that the store had confirmed and has lost', () => counts.lostCommits)
  labelled('refused_sends', 'Sends refused by their decision, by code', { labels: ['code'], values: counts.refusals })
  const why = { labels: ['why'], values: counts.notTaken }
  labelled('sends_not_taken', 'Sends that were answered 503, by why: no room in memory or on disk, or no answer', why)
  const result = { labels: ['result', 'class'], values: counts.attempts }
  labelled('attempts', 'Attempts ended, by result and class', result)
  const tls = { labels: ['tls', 'verified'], values: counts.sessions }
  labelled('sessions', 'Sessions opened with receiving servers, by TLS version', tls)
  const kinds = { labels: ['kind'], values: counts.received }
  labelled('received', 'Mail that came in or came back, and recipients refused, by kind', kinds)
  labelled('parsed', 'Received mails parsed, by issue', { labels: ['issue'], values: counts.parses })
  labelled('unsubscribe_requests', 'Requests to unsubscribe links, by what was asked and what came of it', {
    labels: ['act', 'result'],
    values: counts.unsubscribes,
  })
  const checks = { labels: ['check', 'verdict'], values: counts.checks }
  labelled('checks', 'Checks of who sent a received mail, by verdict', checks)
  const replies = { labels: ['what', 'code'], values: counts.submitted }
  labelled('submission_replies', 'Logins and messages over SMTP, by code', replies)
  new prom.Gauge({
    name: 'sendwright_submission_connections',
    help: 'Open sessions of SMTP submission',
    registers,
    collect() {
      this.set(counts.submissionConnections())
    },
  })
  const latency = (name: string, help: string, histogram: RecordableHistogram) =>
    new prom.Gauge({
      name: `sendwright_${name}_seconds`,
      help: `${help}, since the start`,
      labelNames: ['quantile'],
      registers,
      collect: quantilesOf(histogram),
    })
  latency('accept', 'From a whole request to its committed answer', counts.latency)
  latency('commit', 'From sending a commit to its confirmation', counts.commits)
  latency('parse', 'Parsing and judging a received mail', counts.parseTimes)
  latency('judge', 'Judging a received mail, with the answers of the DNS', counts.judgeTimes)
  latency('webhook_first_attempt', 'From an event to the first attempt to deliver it', counts.firstPosts)
  labelled('webhook_attempts', 'Attempts at webhooks ended, by result', { labels: ['result'], values: counts.posts })
  const of = ['home', 'act']
  const acts = { labels: [...of, 'result'], values: counts.contentActs }
  labelled('content_acts', 'Acts on the content store, by how they ended', acts)
  labelled('content_objects', 'Objects of the content store written, read, removed', {
    labels: of,
    values: counts.contentObjects,
  })
  labelled('content_bytes', 'Bytes written to and read from the content store', {
    labels: of,
    values: counts.contentBytes,
  })
  labelled('content_seconds', 'Seconds that acts on the content store took', {
    labels: of,
    values: counts.contentSeconds,
  })
  const gauges = new Map<string, Gauge>()
  const waiting = new prom.Gauge({
    name: 'sendwright_queue_recipients',
    help: 'Recipients that wait to be delivered, by site and by less than what age; the same from every process',
    labelNames: ['site', 'age'],
    registers,
  })
  return (figures, queue) => {
    waiting.reset()
    for (const { site, age, recipients } of queue) waiting.set({ site, age }, recipients)
    for (const [figure, value] of Object.entries(figures)) {
      const name = `sendwright_${snakeCase(figure)}`
      const gauge = gauges.get(name) ?? new prom.Gauge({ name, help: `${figure} at this moment`, registers })
      gauges.set(name, gauge)
      gauge.set(value)
    }
    return registry.metrics()
  }
}

function countFrom(read: () => number) {
  return function collect(this: Counter) {
    this.reset()
    this.inc(read())
  }
}

/** In: names of labels; counts by their values, joined by blanks. */
function countEach(labels: readonly string[], values: ReadonlyMap<string, number>) {
  return function collect(this: Counter) {
    this.reset()
    for (const [key, value] of values) {
      const parts = key.split(' ')
      this.inc(Object.fromEntries(labels.map((label, at) => [label, parts[at] ?? ''])), value)
    }
  }
}

function quantilesOf(latency: RecordableHistogram) {
  return function collect(this: Gauge) {
    for (const one of QUANTILES) {
      this.set({ quantile: String(one / 100) }, latency.count === 0 ? 0 : latency.percentile(one) / 1e6)
    }
  }
}

function makeHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: LATENCY_US_MAX, figures: 2 })
}

function recordMs(histogram: RecordableHistogram, ms: number): void {
  histogram.record(Math.min(Math.max(1, Math.round(ms * 1000)), LATENCY_US_MAX))
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/[^a-z0-9_]/g, '_')
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
    attempts: sum(counts.attempts),
    posts: sum(counts.posts),
  }
}
