/**
 * metrics-page - the figures of a process as the text that Prometheus reads
 *
 * Names end as its conventions want it (`_total`, `_seconds`, `_ratio`), every HELP is a sentence, and histograms hold
 * counts, so that the values of several processes can be summed.
 */
import type { Counter, Gauge, Registry } from 'prom-client'
import { GAUGES, type GaugeName, type GaugeRow, type Gauges } from './gauges.ts'
import type { TimeHistogram } from './histogram.ts'
import type { RequestTallies } from './request-tally.ts'

/**
 * Interval of the samples of the loop's lag once `/metrics` is read; a shorter one costs wake-ups in an idle process.
 */
const LAG_RESOLUTION_MS = 100
/** Primaries that have labels. */
const REDIS_MAX = 256
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** How many recipients wait for one site since less than `age`, as a label of the page. */
export interface WaitingMail {
  readonly site: string
  readonly age: string
  readonly recipients: number
}

/** A figure of the page, by its name there without what all names begin and end with. */
export type PageFigure =
  /** A number that only grows. */
  | { readonly total: string; readonly help: string; readonly read: () => number }
  /** Numbers that only grow, by the values of their labels, joined by blanks. */
  | {
      readonly labelled: string
      readonly help: string
      readonly labels: readonly string[]
      readonly values: ReadonlyMap<string, number>
    }
  /** A current value. */
  | { readonly now: string; readonly help: string; readonly read: () => number }
  /** Current values, by the values of their labels. */
  | {
      readonly each: string
      readonly help: string
      readonly labels: readonly string[]
      readonly rows: () => Iterable<readonly [labels: readonly string[], value: number]>
    }
  /** A fact about the process, as the labels of a 1. */
  | { readonly fact: string; readonly help: string; readonly labels: Readonly<Record<string, string>> }
  | TimesFigure

/** How long something took, since the start. */
interface TimesFigure {
  readonly seconds: string
  readonly help: string
  readonly histogram: TimeHistogram
}

/** A primary of a cluster, as a label of the page names it. */
export interface RedisOnPage {
  readonly name: string
  readonly isUp: boolean
  /** Used share of its `maxmemory`. */
  readonly share: number
  readonly replicas: number
  readonly replicasWanted: number
  /** Its clock minus the local clock. */
  readonly clockOffMs: number
}

/** Metrics with their own labels. */
export interface LabelledFigures {
  readonly queue?: readonly WaitingMail[]
  readonly redis?: readonly RedisOnPage[]
}

/** Formats the page. Takes the current figures and the pending work. */
export type FormatPage = (figures: Gauges, labelled: LabelledFigures) => Promise<string>

type Prom = typeof import('prom-client')

/** Loads prom-client, registers everything once and returns the formatter. */
export async function makePage(all: readonly PageFigure[], requests: RequestTallies): Promise<FormatPage> {
  const prom = await import('prom-client')
  const registry: Registry = new prom.Registry()
  const registers = [registry]
  prom.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_RESOLUTION_MS })
  // Gauges with names of counters; other metrics have their values, by type.
  for (const name of MISNAMED) registry.removeSingleMetric(name)
  const times: TimesFigure[] = []
  for (const figure of all) {
    if ('seconds' in figure) times.push(figure)
    else register(prom, figure, registers)
  }
  const tell = makeMoment(prom, registers)
  const waiting = new prom.Gauge({
    name: 'sendwright_queue_recipients',
    help: 'Pending recipients by site and upper bound of their age; every process reports the same.',
    labelNames: ['site', 'age'],
    registers,
  })
  const tellRedis = makeRedisMoment(prom, registers)
  return async (figures, { queue = [], redis = [] }) => {
    waiting.reset()
    for (const { site, age, recipients } of queue) waiting.set({ site, age }, recipients)
    tellRedis(redis)
    tell(figures)
    return [await registry.metrics(), ...times.map(formatTimes), requests.format()].join('\n')
  }
}

