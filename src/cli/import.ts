/**
 * import - `sendwright import suppressions`: the suppression list that another provider exports, onto a stream's list
 *
 * The file is streamed. An address that is already listed is not listed twice, so an interrupted import can be
 * repeated as a whole. Rows that cannot be read are listed with their line and skipped.
 */

import { createReadStream } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { SUPPRESSIONS_ADDED_MAX } from '../../schemas/limits.ts'
import { SUPPRESSION_REASONS, type SuppressionEntry } from '../../schemas/suppression.ts'
import { isAddress } from '../mail/address.ts'
import { type Client, type ClientOptions, makeClient } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import { withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'

type Reason = SuppressionEntry['reason']

/** The columns of a provider's files. Names of columns are in lower case, letters and digits only. */
interface Provider {
  readonly address: readonly string[]
  /** Columns that name a reason; the first existing one is used. */
  readonly reason: readonly string[]
  /** Columns that only files of one reason have. */
  readonly marks: readonly (readonly [column: string, reason: Reason])[]
}

const PROVIDERS: Readonly<Record<string, Provider>> = {
  postmark: { address: ['emailaddress', 'email'], reason: ['suppressionreason', 'reason', 'type'], marks: [] },
  resend: { address: ['email', 'emailaddress'], reason: ['origin', 'reason', 'type'], marks: [] },
  mailgun: {
    address: ['address', 'email', 'recipient'],
    reason: ['type', 'reason'],
    marks: [
      ['code', 'hard_bounce'],
      ['error', 'hard_bounce'],
      ['tags', 'unsubscribe'],
    ],
  },
  ses: { address: ['emailaddress', 'email'], reason: ['reason', 'suppressionreason'], marks: [] },
  sendgrid: { address: ['email', 'emailaddress'], reason: ['type'], marks: [['status', 'hard_bounce']] },
}
const STREAM_COLUMNS = ['streamid', 'messagestream', 'stream']
/** Words of the providers, the worst first. */
const WORDS: readonly (readonly [RegExp, Reason])[] = [
  [/complain|spam/, 'spam_complaint'],
  [/unsub|optout|recipientrequest/, 'unsubscribe'],
  [/bounce|invalid/, 'hard_bounce'],
]
const ROWS_MAX = 5_000_000
const RECORD_CHARS_MAX = 100_000
/** Bad rows that are listed; the others are counted. */
const BAD_LISTED_MAX = 1_000
/** Keeps below the default of EDGE_RATE. */
const REQUEST_MS_MIN = 60

interface ImportOptions extends ClientOptions {
  readonly from: string
  readonly stream?: string
  readonly reason?: Reason
  readonly dryRun?: boolean
}

interface BadRow {
  readonly line: number
  readonly problem: string
}

interface Report {
  rows: number
  added: number
  existing: number
  bad: number
  readonly reasons: Record<Reason, number>
  readonly badRows: BadRow[]
}

interface Row {
  readonly streamId: string
  readonly reason: Reason
  readonly address: string
}

/** Adds the commands. `ended` gets the exit code of the command that ran. */
export function addImportCommands(program: Command, ended: Ended): void {
  const group = program.command('import').description('data of other providers')
  withServerOptions(group.command('suppressions <file>'))
    .description("add the addresses of another provider's suppression list (CSV)")
    .addOption(
      new Option('--from <provider>', 'the provider that exported the file')
        .choices(Object.keys(PROVIDERS))
        .makeOptionMandatory(),
    )
    .option('--stream <id>', 'stream to whose list the addresses are added; required unless a column names it')
    .addOption(
      new Option('--reason <reason>', 'reason for rows without one in the file (default: manual)').choices(
        SUPPRESSION_REASONS,
      ),
    )
    .option('--dry-run', 'read the file and add nothing')
    .action(async (file, options) => ended(await importSuppressions(file, options)))
}

async function importSuppressions(file: string, options: ImportOptions): Promise<number> {
  const client = makeClient(options, 'server')
  const streams = options.stream === undefined ? await readStreams(client) : new Map<string, string>()
  const report: Report = {
    rows: 0,
    added: 0,
    existing: 0,
    bad: 0,
    reasons: { manual: 0, hard_bounce: 0, unsubscribe: 0, spam_complaint: 0 },
    badRows: [],
  }
  const send = makeSender(client, report, options.dryRun === true)
  for await (const { record, line, problem } of readRecords(file)) {
    report.rows += 1
    if (report.rows > ROWS_MAX) throw new CommandFailure(`${file} has more than ${ROWS_MAX} rows: split it`)
    const row = problem ?? parseRow(record, { options, streams })
    if (typeof row === 'string') {
      report.bad += 1
      if (report.badRows.length < BAD_LISTED_MAX) report.badRows.push({ line, problem: row })
    } else {
      report.reasons[row.reason] += 1
      await send.add(row)
    }
  }
  await send.end()
  print(options, report, formatReport)
  return report.bad > 0 ? 1 : 0
}

function formatReport({ badRows, bad, reasons, ...counts }: Report): string {
  const listed = badRows.map(({ line, problem }) => `line ${line}: ${problem}`)
  const more = bad > badRows.length ? [`... and ${bad - badRows.length} more`] : []
  return [formatFields({ ...counts, bad, ...reasons }), ...listed, ...more].join('\n')
}

interface CsvRecord {
  readonly record: Readonly<Record<string, string>>
  readonly line: number
  readonly problem: string | null
}

/** The rows of a CSV file (RFC 4180). Throws CommandFailure if it cannot be read. */
async function* readRecords(file: string): AsyncGenerator<CsvRecord> {
  const { parse } = await import('csv-parse')
  const bytes = createReadStream(file)
  const parser = parse({
    bom: true,
    trim: true,
    info: true,
    skip_empty_lines: true,
    relax_column_count: true,
    relax_quotes: true,
    max_record_size: RECORD_CHARS_MAX,
  })
  bytes.on('error', (error) => parser.destroy(error))
  bytes.pipe(parser)
  let names: string[] | null = null
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: { lines: number } }>) {
      if (names === null) {
        names = record.map((name) => name.toLowerCase().replace(/[^a-z0-9]/g, ''))
        continue
      }
      const problem = record.length > names.length ? `has ${record.length} fields of ${names.length}` : null
      const fields = Object.fromEntries(names.map((name, place) => [name, record[place] ?? '']))
      yield { record: fields, line: info.lines, problem }
    }
  } catch (error) {
    if (error instanceof CommandFailure) throw error
    throw new CommandFailure(`${file}: ${(error as Error).message}`)
  } finally {
    bytes.destroy()
  }
}

