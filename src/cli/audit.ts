/** audit - `sendwright audit`: what operators did, newest first. */
import type { Command } from 'commander'
import type { AuditList } from '../../schemas/operator/audit.ts'
import { type ClientOptions, makeClient } from './client.ts'
import { parseInteger, withOperatorOptions } from './options.ts'
import { type Ended, print } from './print.ts'
import { formatTable } from './table.ts'

const PAGE_MAX = 100
const LIMIT_DEFAULT = 50
const PAGES_MAX = 1000

/** Adds the command. `ended` hears the exit code. */
export function addAuditCommand(program: Command, ended: Ended): void {
  withOperatorOptions(program.command('audit'))
    .description('list what operators did, newest first')
    .option('--limit <n>', `at most so many (default: ${LIMIT_DEFAULT})`, parseInteger)
    .action(async (options) => ended(await listAudit(options)))
}

async function listAudit(options: ClientOptions & { limit?: number }): Promise<number> {
  const client = makeClient(options, 'operator')
  const { limit = LIMIT_DEFAULT } = options
  const found: AuditList = { entries: [], next: null }
  for (let page = 0; page < PAGES_MAX && found.entries.length < limit; page += 1) {
    const after = found.next === null ? '' : `&after=${found.next}`
    const rest = Math.min(PAGE_MAX, limit - found.entries.length)
    const answer = await client.get<AuditList>(`/v1/operator/audit?limit=${rest}${after}`)
    found.entries.push(...answer.entries)
    found.next = answer.next
    if (answer.next === null) break
  }
  return print(options, found, ({ entries }) =>
    formatTable(
      ['when', 'act', 'targets', 'note', 'by'],
      entries.map(({ at, act, targets, note, actor }) => [at, act, JSON.stringify(targets), note ?? '', actor ?? '-']),
    ),
  )
}
