/**
 * export - lists as CSV: POST /v1/{messages, bounces, suppressions, activity}/export and
 * /v1/domains/{id}/{reports, tls-reports}/export
 *
 * The first page is read as a search, with its refusals, and the export is noted before its first row leaves. Further
 * pages are read as the client takes the rows, so an erased address is a pseudonym from the erasure on, and a revoked
 * key ends the export. At the end the note gets the number of rows.
 *
 * Spec export.csv, export.bounds, export.note
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { homeShard } from '../../../cluster/id.ts'
import { CSV } from '../../../schemas/export/export.ts'
import { EXPORT_MINUTES_MAX, EXPORT_ROWS_MAX } from '../../../schemas/limits.ts'
import type { ExportBegun } from '../../actors/dashboard/export.ts'
import type { EdgeRequest, Handler } from '../../http/request.ts'
import { type Pieces, refusalReply } from '../../http/respond.ts'
import type { Scans } from '../../http/scans.ts'
import type { Metrics } from '../../process/metrics.ts'
import type { MemberAct } from '../../state/dashboard/act.ts'
import { parseProof, proofOf } from '../../state/dashboard/session.ts'
import { type Cell, formatCsvRow } from '../../views/format/csv.ts'
import { formatInstant } from '../../views/instant.ts'
import type { AccountKey, ServerKey } from '../../views/key.ts'
import { giveOrder, type OrderDeps } from '../answer.ts'
import type { ExportPlace, ExportPlaces } from './places.ts'
import { DMARC_TABLE, TLS_TABLE } from './report-tables.ts'
import { ACTIVITY, BOUNCES, MESSAGES, SUPPRESSIONS, type Table, type TableDeps, type TablePage } from './tables.ts'

/** Dependencies of exports. */
export interface ExportDeps extends TableDeps, OrderDeps {
  readonly nowMs: () => number
  readonly scans: Scans
  readonly exportPlaces: ExportPlaces
  readonly metrics: Pick<Metrics, 'exports'>
  /** In place of that of the contract. */
  readonly exportRowsMax?: number
}

/** Characters of a piece of the answer. */
const PIECE_CHARS = 64 * 1024
/** A store that does not answer, during a failover for example, is asked again so often. */
const TRIES_MAX = 10
const RETRY_MS = 1_000

/** The handlers of exports. */
export function exportHandlers(deps: ExportDeps) {
  return {
    exportMessages: makeExport(deps, MESSAGES),
    exportBounces: makeExport(deps, BOUNCES),
    exportSuppressions: makeExport(deps, SUPPRESSIONS),
    exportActivity: makeExport(deps, ACTIVITY),
    exportReports: makeExport(deps, DMARC_TABLE),
    exportTlsReports: makeExport(deps, TLS_TABLE),
  }
}

type ExportKey = ServerKey | AccountKey

function makeExport<Key extends ExportKey, Body extends object>(
  deps: ExportDeps,
  table: Table<Key, Body>,
): Handler<EdgeRequest<Key, Body>> {
  const make =
    (searching: ExportDeps): Handler<EdgeRequest<Key, Body>> =>
    async ({ key, body, params, route }) => {
      const first = await table.readPage(searching, { key, body, params, after: null })
      if (typeof first === 'string') return refusalReply(first)
      if ('path' in first) return refusalReply('invalid_request', { issues: [first] })
      const place = deps.exportPlaces.enter(key.accountId)
      if (typeof place === 'number') return refusalReply('export_limit', { max: place })
      const act = actOf(key, { act: route.name, body, params, table })
      const order = { name: 'begin-export', body: act }
      const begun = await giveOrder<ExportBegun>(deps, homeShard(key.accountId), order).catch((fault: unknown) => {
        place.leave()
        throw fault
      })
      if (begun.answer !== undefined) {
        place.leave()
        return begun.answer
      }
      const note = { begun: act, auditId: begun.reply.auditId }
      const rows = new Rows(deps, table, { key: exporting(key), body, params, first, place })
      return answerOf(deps, rows, { note, place, name: route.name })
    }
  return deps.scans.limit(make, deps)
}

/** The key of further pages: the rows of a live server end with the session's permission to export them. */
function exporting<Key extends ExportKey>(key: Key): Key {
  const session = parseProof(key.hash)
  if (session?.level !== 'r' || key.kind !== 'server' || key.mode !== 'live') return key
  return { ...key, hash: proofOf('w', session.hash) }
}

