/** retention - `sendwright retention show|set`: for how long mail of an account, a server or a stream is kept. */
import type { Command } from 'commander'
import type { ContentRetention } from '../../schemas/retention/retention.ts'
import { type Client, type ClientOptions, makeClient } from './console/client.ts'
import { orNull, parseIntegerOrNone, withServerOptions } from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'

interface PlaceOptions extends ClientOptions {
  server?: string
  stream?: string
  account?: string
  installation?: boolean
}

interface SetOptions extends PlaceOptions {
  sentContent?: number | 'none'
  log?: number | 'none'
  note?: string
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addRetentionCommands(program: Command, ended: Ended): void {
  const retention = program.command('retention').description('for how long mail is kept')
  withPlace(retention.command('show'))
    .description('print the retention of the account of the key, or of a server, a stream or another account')
    .action(async (options: PlaceOptions) => {
      const { client, path } = placeOf(options)
      ended(print(options, await client.get<ContentRetention>(path), formatFields))
    })
  withPlace(retention.command('set'))
    .description('change the retention; it applies within a day to stored mail')
    .option(
      '--sent-content <days>',
      'days for which text and HTML of sent mail are kept; 0: until delivery has ended; none: inherit',
      parseIntegerOrNone,
    )
    .option(
      '--log <months>',
      'months for which the message log is kept, of an account or the installation; none: inherit',
      parseIntegerOrNone,
    )
    .option('--note <text>', 'reason for the audit log, with --account or --installation')
    .action(async ({ sentContent, log, note, ...options }: SetOptions) => {
      const { client, path } = placeOf(options)
      const values = { sentContentDays: orNull(sentContent), logRetentionMonths: orNull(log) }
      const isOperator = options.account !== undefined || options.installation === true
      const body = { ...values, ...(isOperator && { note }) }
      ended(print(options, await client.patch<ContentRetention>(path, body), formatFields))
    })
}

function withPlace(command: Command): Command {
  return withServerOptions(command)
    .option('--stream <id>', "a stream, by its server's key")
    .option('--server <id>', "a server, by its account's key")
    .option('--account <id>', 'an account, by the operator')
    .option('--installation', 'the installation, by the operator')
}

function placeOf(options: PlaceOptions): { client: Client; path: string } {
  const { stream, server, account, installation } = options
  if (installation === true) return { client: makeClient(options, 'operator'), path: '/v1/operator/retention' }
  if (stream !== undefined)
    return { client: makeClient(options, 'server'), path: `/v1/streams/${encodeURIComponent(stream)}/retention` }
  if (server !== undefined)
    return { client: makeClient(options, 'account'), path: `/v1/servers/${encodeURIComponent(server)}/retention` }
  if (account === undefined) return { client: makeClient(options, 'account'), path: '/v1/account/retention' }
  const path = `/v1/operator/accounts/${encodeURIComponent(account)}/retention`
  return { client: makeClient(options, 'operator'), path }
}