function register({ Counter, Gauge }: Prom, figure: Exclude<PageFigure, TimesFigure>, registers: Registry[]): void {
  const { help } = figure
  if ('total' in figure) {
    const collect = countFrom(figure.read)
    new Counter({ name: `sendwright_${figure.total}_total`, help, registers, collect })
  } else if ('labelled' in figure) {
    const { labelled, labels, values } = figure
    const collect = countEach(labels, values)
    new Counter({ name: `sendwright_${labelled}_total`, help, labelNames: [...labels], registers, collect })
  } else if ('each' in figure) {
    const { each, labels, rows } = figure
    const collect = setEach(labels, rows)
    new Gauge({ name: `sendwright_${each}`, help, labelNames: [...labels], registers, collect })
  } else if ('fact' in figure) {
    const { fact, labels } = figure
    new Gauge({ name: `sendwright_${fact}`, help, labelNames: Object.keys(labels), registers }).set(labels, 1)
  } else {
    const collect = setFrom(figure.read)
    new Gauge({ name: `sendwright_${figure.now}`, help, registers, collect })
  }
}

/** Makes the function that puts the current figures on the page, on its first use. */
function makeMoment({ Counter, Gauge }: Prom, registers: Registry[]): (figures: Gauges) => void {
  const metrics = new Map<string, Counter | Gauge>()
  const metricOf = ({ metric, help, label, isCounter }: GaugeRow): Counter | Gauge => {
    const known = metrics.get(metric)
    if (known !== undefined) return known
    const options = { name: `sendwright_${metric}`, help, labelNames: label === undefined ? [] : [label[0]], registers }
    const made = isCounter ? new Counter(options) : new Gauge(options)
    metrics.set(metric, made)
    return made
  }
  return (figures) => {
    const told = (Object.keys(GAUGES) as GaugeName[]).filter((name) => figures[name] !== undefined)
    for (const name of told) {
      const row: GaugeRow = GAUGES[name]
      const metric = metricOf(row)
      if (row.isCounter) metric.reset()
      const labels = row.label === undefined ? {} : { [row.label[0]]: row.label[1] }
      if ('set' in metric) metric.set(labels, figures[name] as number)
      else metric.inc(labels, figures[name])
    }
  }
}

/** Makes the metrics of each primary of a cluster; without a cluster they are not on the page. */
function makeRedisMoment({ Gauge }: Prom, registers: Registry[]): (redis: readonly RedisOnPage[]) => void {
  let gauges: Readonly<Record<'up' | 'fill' | 'replicas' | 'wanted' | 'clock', Gauge>> | null = null
  const gauge = (name: string, help: string): Gauge =>
    new Gauge({ name: `sendwright_redis_${name}`, help, labelNames: ['redis'], registers })
  return (redis) => {
    if (redis.length === 0) return
    gauges ??= {
      up: gauge('up', 'Whether a primary of the cluster answers this process (1) or not (0).'),
      fill: gauge('fill_ratio', 'Used share of the memory of a primary, from 0 to 1.'),
      replicas: gauge('replicas', 'Replicas of a primary that are in sync.'),
      wanted: gauge('replicas_wanted', 'Replicas of a primary that DURABILITY requires.'),
      clock: gauge('clock_offset_seconds', 'How far the clock of a primary is ahead of the local clock.'),
    }
    for (const one of Object.values(gauges)) one.reset()
    for (const { name, isUp, share, replicas, replicasWanted, clockOffMs } of redis.slice(0, REDIS_MAX)) {
      gauges.up.set({ redis: name }, isUp ? 1 : 0)
      gauges.fill.set({ redis: name }, share)
      gauges.wanted.set({ redis: name }, replicasWanted)
      // The last report of an unreachable node is not current.
      if (!isUp) continue
      gauges.replicas.set({ redis: name }, replicas)
      gauges.clock.set({ redis: name }, clockOffMs / 1_000)
    }
  }
}

function formatTimes({ seconds, help, histogram }: TimesFigure): string {
  const name = `sendwright_${seconds}_seconds`
  return `${[`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...histogram.lines(name)].join('\n')}\n`
}

function countFrom(read: () => number) {
  return function collect(this: Counter) {
    this.reset()
    this.inc(read())
  }
}

function setFrom(read: () => number) {
  return function collect(this: Gauge) {
    this.set(read())
  }
}

function setEach(labels: readonly string[], rows: () => Iterable<readonly [readonly string[], number]>) {
  return function collect(this: Gauge) {
    this.reset()
    for (const [values, value] of rows())
      this.set(Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ''])), value)
  }
}

/** Takes the names of labels, and counts by label values joined with spaces. */
function countEach(labels: readonly string[], values: ReadonlyMap<string, number>) {
  return function collect(this: Counter) {
    this.reset()
    for (const [key, value] of values) {
      const parts = key.split(' ')
      this.inc(Object.fromEntries(labels.map((label, at) => [label, parts[at] ?? ''])), value)
    }
  }
}
