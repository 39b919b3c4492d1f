/** metrics-page - the figures of a process as the text that Prometheus reads */
import type { RecordableHistogram } from 'node:perf_hooks'
import type { Counter, Gauge, Registry } from 'prom-client'

/** How often the loop's lag is sampled once somebody watches; finer costs wake-ups in an idle process. */
const LAG_RESOLUTION_MS = 100
const QUANTILES = [50, 90, 99] as const

/** How many recipients wait for one site since less than `age`, as a label of the page says it. */
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
  /** A number of this moment. */
  | { readonly now: string; readonly help: string; readonly read: () => number }
  /** How long something took, since the start; microseconds. */
  | { readonly seconds: string; readonly help: string; readonly histogram: RecordableHistogram }

/** Formats the page. In: figures of this moment by name, and what waits. */
export type FormatPage = (figures: Readonly<Record<string, number>>, queue: readonly WaitingMail[]) => Promise<string>

type Prom = typeof import('prom-client')

/** Loads prom-client, registers everything once and answers what formats it. */
export async function makePage(all: readonly PageFigure[]): Promise<FormatPage> {
  const prom = await import('prom-client')
  const registry: Registry = new prom.Registry()
  const registers = [registry]
  prom.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_RESOLUTION_MS })
  for (const figure of all) register(prom, figure, registers)
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

function register({ Counter, Gauge }: Prom, figure: PageFigure, registers: Registry[]): void {
  const { help } = figure
  if ('total' in figure) {
    const collect = countFrom(figure.read)
    new Counter({ name: `sendwright_${figure.total}_total`, help, registers, collect })
  } else if ('labelled' in figure) {
    const { labelled, labels, values } = figure
    const collect = countEach(labels, values)
    new Counter({ name: `sendwright_${labelled}_total`, help, labelNames: [...labels], registers, collect })
  } else if ('now' in figure) {
    const collect = setFrom(figure.read)
    new Gauge({ name: `sendwright_${figure.now}`, help, registers, collect })
  } else {
    const collect = quantilesOf(figure.histogram)
    const name = `sendwright_${figure.seconds}_seconds`
    new Gauge({ name, help: `${help}, since the start`, labelNames: ['quantile'], registers, collect })
  }
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

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/[^a-z0-9_]/g, '_')
}
