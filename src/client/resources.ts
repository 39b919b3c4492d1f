/** resources - calls about broadcasts, suppressions, sending domains and erasures */
import type { Exchange } from './exchange.ts'
import { joinPath } from './mail.ts'
import type { CallOptions, SendOptions } from './options.ts'
import { iterate } from './pages.ts'
import type {
  ReceivedReports,
  ReceivedReportsQuery,
  Reports,
  ReportsQuery,
  TlsReports,
  TlsReportsQuery,
} from './shapes/reports.ts'
import type {
  Domain,
  DomainBody,
  DomainChecked,
  DomainList,
  Erasure,
  Page,
  Suppression,
  SuppressionList,
  SuppressionSearch,
  SuppressionsAdded,
  SuppressionsBody,
} from './shapes/resources.ts'
import type {
  Broadcast,
  BroadcastBody,
  BroadcastList,
  BroadcastPreview,
  BroadcastPreviewBody,
  BroadcastQuery,
} from './shapes/sending.ts'

export interface Broadcasts {
  /** Sends to up to 50,000 recipients; the answer means that all of it is on disk. */
  create(broadcast: BroadcastBody, options?: SendOptions): Promise<Broadcast>
  /** One of its messages, as its recipient would see it. */
  preview(broadcast: BroadcastPreviewBody, options?: CallOptions): Promise<BroadcastPreview>
  list(query?: BroadcastQuery, options?: CallOptions): Promise<BroadcastList>
  iterate(query?: BroadcastQuery, options?: CallOptions): AsyncGenerator<Broadcast, void, undefined>
  read(broadcastId: string, options?: CallOptions): Promise<Broadcast>
  cancel(broadcastId: string, options?: CallOptions): Promise<Broadcast>
  pause(broadcastId: string, options?: CallOptions): Promise<Broadcast>
  resume(broadcastId: string, options?: CallOptions): Promise<Broadcast>
}

export interface Suppressions {
  search(search?: SuppressionSearch, options?: CallOptions): Promise<SuppressionList>
  iterate(search?: SuppressionSearch, options?: CallOptions): AsyncGenerator<Suppression, void, undefined>
  add(suppressions: SuppressionsBody, options?: CallOptions): Promise<SuppressionsAdded>
  read(suppressionId: string, options?: CallOptions): Promise<Suppression>
  /** Removes an address from the list, if its reason allows that. */
  lift(suppressionId: string, options?: CallOptions): Promise<void>
}

export interface Domains {
  list(query?: Page, options?: CallOptions): Promise<DomainList>
  iterate(query?: Page, options?: CallOptions): AsyncGenerator<Domain, void, undefined>
  /** Adds a domain. The answer has the DNS records to publish. */
  add(domain: DomainBody, options?: CallOptions): Promise<Domain>
  read(domainId: string, options?: CallOptions): Promise<Domain>
  /** Has the DNS records looked up now. */
  verify(domainId: string, options?: CallOptions): Promise<DomainChecked>
  rotateDkim(domainId: string, options?: CallOptions): Promise<Domain>
  /** Lets test servers send from it before it is verified. */
  useInTests(domainId: string, options?: CallOptions): Promise<Domain>
  /** What DMARC reports say about it: sources, results and sums. */
  readReports(domainId: string, query?: ReportsQuery, options?: CallOptions): Promise<Reports>
  /** What TLS reports say about its mail servers. */
  readTlsReports(domainId: string, query?: TlsReportsQuery, options?: CallOptions): Promise<TlsReports>
  /** The reports that came. */
  receivedReports(domainId: string, query?: ReceivedReportsQuery, options?: CallOptions): Promise<ReceivedReports>
  delete(domainId: string, options?: CallOptions): Promise<void>
}

export interface Erasures {
  /** Erases the data of one person on all servers of the account. */
  create(address: string, options?: CallOptions): Promise<Erasure>
  read(erasureId: string, options?: CallOptions): Promise<Erasure>
}

/**
 * Calls about broadcasts.
 * @internal
 */
export function makeBroadcasts({ ask }: Exchange): Broadcasts {
  const path = '/v1/broadcasts'
  const list: Broadcasts['list'] = (query, options) => ask({ method: 'GET', path, query, options })
  const act = (action: string) => (id: string, options?: CallOptions) =>
    ask<Broadcast>({ method: 'POST', path: joinPath(path, id, action), options })
  return {
    create: (body, options) => ask({ method: 'POST', path, body, isSend: true, options }),
    preview: (body, options) => ask({ method: 'POST', path: `${path}/preview`, body, options }),
    list,
    iterate: (query, options) =>
      iterate(
        (after) => list({ ...query, ...after }, options),
        ({ broadcasts }) => broadcasts,
      ),
    read: (id, options) => ask({ method: 'GET', path: joinPath(path, id), options }),
    cancel: act('cancel'),
    pause: act('pause'),
    resume: act('resume'),
  }
}

/**
 * Calls about suppressions.
 * @internal
 */
export function makeSuppressions({ ask }: Exchange): Suppressions {
  const path = '/v1/suppressions'
  const search: Suppressions['search'] = (body = {}, options) =>
    ask({ method: 'POST', path: `${path}/search`, body, options })
  return {
    search,
    iterate: (body, options) =>
      iterate(
        (after) => search({ ...body, ...after }, options),
        ({ suppressions }) => suppressions,
      ),
    add: (body, options) => ask({ method: 'POST', path, body, options }),
    read: (id, options) => ask({ method: 'GET', path: joinPath(path, id), options }),
    lift: (id, options) => ask({ method: 'DELETE', path: joinPath(path, id), options }),
  }
}

/**
 * Calls about sending domains.
 * @internal
 */
export function makeDomains({ ask }: Exchange): Domains {
  const path = '/v1/domains'
  const list: Domains['list'] = (query, options) => ask({ method: 'GET', path, query, options })
  return {
    list,
    iterate: (query, options) =>
      iterate(
        (after) => list({ ...query, ...after }, options),
        ({ domains }) => domains,
      ),
    add: (body, options) => ask({ method: 'POST', path, body, options }),
    read: (id, options) => ask({ method: 'GET', path: joinPath(path, id), options }),
    verify: (id, options) => ask({ method: 'POST', path: joinPath(path, id, 'verify'), options }),
    rotateDkim: (id, options) => ask({ method: 'POST', path: joinPath(path, id, 'rotate-dkim'), options }),
    useInTests: (id, options) => ask({ method: 'POST', path: joinPath(path, id, 'test-use'), options }),
    readReports: (id, query, options) => ask({ method: 'GET', path: joinPath(path, id, 'reports'), query, options }),
    readTlsReports: (id, query, options) =>
      ask({ method: 'GET', path: joinPath(path, id, 'tls-reports'), query, options }),
    receivedReports: (id, query, options) =>
      ask({ method: 'GET', path: joinPath(path, id, 'received-reports'), query, options }),
    delete: (id, options) => ask({ method: 'DELETE', path: joinPath(path, id), options }),
  }
}

/**
 * Calls about erasures.
 * @internal
 */
export function makeErasures({ ask }: Exchange): Erasures {
  const path = '/v1/erasures'
  return {
    create: (address, options) => ask({ method: 'POST', path, body: { address }, options }),
    read: (id, options) => ask({ method: 'GET', path: joinPath(path, id), options }),
  }
}
