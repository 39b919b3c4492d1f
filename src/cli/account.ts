/** account - `sendwright account create|list|approve|pause|resume|close`: accounts, by the operator. */
import type { Command } from 'commander'
import type { Account } from '../../schemas/account.ts'
import { type ClientOptions, makeClient } from './client.ts'
import { collect, parseInteger, withNote, withOperatorOptions } from './options.ts'
import { readAll } from './pages.ts'
import { formatTable } from './table.ts'

const PATH = '/v1/operator/accounts'

interface ActOptions extends ClientOptions {
  note?: string
}

/** Adds the commands. `ended` hears the exit code of the one that ran. */
export function addAccountCommands(program: Command, ended: (code: number) => void): void {
  const account = program.command('account').description('accounts, on the operator listener')
  withNote(account.command('create <name>'))
    .description('make an account, without server and key, and print its id')
    .option('--administrator <address>', 'whom to mail about the account; may be given several times', collect)
    .action(async (name, { administrator = [], ...options }) =>
      ended(await act(options, '', { name, administrators: administrator })),
    )
  withOperatorOptions(account.command('list'))
    .description('list all accounts, newest first')
    .action(async (options) => ended(await listAccounts(options)))
  withNote(account.command('approve <accountId>'))
    .description('let a pending account send live mail')
    .requiredOption('--monthly-cap <emails>', 'emails a month that were approved', parseInteger)
    .option('--per-minute <emails>', 'emails a minute', parseInteger)
    .action(async (id, { monthlyCap, perMinute: perMinuteLimit, ...options }) =>
      ended(await act(options, at(id, 'approve'), { monthlyCap, perMinuteLimit })),
    )
  withNote(account.command('pause <accountId>'))
    .description('refuse new mail; what was accepted waits until the account is resumed')
    .option('--no-hold', 'let accepted mail go out')
    .action(async (id, { hold, ...options }) => ended(await act(options, at(id, 'pause'), { hold })))
  withNote(account.command('resume <accountId>'))
    .description('take mail again, and let go what waits')
    .action(async (id, options) => ended(await act(options, at(id, 'resume'), {})))
  withNote(account.command('close <accountId>'))
    .description('close an account for good; accepted mail is still delivered')
    .action(async (id, options) => ended(await act(options, at(id, 'close'), {})))
}

async function act({ note, ...options }: ActOptions, path: string, body: object): Promise<number> {
  const account = await makeClient(options, 'operator').post<Account>(`${PATH}${path}`, { ...body, note })
  if (options.json) console.log(JSON.stringify(account))
  else console.log(path === '' ? account.accountId : `${account.name} (${account.accountId}) is ${account.status}`)
  return 0
}

/** The path of an act. */
function at(id: string, name: string): string {
  return `/${encodeURIComponent(id)}/${name}`
}

async function listAccounts(options: ClientOptions): Promise<number> {
  const accounts = await readAll<Account>(makeClient(options, 'operator'), PATH, 'accounts')
  if (options.json) {
    console.log(JSON.stringify({ accounts }))
    return 0
  }
  const rows = accounts.map((account) => [
    account.name,
    account.status,
    usedOf(account),
    String(account.monthlyCap),
    account.createdAt,
    account.accountId,
  ])
  console.log(formatTable(['name', 'status', 'this month', 'cap', 'created', 'id'], rows))
  return 0
}

function usedOf({ limits }: Account): string {
  return String(limits.find(({ scope, period }) => scope === 'account' && period === 'month')?.used ?? 0)
}
