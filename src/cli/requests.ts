/** requests - `sendwright requests list|show`: recent requests and their answers. */
import type { Command } from 'commander'
import type { RequestEntry, RequestList } from '../../schemas/request-log.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { parseInstant, parseInteger, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/requests'
const LIMIT_DEFAULT = 20
const PAGE = 100

interface ListOptions extends ClientOptions {
  refused?: boolean
  status?: number
  error?: string
  message?: string
  since?: string
  until?: string
  limit?: number
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addRequestCommands(program: Command, ended: Ended): void {
  const requests = program.command('requests').description('recent requests of a server or account')
  withServerOptions(requests.command('list'))
    .description('list requests, newest first; of all servers with --token and the key of the account')
    .option('--refused', 'only refused requests')
    .option('--status <status>', 'answered with this status', parseInteger)
    .option('--error <code>', 'refused with this code')
    .option('--message <id>', 'that created this message')
    .option('--since <instant>', 'at or after this', parseInstant)
    .option('--until <instant>', 'before this', parseInstant)
    .option('--limit <n>', `maximum number (default: ${LIMIT_DEFAULT})`, parseInteger)
    .action(async (options) => ended(await listRequests(options)))
  withServerOptions(requests.command('show <requestId>'))
    .description('print one request by its Request-Id')
    .action(async (id, options) => {
      const answer = await makeClient(options, 'server').get<RequestEntry>(`${PATH}/${encodeURIComponent(id)}`)
      ended(print(options, answer, formatFields))
    })
}

async function listRequests(options: ListOptions): Promise<number> {
  const { refused, status, error, message, since, until, limit = LIMIT_DEFAULT } = options
  const client = makeClient(options, 'server')
  const result = refused === true ? { result: 'refused' } : {}
  const asked = { ...result, status, error, messageId: message, receivedFrom: since, receivedTo: until }
  const found: RequestList = { requests: [], next: null }
  while (found.requests.length < limit) {
    const after = found.next === null ? {} : { after: found.next }
    const body = { ...asked, ...after, limit: Math.min(PAGE, limit - found.requests.length) }
    const answer = await client.post<RequestList>(`${PATH}/search`, body)
    found.requests.push(...answer.requests)
    found.next = answer.next
    if (answer.next === null) break
  }
  return print(options, found, ({ requests }) =>
    formatTable(
      ['when', 'method', 'path', 'status', 'refusal', 'issue', 'key', 'id'],
      requests.map((one) => [
        one.receivedAt,
        one.method,
        one.path ?? '',
        String(one.status),
        one.error ?? '',
        one.issue ?? '',
        one.prefix,
        one.requestId,
      ]),
    ),
  )
}
