/** suppression - `sendwright suppression list|show|add|lift`: the addresses that a server does not write to. */
import type { Command } from 'commander'
import type { SuppressionEntry } from '../../schemas/suppression.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { parseInteger, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/suppressions'
const OPERATOR_PATH = '/v1/operator/suppressions'
const PAGE_MAX = 1000
const LIMIT_DEFAULT = 100
const PAGES_MAX = 1000

interface ListOptions extends ClientOptions {
  recipient?: string
  stream?: string
  reason?: string
  limit?: number
  server?: string
}

/** Adds the commands. `ended` hears the exit code of the one that ran. */
export function addSuppressionCommands(program: Command, ended: Ended): void {
  const suppression = program.command('suppression').description('suppressed addresses of a server')
  withServerOptions(suppression.command('list'))
    .description('list suppressed addresses, newest first')
    .option('--recipient <address>', 'only one address')
    .option('--stream <id>', 'only the list of one stream')
    .option('--reason <reason>', 'hard_bounce, spam_complaint, unsubscribe or manual')
    .option('--limit <n>', `at most so many (default: ${LIMIT_DEFAULT})`, parseInteger)
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
  withServerOptions(suppression.command('lift <suppressionId>'))
    .description('remove an address from a suppression list')
    .option('--operator', 'with the operator key, which lifts complaints and unsubscribes too')
    .option('--note <text>', 'reason for the audit log, with --operator')
    .action(async (id, { operator, note, ...options }) => {
      const place = encodeURIComponent(id)
      if (operator === true) await makeClient(options, 'operator').delete(`${OPERATOR_PATH}/${place}`, { note })
      else await makeClient(options, 'server').delete(`${PATH}/${place}`)
      ended(print(options, { suppressionId: id, lifted: true }, () => `Lifted ${id}`))
    })
}

async function listSuppressions(options: ListOptions): Promise<number> {
  const { recipient, stream: streamId, reason, limit = LIMIT_DEFAULT, server: serverId } = options
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
