/** attempt-counts - counters of delivery attempts and SMTP sessions of this process for `/metrics` */

import type { AttemptRoute } from '../../mail/attempt-route.ts'
import { findProvider, NO_SITE } from '../../mail/receiving-sites.ts'

/** Mail servers of no provider of our table, in one label: strangers choose their names. */
const OTHER = 'other'
/** Sources with a label of their own; documents may name others over the years. */
const SOURCES_MAX = 128

/** The end of an attempt. */
export interface AttemptEnd {
  readonly result: string
  readonly classification: string | null
  /** The server that it ended at; null if none was tried, absent for a simulated attempt. */
  readonly route?: AttemptRoute | null
}

/** Counts since the start of the process. */
export class AttemptCounts {
  /** By result and class, joined by a blank. */
  private readonly attempts = new Map<string, number>()
  /** Sessions opened with receiving servers, by TLS version and whether the certificate was valid. */
  private readonly sessions = new Map<string, number>()
  /** Attempts at mail servers with TLSA records, by result of the check. */
  private readonly dane = new Map<string, number>()
  /** Attempts at mail servers by provider, result and class. */
  private readonly sites = new Map<string, number>()
  private readonly sources = new Set<string>()
  /** Attempts by source of outgoing mail and result. */
  private readonly bySource = new Map<string, number>()

  /** Attempts to send bounce mail, by result. */
  private readonly bounceMails = new Map<string, number>()

  bounceMailed(result: string): void {
    addTo(this.bounceMails, result)
  }

  count({ result, classification, route }: AttemptEnd): void {
    addTo(this.attempts, `${result} ${classification ?? ''}`)
    if (route === undefined) return
    const site = route === null ? NO_SITE : (findProvider(route.host) ?? OTHER)
    addTo(this.sites, `${site} ${result} ${classification ?? ''}`)
    if (route?.dane) addTo(this.dane, route.dane)
    if (route && route.transactionMs !== null && !route.isReused)
      addTo(this.sessions, `${route.tlsVersion ?? 'none'} ${route.isVerified}`)
  }

  /** An attempt with a source of outgoing mail. */
  countSource(source: string, result: string): void {
    if (this.sources.size < SOURCES_MAX) this.sources.add(source)
    addTo(this.bySource, `${this.sources.has(source) ? source : OTHER} ${result}`)
  }

  /** Attempts in all. */
  get sum(): number {
    return [...this.attempts.values()].reduce((total, value) => total + value, 0)
  }

  /** Counters of the page, by name and labels. */
  figures() {
    return [
      {
        labelled: 'attempts',
        help: 'Counts finished delivery attempts, by result and class.',
        labels: ['result', 'class'],
        values: this.attempts,
      },
      {
        labelled: 'sessions',
        help: 'Counts sessions opened with receiving servers, by TLS version.',
        labels: ['tls', 'verified'],
        values: this.sessions,
      },
      {
        labelled: 'bounce_mails',
        help: 'Counts attempts to send bounce mail to SMTP clients, by result.',
        labels: ['result'],
        values: this.bounceMails,
      },
      {
        labelled: 'dane_attempts',
        help: 'Counts delivery attempts at mail servers with TLSA records, by result of the check.',
        labels: ['result'],
        values: this.dane,
      },
      {
        labelled: 'site_attempts',
        help: 'Counts finished delivery attempts at mail servers, by provider, result and class.',
        labels: ['site', 'result', 'class'],
        values: this.sites,
      },
      {
        labelled: 'source_attempts',
        help: 'Counts finished delivery attempts, by source of outgoing mail and result.',
        labels: ['source', 'result'],
        values: this.bySource,
      },
    ]
  }
}

function addTo(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1)
}
