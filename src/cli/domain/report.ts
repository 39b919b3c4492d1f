/** report - `sendwright domain reports|tls-reports|received-reports`: what receivers report about a domain. */
import { type Command, Option } from 'commander'
import type { ReceivedReports, ReportGroup, ReportRow, Reports, TlsReports } from '../../../schemas/report/report.ts'
import { type Client, type ClientOptions, makeClient } from '../console/client.ts'
import { type CsvOptions, exportCsv, withCsv } from '../console/csv.ts'
import { parseInstant, parseInteger, withClientOptions } from '../console/options.ts'
import { type Ended, print } from '../console/print.ts'
import { formatTable } from '../console/table.ts'

interface PageOptions extends ClientOptions {
  limit?: number
  after?: string
}

interface SpanOptions extends PageOptions, CsvOptions {
  since?: string
  until?: string
}

interface ReportsOptions extends SpanOptions {
  source?: string
  result?: string
  by: 'source' | 'day' | 'row'
}

/** Finds the id of a domain that is given by its name or its id. */
type FindId = (client: Client, name: string) => Promise<string>

/** Adds the commands to `domain`. `ended` is called with the exit code of the command that ran. */
export function addReportCommands(domain: Command, ended: Ended, idOf: FindId): void {
  withSpan(domain.command('reports <domain>'))
    .description('what DMARC reports say about a domain: who sends under its name, and what fails')
    .addOption(new Option('--by <kind>', 'what to add up').choices(['source', 'day', 'row']).default('source'))
    .option('--source <address>', 'only this source address')
    .addOption(new Option('--result <result>', 'only this result of DMARC').choices(['pass', 'fail']))
    .action(async (name, options) => ended(await showReports(name, options, idOf)))
  withSpan(domain.command('tls-reports <domain>'))
    .description("what TLS reports say about the domain's own mail servers")
    .action(async (name, options) => ended(await showTlsReports(name, options, idOf)))
  withPage(domain.command('received-reports <domain>'))
    .description('the reports about a domain that came in the last two months')
    .action(async (name, options) => ended(await showReceived(name, options, idOf)))
}

function withPage(command: Command): Command {
  return withClientOptions(command)
    .option('--limit <n>', 'rows of a page', parseInteger)
    .option('--after <next>', '`next` of the page before')
}

function withSpan(command: Command): Command {
  return withCsv(withPage(command))
    .option('--since <instant>', 'first day (default: 30 days ago)', parseInstant)
    .option('--until <instant>', 'before this (default: now)', parseInstant)
}

async function ask<Answer>(
  options: ClientOptions,
  name: string,
  { idOf, path, query }: { idOf: FindId; path: string; query: Readonly<Record<string, string | number | undefined>> },
): Promise<Answer> {
  const client = makeClient(options, 'account')
  const asked = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value !== undefined) asked.set(key, String(value))
  return client.get<Answer>(`/v1/domains/${await idOf(client, name)}/${path}?${asked}`)
}

/** The rows of the period as CSV. */
async function exportReports(
  options: CsvOptions,
  name: string,
  { idOf, path, body }: { readonly idOf: FindId; readonly path: string; readonly body: object },
): Promise<number> {
  const id = await idOf(makeClient(options, 'account'), name)
  return exportCsv(options, { owner: 'account', path: `/v1/domains/${id}/${path}/export`, body })
}

async function showReports(name: string, options: ReportsOptions, idOf: FindId): Promise<number> {
  const { since: from, until: to, by, source, result, limit, after } = options
  if (options.csv !== undefined)
    return exportReports(options, name, { idOf, path: 'reports', body: { from, to, source, result } })
  const groupBy = by === 'row' ? undefined : by
  const query = { from, to, source, result, groupBy, limit, after }
  const answer = await ask<Reports>(options, name, { idOf, path: 'reports', query })
  return print(options, answer, (reports) =>
    [formatTotals(reports), by === 'row' ? formatRows(reports.reports) : formatGroups(reports.groups, by)].join('\n\n'),
  )
}

function formatTotals({ policy, totals }: Reports): string {
  const { messages, passed, failed, ownFailed } = totals
  const published = policy === null ? 'no report yet' : `p=${policy.p}`
  return [
    `Policy ${published}. ${messages} messages: ${passed} passed DMARC, ${failed} failed.`,
    `With p=reject, ${failed} would be rejected, ${ownFailed} of them sent by this service.`,
  ].join('\n')
}

function formatGroups(groups: readonly ReportGroup[], by: 'source' | 'day'): string {
  return formatTable(
    [by, 'own', 'messages', 'passed', 'failed', 'DKIM', 'SPF', 'quarantined', 'rejected'],
    groups.map((one) => [
      by === 'day' ? one.group.slice(0, 10) : one.group,
      one.own ? 'yes' : '',
      String(one.messages),
      String(one.passed),
      String(one.failed),
      String(one.dkimPassed),
      String(one.spfPassed),
      String(one.quarantined),
      String(one.rejected),
    ]),
  )
}

function formatRows(rows: readonly ReportRow[]): string {
  return formatTable(
    ['day', 'source', 'messages', 'result', 'disposition', 'DKIM', 'SPF'],
    rows.map((one) => [
      one.day.slice(0, 10),
      one.source ?? 'other',
      String(one.messages),
      one.result,
      one.override === null ? one.disposition : `${one.disposition} (${one.override})`,
      [one.dkimResult, one.dkimDomain, one.dkimSelector].filter(Boolean).join(' '),
      [one.spfResult, one.spfDomain].filter(Boolean).join(' '),
    ]),
  )
}

async function showTlsReports(name: string, options: SpanOptions, idOf: FindId): Promise<number> {
  const { since: from, until: to, limit, after } = options
  if (options.csv !== undefined) return exportReports(options, name, { idOf, path: 'tls-reports', body: { from, to } })
  const answer = await ask<TlsReports>(options, name, { idOf, path: 'tls-reports', query: { from, to, limit, after } })
  return print(options, answer, ({ totals, reports }) =>
    [
      `${totals.sessions} sessions: ${totals.succeeded} succeeded, ${totals.failed} failed.`,
      formatTable(
        ['day', 'reporter', 'policy', 'result', 'sessions', 'server', 'from'],
        reports.map((one) => [
          one.day.slice(0, 10),
          one.reporter ?? 'other',
          one.policyType,
          one.result ?? 'success',
          String(one.sessions),
          one.receivingMx ?? '',
          one.sendingIp ?? '',
        ]),
      ),
    ].join('\n\n'),
  )
}

async function showReceived(name: string, options: PageOptions, idOf: FindId): Promise<number> {
  const { limit, after } = options
  const answer = await ask<ReceivedReports>(options, name, { idOf, path: 'received-reports', query: { limit, after } })
  return print(options, answer, ({ reports }) =>
    formatTable(
      ['received', 'kind', 'reporter', 'authenticated', 'messages', 'period', 'id'],
      reports.map((one) => [
        one.receivedAt.slice(0, 16),
        one.kind,
        one.reporter,
        one.authenticated ? 'yes' : 'no',
        String(one.messages),
        `${one.from.slice(0, 16)} to ${one.to.slice(0, 16)}`,
        one.reportId,
      ]),
    ),
  )
}
