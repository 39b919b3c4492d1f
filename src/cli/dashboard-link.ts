/**
 * dashboard-link - `sendwright dashboard-link` makes a dashboard link for a user who is locked out, or gets no mail.
 */
import type { Command } from 'commander'
import type { Account } from '../../schemas/account.ts'
import type { LinkMade } from '../../schemas/dashboard/link.ts'
import { type Client, type ClientOptions, makeClient, readAll } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import { withNote } from './console/options.ts'
import { type Ended, print } from './console/print.ts'

const PATH = '/v1/operator/accounts'

interface LinkOptions extends ClientOptions {
  account?: string
  role?: string
  removeFactors?: boolean
  note?: string
}

/** Adds the command. `ended` is called with the exit code of the command that ran. */
export function addDashboardLinkCommand(program: Command, ended: Ended): void {
  withNote(program.command('dashboard-link <address>'))
    .description(
      'print a dashboard link that works once, within a day. A user with that address chooses a new password; anyone else becomes a member. Give it to that person only',
    )
    .option('--account <id>', 'the account (default: the only open account)')
    .option('--role <role>', 'administrator or member (default: administrator)')
    .option('--remove-factors', 'also remove authenticator, passkeys and recovery codes, for a user who lost them')
    .action(async (address: string, options: LinkOptions) => ended(await makeLink(address, options)))
}

async function makeLink(address: string, options: LinkOptions): Promise<number> {
  const { account, role, removeFactors, note } = options
  const client = makeClient(options, 'operator')
  const id = encodeURIComponent(account ?? (await onlyAccount(client)))
  const made = await client.post<LinkMade>(`${PATH}/${id}/link`, { address, role, removeFactors, note })
  return print(options, made, ({ url, expiresAt }) => `${url}\nIt works once, until ${expiresAt}.`)
}

async function onlyAccount(client: Client): Promise<string> {
  const accounts = await readAll<Account>(client, PATH, 'accounts')
  const [only, ...others] = accounts.filter(({ status }) => status !== 'closed')
  if (only !== undefined && others.length === 0) return only.accountId
  throw new CommandFailure('There is not exactly one account: choose one with --account (sendwright account list)')
}
