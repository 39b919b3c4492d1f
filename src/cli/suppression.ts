/** suppression - `sendwright suppression list|show|add|lift` for the suppressed addresses of a server. */
import type { Command } from 'commander'
import type { SuppressionEntry } from '../../schemas/suppression.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { type CsvOptions, exportCsv, withCsv } from './console/csv.ts'
import { CommandFailure } from './console/failure.ts'
import { parseInteger, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/suppressions'
const OPERATOR_PATH = '/v1/operator/suppressions'
const PAGE_MAX = 1000
const LIMIT_DEFAULT = 100
const PAGES_MAX = 1000

interface ListOptions extends CsvOptions {
  recipient?: string
  stream?: string
  reason?: string
  server?: string
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addSuppressionCommands(program: Command, ended: Ended): void {
  const suppression = program.command('suppression').description('suppressed addresses of a server')
  withCsv(withServerOptions(suppression.command('list')))
    .description('list suppressed addresses, newest first')
    .option('--recipient <address>', 'only one address')
    .option('--stream <id>', 'only the list of one stream')
    .option('--reason <reason>', 'hard_bounce, spam_complaint, unsubscribe or manual')
    .option('--limit <n>', `maximum number (default: ${LIMIT_DEFAULT})`, parseInteger)
    .option('--server <id>', 'the server, by the operator')
    .action(async (options) => ended(await listSuppressions(options)))
  withServerOptions(suppression.command('show <suppressionId>'))
    .description('print one entry')
    .action(async (id, options) => {
      const entry = await makeClient(options, 'server').get<SuppressionEntry>(`${PATH}/${encodeURIComponent(id)}`)
      ended(print(options, entry, formatFields))
    })
  withServerOptions(suppression.command('add <streamId> <address...>'))
    .description('add addresses to the list of a stream')
    .action(async (streamId, recipients, options) => {
      const client = makeClient(options, 'server')
      const answer = await client.post<{ added: number; existing: number }>(PATH, { streamId, recipients })
      ended(print(options, answer, ({ added, existing }) => `Added ${added}; ${existing} stood there before`))
    })
  withServerOptions(suppression.command('lift <suppressionId|address>'))
    .description('remove one entry, or all entries of an address')
    .option('--stream <id>', 'only the entry on the list of one stream')
    .option('--operator', 'with the operator key, which lifts complaints and unsubscribes too')
    .option('--note <text>', 'reason for the audit log, with --operator')
    .option('--server <id>', 'with --operator, only the entries of one server')
    .action(async (target, options) => ended(await lift(target, options)))
}

interface LiftOptions extends ClientOptions {
  operator?: boolean
  note?: string
  stream?: string
  server?: string
}

/** Lifts one entry, or all entries of an address. Throws CommandFailure if the address has no entry. */
async function lift(target: string, options: LiftOptions): Promise<number> {
  const { operator = false, note } = options
  const client = makeClient(options, operator ? 'operator' : 'server')
  const found = target.includes('@') ? await readEntries(target, options) : null
  if (found?.length === 0)
    throw new CommandFailure(`${target} is not suppressed: sendwright suppression list shows all entries`)
  const ids = found === null ? [target] : found.map(({ suppressionId }) => suppressionId)
  for (const id of ids) {
    const place = encodeURIComponent(id)
    if (operator) await client.delete(`${OPERATOR_PATH}/${place}`, { note })
    else await client.delete(`${PATH}/${place}`)
  }
  if (found === null) return print(options, { suppressionId: target, lifted: true }, () => `Lifted ${target}`)
  return print(
    options,
    { recipient: target, lifted: ids },
    () => `Lifted ${ids.length} of ${target}: ${ids.join(', ')}`,
  )
}

/** The entries of an address: at most one a stream. */
async function readEntries(recipient: string, options: LiftOptions): Promise<SuppressionEntry[]> {
  const { operator = false, stream: streamId, server: serverId } = options
  if (operator && serverId === undefined) throw new CommandFailure('An address with --operator needs --server <id>')
  const client = makeClient(options, operator ? 'operator' : 'server')
  const body = { recipient, streamId, limit: PAGE_MAX, ...(operator && { serverId }) }
  const answer = await client.post<{ suppressions: SuppressionEntry[] }>(
    `${operator ? OPERATOR_PATH : PATH}/search`,
    body,
  )
  return answer.suppressions
}

async function listSuppressions(options: ListOptions): Promise<number> {
  const { recipient, stream: streamId, reason, limit = LIMIT_DEFAULT, server: serverId } = options
  if (options.csv !== undefined) {
    if (serverId !== undefined) throw new CommandFailure('--csv needs the key of the server: leave out --server')
    return exportCsv(options, { owner: 'server', path: `${PATH}/export`, body: { recipient, streamId, reason } })
  }
  const client = makeClient(options, serverId === undefined ? 'server' : 'operator')
  const path = `${serverId === undefined ? PATH : OPERATOR_PATH}/search`
  const suppressions: SuppressionEntry[] = []
  let next: string | null = null
  for (let page = 0; page < PAGES_MAX && suppressions.length < limit; page += 1) {
    const body = { recipient, streamId, reason, serverId, limit: Math.min(PAGE_MAX, limit - suppressions.length) }
    const answer: { suppressions: SuppressionEntry[]; next: string | null } = await client.post(path, {
      ...body,
      ...(next !== null && { after: next }),
    })
    suppressions.push(...answer.suppressions)
    next = answer.next
    if (next === null) break
  }
  return print(options, { suppressions, next }, () =>
    formatTable(
      ['since', 'address', 'reason', 'answer', 'id'],
      suppressions.map((one) => [one.createdAt, one.recipient, one.reason, one.response ?? '', one.suppressionId]),
    ),
  )
}