/** The entry of the log. Only the filters that name no person and no content are in it with their values. */
function actOf<Key extends ExportKey, Body extends object>(
  key: Key,
  {
    act,
    body,
    params,
    table,
  }: Pick<RowsInput<Key, Body>, 'body' | 'params'> & {
    readonly act: string
    readonly table: Table<Key, Body>
  },
): MemberAct {
  const { accountId, userId, tokenId } = key
  const filters = Object.entries(body)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (table.notedFields.includes(name) ? `${name}=${String(value)}` : name))
  const targets = {
    ...(key.kind === 'server' && { serverId: key.serverId }),
    ...(params.id !== undefined && { domainId: params.id.toLowerCase() }),
    ...(userId === undefined && { tokenId }),
    ...(filters.length > 0 && { filters: filters.join(' ') }),
  }
  return { accountId, userId: userId ?? null, act, targets }
}

interface EndOfExport {
  readonly note: { readonly begun: MemberAct; readonly auditId: string }
  readonly place: ExportPlace
  readonly name: string
}

function answerOf<Key extends ExportKey, Body>(
  deps: ExportDeps,
  rows: Rows<Key, Body>,
  { note, place, name }: EndOfExport,
): Pieces {
  deps.metrics.exports.begun()
  const list = name
    .slice('export'.length)
    .replace(/(?<=[a-z])(?=[A-Z])/g, '-')
    .toLowerCase()
  let hasEnded = false
  const file = `${list}-${formatInstant(deps.nowMs()).slice(0, 10)}.csv`
  return {
    contentType: `${CSV}; charset=utf-8; header=present`,
    headers: {
      'Content-Disposition': `attachment; filename="${file}"`,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Accel-Buffering': 'no',
    },
    msMax: EXPORT_MINUTES_MAX * 60_000,
    pieces: () => rows.pieces(),
    end(isWhole) {
      if (hasEnded) return
      hasEnded = true
      place.leave()
      const result = isWhole ? (rows.isCut ? 'cut' : 'complete') : 'broken'
      deps.metrics.exports.ended(list, result, rows.count)
      const targets = { ...note.begun.targets, rows: String(rows.count), result }
      // If it fails, the entry has no rows, as that of an export whose process has ended.
      giveOrder(deps, homeShard(note.begun.accountId), { name: 'end-export', body: { ...note, targets } }).catch(
        () => undefined,
      )
    },
  }
}

interface RowsInput<Key, Body> {
  readonly key: Key
  readonly body: Body
  readonly params: Readonly<Record<string, string>>
  readonly first: TablePage
  readonly place: ExportPlace
}

/** The rows of an export, page by page. */
class Rows<Key, Body> {
  readonly #deps: TableDeps
  readonly #rowsMax: number
  readonly #table: Table<Key, Body>
  readonly #of: RowsInput<Key, Body>
  /** Rows that were made so far. */
  count = 0
  /** Whether there were more than an export has. */
  isCut = false

  constructor(deps: ExportDeps, table: Table<Key, Body>, of: RowsInput<Key, Body>) {
    this.#deps = { ...deps, read: of.place.paced(deps.read) }
    this.#rowsMax = deps.exportRowsMax ?? EXPORT_ROWS_MAX
    this.#table = table
    this.#of = of
  }

  async *pieces(): AsyncGenerator<string> {
    const { columns } = this.#table
    yield formatCsvRow(columns)
    for (let page: TablePage | null = this.#of.first; page !== null; page = await this.#next(page.next)) {
      let text = ''
      for (const row of page.rows) {
        if (this.count === this.#rowsMax) {
          this.isCut = true
          yield text + formatCsvRow(cutRow(columns, this.#rowsMax))
          return
        }
        text += formatCsvRow(row)
        this.count += 1
        if (text.length < PIECE_CHARS) continue
        yield text
        text = ''
      }
      if (text !== '') yield text
    }
  }

  /** The page after an id; null at the end. Throws Error if it cannot be read. */
  async #next(after: string | null): Promise<TablePage | null> {
    if (after === null) return null
    const { key, body, params } = this.#of
    for (let tried = 1; ; tried += 1) {
      const page = await this.#table.readPage(this.#deps, { key, body, params, after })
      if (typeof page !== 'string' && 'rows' in page) return page
      if (page !== 'unavailable' || tried === TRIES_MAX)
        throw new Error(`The next page cannot be read: ${typeof page === 'string' ? page : page.message}`)
      await sleep(RETRY_MS)
    }
  }
}

/** As many cells as the other rows, so that the file stays well-formed. */
function cutRow(columns: readonly string[], rowsMax: number): Cell[] {
  return columns.map((_, place) => (place === 0 ? `Cut after ${rowsMax} rows: narrow the filters` : null))
}
