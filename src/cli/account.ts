/**
 * account - `sendwright account ...`: accounts by the operator; `show` without an id the account of the key; `activity`
 * the log of its actions.
 */
import type { Command } from 'commander'
import type { Account, AccountDetail } from '../../schemas/account.ts'
import { type ClientOptions, makeClient, readAll } from './console/client.ts'
import { exportCsv, withCsv } from './console/csv.ts'
import {
  collect,
  orNull,
  parseInstant,
  parseInteger,
  parseIntegerOrNone,
  withClientOptions,
  withNote,
  withOperatorOptions,
} from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

const PATH = '/v1/operator/accounts'

interface ActOptions extends ClientOptions {
  note?: string
}

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addAccountCommands(program: Command, ended: Ended): void {
  const account = program.command('account').description('accounts, on the operator listener')
  withNote(account.command('create <name>'))
    .description('create an account, without server and key, and print its id')
    .option(
      '--administrator <address>',
      'email address of an administrator to invite and notify about the account; may be given several times',
      collect,
    )
    .action(async (name, { administrator = [], ...options }) =>
      ended(await act(options, '', { name, administrators: administrator })),
    )
  withOperatorOptions(account.command('list'))
    .description('list all accounts, newest first')
    .action(async (options) => ended(await listAccounts(options)))
  withOperatorOptions(account.command('show [accountId]'))
    .description('print an account with its last 24 hours; without an id the account of an account key')
    .action(async (id, options) => ended(await showAccount(id, options)))
  addLimitsCommand(account, ended)
  withNote(account.command('approve <accountId>'))
    .description('let a pending account send live mail')
    .option(
      '--monthly-cap <emails>',
      'emails a month (default: from the volume that the account applied for)',
      parseInteger,
    )
    .option('--per-minute <emails>', 'emails a minute', parseInteger)
    .action(async (id, { monthlyCap, perMinute: perMinuteLimit, ...options }) =>
      ended(await act(options, at(id, '/approve'), { monthlyCap, perMinuteLimit })),
    )
  withNote(account.command('pause <accountId>'))
    .description('refuse new mail and hold accepted mail until the account is resumed')
    .option('--no-hold', 'release held mail')
    .action(async (id, { hold, ...options }) => ended(await act(options, at(id, '/pause'), { hold })))
  withNote(account.command('resume <accountId>'))
    .description('accept new mail and deliver held mail')
    .action(async (id, options) => ended(await act(options, at(id, '/resume'), {})))
  withCsv(withClientOptions(account.command('activity')))
    .description("print the actions of an account as CSV with its key: members' changes, sign-ins, exports")
    .option('--since <instant>', 'at or after this', parseInstant)
    .option('--until <instant>', 'before this', parseInstant)
    .action(async ({ since: from, until: to, ...options }) =>
      ended(await exportCsv(options, { owner: 'account', path: '/v1/activity/export', body: { from, to } })),
    )
  withNote(account.command('close <accountId>'))
    .description('close an account for good; accepted mail is still delivered')
    .action(async (id, options) => ended(await act(options, at(id, '/close'), {})))
}

function addLimitsCommand(account: Command, ended: Ended): void {
  withNote(account.command('limits <accountId>'))
    .description("print an account's limits, or change the given ones")
    .option('--monthly <emails>', 'live emails a month; a higher value also raises the approved cap', parseInteger)
    .option('--per-minute <emails>', 'live emails a minute', parseInteger)
    .option(
      '--highest <emails>',
      'highest monthly cap that the account can set itself; none: ten times the approved cap',
      parseIntegerOrNone,
    )
    .option('--test-monthly <emails>', 'emails a month, all test servers together', parseInteger)
    .option('--test-per-minute <emails>', 'emails a minute, all test servers together', parseInteger)
    .option('--inbound-per-minute <mails>', 'received mails a minute', parseInteger)
    .option('--servers <n>', 'maximum number of servers', parseInteger)
    .option('--subscription <on|off>', 'whether the account has a subscription, for BILLING=on')
    .action(async (id, options) => ended(await limits(id, options)))
}

interface LimitsOptions extends ActOptions {
  monthly?: number
  perMinute?: number
  highest?: number | 'none'
  testMonthly?: number
  testPerMinute?: number
  inboundPerMinute?: number
  servers?: number
  subscription?: string
}

async function limits(id: string, { note, ...options }: LimitsOptions): Promise<number> {
  const client = makeClient(options, 'operator')
  const { monthly, perMinute, highest, testMonthly, testPerMinute, inboundPerMinute, servers, subscription } = options
  const wanted = {
    monthlyCap: monthly,
    perMinuteLimit: perMinute,
    highestCap: orNull(highest),
    testMonthlyCap: testMonthly,
    testPerMinuteLimit: testPerMinute,
    inboundPerMinuteLimit: inboundPerMinute,
    serverLimit: servers,
    subscriptionActive: subscription === undefined ? undefined : subscription === 'on',
  }
  const before = await client.get<Account>(`${PATH}${at(id)}`)
  const isChange = Object.values(wanted).some((value) => value !== undefined)
  const approvedCap = monthly !== undefined && monthly > before.approvedCap ? monthly : undefined
  const account = isChange ? await client.patch<Account>(`${PATH}${at(id)}`, { ...wanted, approvedCap, note }) : before
  return print(options, account, formatLimits)
}

function formatLimits({ limits: entries, approvedCap, highestCap, serverLimit }: Account): string {
  const rows = entries.map(({ scope, period, limit, used, resetsAt }) => [
    `${scope}, a ${period}`,
    String(limit),
    String(used),
    resetsAt,
  ])
  const rest = `Approved: ${approvedCap} a month, highest cap: ${highestCap ?? 10 * approvedCap}, servers: ${serverLimit}`
  return `${formatTable(['limit', 'emails', 'used', 'resets'], rows)}\n${rest}`
}

async function showAccount(id: string | undefined, options: ClientOptions): Promise<number> {
  if (id !== undefined)
    return print(options, await makeClient(options, 'operator').get<AccountDetail>(`${PATH}${at(id)}`), formatFields)
  return print(options, await makeClient(options, 'account').get<Account>('/v1/account'), formatFields)
}

async function act({ note, ...options }: ActOptions, path: string, body: object): Promise<number> {
  const account = await makeClient(options, 'operator').post<Account>(`${PATH}${path}`, { ...body, note })
  return print(options, account, () =>
    path === '' ? account.accountId : `${account.name} (${account.accountId}) is ${account.status}`,
  )
}

/** The path of an account, and of an act on it. */
function at(id: string, name = ''): string {
  return `/${encodeURIComponent(id)}${name}`
}

async function listAccounts(options: ClientOptions): Promise<number> {
  const accounts = await readAll<Account>(makeClient(options, 'operator'), PATH, 'accounts')
  const rows = accounts.map((account) => [
    account.name,
    account.status,
    usedOf(account),
    String(account.monthlyCap),
    account.createdAt,
    account.accountId,
  ])
  return print(options, { accounts }, () => formatTable(['name', 'status', 'this month', 'cap', 'created', 'id'], rows))
}

function usedOf({ limits: entries }: Account): string {
  return String(entries.find(({ scope, period }) => scope === 'account' && period === 'month')?.used ?? 0)
}