/** A row; or the problem with it. */
function parseRow(
  record: CsvRecord['record'],
  { options, streams }: { options: ImportOptions; streams: ReadonlyMap<string, string> },
): Row | string {
  const provider = PROVIDERS[options.from] as Provider
  const address = fieldOf(record, provider.address)
  if (address === null) return `no column ${provider.address.join(', ')}`
  if (!isAddress(address)) return address === '' ? 'no address' : 'not an e-mail address'
  const named = fieldOf(record, STREAM_COLUMNS)
  const streamId = options.stream ?? (named === null ? undefined : streams.get(named.toLowerCase()))
  if (streamId === undefined) {
    if (named === null) throw new CommandFailure('The file names no stream: give --stream')
    return 'the server has no such stream'
  }
  return { streamId, address, reason: parseReason(record, provider) ?? options.reason ?? 'manual' }
}

function parseReason(record: CsvRecord['record'], { reason, marks }: Provider): Reason | null {
  const text =
    fieldOf(record, reason)
      ?.toLowerCase()
      .replace(/[^a-z]/g, '') ?? ''
  const word = WORDS.find(([pattern]) => pattern.test(text))
  if (word !== undefined) return word[1]
  if (text.startsWith('manual')) return 'manual'
  return marks.find(([column]) => Object.hasOwn(record, column))?.[1] ?? null
}

function fieldOf(record: CsvRecord['record'], columns: readonly string[]): string | null {
  const column = columns.find((name) => Object.hasOwn(record, name))
  return column === undefined ? null : (record[column] ?? '')
}

/** Sends rows on, as many as one request takes of each stream and reason. */
function makeSender(client: Client, report: Report, isDry: boolean) {
  const waiting = new Map<string, { streamId: string; reason: Reason; recipients: string[] }>()
  const send = async (body: { streamId: string; reason: Reason; recipients: string[] }): Promise<void> => {
    const [answer] = await Promise.all([
      client.post<{ added: number; existing: number }>('/v1/suppressions', body),
      pause(REQUEST_MS_MIN),
    ])
    report.added += answer.added
    report.existing += answer.existing
  }
  return {
    async add({ streamId, reason, address }: Row): Promise<void> {
      if (isDry) return
      const place = `${streamId} ${reason}`
      const body = waiting.get(place) ?? { streamId, reason, recipients: [] }
      body.recipients.push(address)
      waiting.set(place, body)
      if (body.recipients.length < SUPPRESSIONS_ADDED_MAX) return
      waiting.delete(place)
      await send(body)
    },
    async end(): Promise<void> {
      for (const body of waiting.values()) await send(body)
    },
  }
}

/** The server's sending streams by id and by name; Postmark's `outbound` is the default one. */
async function readStreams(client: Client): Promise<ReadonlyMap<string, string>> {
  type Page = { streams: { streamId: string; name: string; kind: string; isDefault: boolean }[]; next: string | null }
  const streams = new Map<string, string>()
  let after = ''
  for (;;) {
    const { streams: page, next }: Page = await client.get(`/v1/streams?limit=100${after}`)
    for (const { streamId, name, kind, isDefault } of page) {
      if (kind === 'inbound') continue
      if (isDefault) streams.set('outbound', streamId)
      streams.set(name.toLowerCase(), streamId)
      streams.set(streamId, streamId)
    }
    if (next === null) return streams
    after = `&after=${next}`
  }
}
