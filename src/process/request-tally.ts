/**
 * request-tally - requests of one route, counted as they are answered
 *
 * Names follow what Prometheus' own libraries call them, so that general dashboards find them.
 */

import { TimeHistogram } from './histogram.ts'

export const REQUESTS_METRIC = 'http_requests_total'
export const REQUEST_TIME_METRIC = 'http_request_duration_seconds'
const REQUESTS_HELP = 'Counts answered requests, by method, route template and status.'
const REQUEST_TIME_HELP = 'Time from the head of a request to its answer, by method and route template.'

/** Answers of one route. */
export class RequestTally {
  readonly method: string
  /** As a template: `/v1/messages/{id}`. */
  readonly route: string
  private readonly statuses = new Map<number, number>()
  private readonly times = new TimeHistogram()

  constructor(method: string, route: string) {
    this.method = method
    this.route = route
  }

  /** Counts an answer that went out `ms` after its request's head was read. */
  answered(status: number, ms: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    this.times.record(ms)
  }

  get isEmpty(): boolean {
    return this.statuses.size === 0
  }

  private get labels(): string {
    return `method="${this.method}",route="${this.route}"`
  }

  countLines(): string[] {
    return [...this.statuses].map(([status, count]) => `${REQUESTS_METRIC}{${this.labels},status="${status}"} ${count}`)
  }

  timeLines(): string[] {
    return this.times.lines(REQUEST_TIME_METRIC, this.labels)
  }
}

/** The tallies of a process, one for each requested route, created by name. */
export class RequestTallies {
  private readonly tallies = new Map<string, RequestTally>()

  /** The tally of a route; requests without a route are counted together, because clients must not create labels. */
  of(route: { readonly method: string; readonly path: string } | null): RequestTally {
    const { method, path } = route ?? { method: 'any', path: 'none' }
    const known = this.tallies.get(`${method} ${path}`)
    if (known !== undefined) return known
    const made = new RequestTally(method, path)
    this.tallies.set(`${method} ${path}`, made)
    return made
  }

  /** The page's text about all answered requests. */
  format(): string {
    const told = [...this.tallies.values()].filter(({ isEmpty }) => !isEmpty)
    const lines = [
      `# HELP ${REQUESTS_METRIC} ${REQUESTS_HELP}`,
      `# TYPE ${REQUESTS_METRIC} counter`,
      ...told.flatMap((tally) => tally.countLines()),
      '',
      `# HELP ${REQUEST_TIME_METRIC} ${REQUEST_TIME_HELP}`,
      `# TYPE ${REQUEST_TIME_METRIC} histogram`,
      ...told.flatMap((tally) => tally.timeLines()),
    ]
    return `${lines.join('\n')}\n`
  }
}
