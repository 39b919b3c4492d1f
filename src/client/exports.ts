/**
 * exports - lists as CSV, piece by piece as they arrive
 *
 * Spec client.exports, export.csv
 */
import { ConnectionError, SendwrightError } from './errors.ts'
import { type Exchange, reasonOf } from './exchange.ts'
import { joinPath } from './mail.ts'
import type { CallOptions } from './options.ts'
import type {
  ActivityExport,
  BounceExport,
  MessageExport,
  ReportExport,
  SuppressionExport,
  TlsReportExport,
} from './shapes/exports.ts'

/** Longer than the service pauses between two pieces, because it reads the store at a pace of its own. */
const SILENT_MS_MAX = 60_000

/** The bytes of a CSV file in UTF-8. Leaving the loop ends the export. */
export type CsvPieces = AsyncGenerator<Uint8Array, void, undefined>

/**
 * Lists as CSV, newest first. An export is never repeated. Its loop throws ConnectionError if the file ends before its
 * last row.
 */
export interface Exports {
  /** A row for each recipient of each message. */
  messages(filters?: MessageExport, options?: CallOptions): CsvPieces
  /** A row for each recipient that bounced. */
  bounces(filters?: BounceExport, options?: CallOptions): CsvPieces
  suppressions(filters?: SuppressionExport, options?: CallOptions): CsvPieces
  /** The log of the account's actions; takes an account key. */
  activity(filters?: ActivityExport, options?: CallOptions): CsvPieces
  /** The rows of DMARC reports about a domain; takes an account key. */
  reports(domainId: string, filters?: ReportExport, options?: CallOptions): CsvPieces
  /** The rows of TLS reports about a domain; takes an account key. */
  tlsReports(domainId: string, filters?: TlsReportExport, options?: CallOptions): CsvPieces
}

/**
 * Calls that export.
 * @internal
 */
export function makeExports(exchange: Exchange): Exports {
  const of =
    (path: string) =>
    (filters: object = {}, options?: CallOptions) =>
      piecesOf(exchange, { path, filters, options })
  const ofDomain =
    (list: string) =>
    (domainId: string, filters: object = {}, options?: CallOptions) =>
      piecesOf(exchange, { path: joinPath('/v1/domains', domainId, list, 'export'), filters, options })
  return {
    messages: of('/v1/messages/export'),
    bounces: of('/v1/bounces/export'),
    suppressions: of('/v1/suppressions/export'),
    activity: of('/v1/activity/export'),
    reports: ofDomain('reports'),
    tlsReports: ofDomain('tls-reports'),
  }
}

interface Export {
  readonly path: string
  readonly filters: object
  readonly options: CallOptions | undefined
}

async function* piecesOf(exchange: Exchange, { path, filters, options }: Export): CsvPieces {
  const signal = options?.signal
  const ending = new AbortController()
  const end = () => ending.abort()
  signal?.addEventListener('abort', end)
  if (signal?.aborted === true) end()
  let timer = setTimeout(end, SILENT_MS_MAX)
  try {
    for await (const piece of await exchange.open({ path, body: filters }, ending.signal)) {
      // The caller takes as long as it wants for a piece.
      clearTimeout(timer)
      yield piece
      timer = setTimeout(end, SILENT_MS_MAX)
    }
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason ?? cause
    if (cause instanceof SendwrightError) throw cause
    const why = ending.signal.aborted ? `nothing for ${SILENT_MS_MAX} ms` : reasonOf(cause)
    throw new ConnectionError(`The export broke off: ${why}`, { cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
    end()
  }
}
