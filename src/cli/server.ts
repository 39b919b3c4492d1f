/**
 * server - `sendwright server ...`: `create|list` by the operator, the rest by the account's key or the server's own.
 */
import { type Command, Option } from 'commander'
import type { Server } from '../../schemas/server.ts'
import { type ClientOptions, makeClient, readAll } from './console/client.ts'
import {
  orNull,
  parseInteger,
  parseIntegerOrNone,
  withClientOptions,
  withNote,
  withOperatorOptions,
  withServerOptions,
} from './console/options.ts'
import { type Ended, formatFields, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

interface CreateOptions extends ClientOptions {
  mode: 'live' | 'test'
  perMinute?: number
  monthlyCap?: number
  note?: string
}

type MadeServer = Server & { key: { token: string } }

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addServerCommands(program: Command, ended: Ended): void {
  const server = program.command('server').description('servers of an account')
  withNote(server.command('create <accountId> <name>'))
    .description('create a server and print its id and its first key, which is shown only once; by the operator')
    .addOption(new Option('--mode <mode>', 'kind of mail it sends').choices(['live', 'test']).makeOptionMandatory())
    .option('--per-minute <emails>', "limit per minute of the server, within its account's", parseInteger)
    .option('--monthly-cap <emails>', "monthly limit of the server, within its account's", parseInteger)
    .action(async (accountId, name, options) => ended(await createServer(pathOf(accountId), name, options)))
  withOperatorOptions(server.command('list [accountId]'))
    .description('list the servers of an account, newest first; without an id those of the account key')
    .action(async (accountId, options) => ended(await listServers(accountId, options)))
  withClientOptions(server.command('add <name>'))
    .description("make a server with the account's key; prints its id and its first key")
    .addOption(new Option('--mode <mode>', 'kind of mail it sends').choices(['live', 'test']).makeOptionMandatory())
    .option('--per-minute <emails>', "limit per minute of the server, within its account's", parseInteger)
    .option('--monthly-cap <emails>', "monthly limit of the server, within its account's", parseInteger)
    .action(async (name, options) => ended(await createServer(null, name, options)))
  withServerOptions(server.command('show [serverId]'))
    .description('print the server of the key, or another server of the account, with its limits and domains')
    .action(async (id, options) => ended(await showServer(id, options)))
  withClientOptions(server.command('update <serverId>'))
    .description('rename a server, or change its limits or its bounce mail')
    .option('--name <name>', 'its new name')
    .option('--per-minute <emails>', 'limit per minute of the server; none removes it', parseIntegerOrNone)
    .option('--monthly-cap <emails>', 'monthly limit of the server; none removes it', parseIntegerOrNone)
    .addOption(new Option('--bounce-mail <switch>', 'report outcomes to SMTP senders by mail').choices(['on', 'off']))
    .action(async (id, { name, perMinute, monthlyCap, bounceMail, ...options }) => {
      const reports = bounceMail === undefined ? {} : { bounceMail: bounceMail === 'on' }
      const body = { name, perMinuteLimit: orNull(perMinute), monthlyCap: orNull(monthlyCap), ...reports }
      ended(print(options, await makeClient(options, 'account').patch<Server>(at(id), body), formatFields))
    })
  withClientOptions(server.command('remove <serverId>'))
    .description('remove a server: its keys stop working immediately; accepted mail is still delivered')
    .action(async (id, options) => {
      await makeClient(options, 'account').delete(at(id))
      ended(print(options, { serverId: id, removed: true }, () => `Removed ${id}`))
    })
}

/** Takes the operator's path of an account's servers, or null to use the account's key. */
async function createServer(path: string | null, name: string, options: CreateOptions): Promise<number> {
  const { mode, perMinute: perMinuteLimit, monthlyCap, note } = options
  const body = { name, mode, perMinuteLimit, monthlyCap }
  const made =
    path === null
      ? await makeClient(options, 'account').post<MadeServer>('/v1/servers', body)
      : await makeClient(options, 'operator').post<MadeServer>(path, { ...body, note })
  return print(options, made, () => formatTable(['server', 'key'], [[made.serverId, made.key.token]]))
}

async function listServers(accountId: string | undefined, options: ClientOptions): Promise<number> {
  const servers =
    accountId === undefined
      ? await readAll<Server>(makeClient(options, 'account'), '/v1/servers', 'servers')
      : await readAll<Server>(makeClient(options, 'operator'), pathOf(accountId), 'servers')
  const rows = servers.map(({ name, mode, createdAt, serverId }) => [name, mode, createdAt, serverId])
  return print(options, { servers }, () => formatTable(['name', 'mode', 'created', 'id'], rows))
}

async function showServer(id: string | undefined, options: ClientOptions): Promise<number> {
  if (id !== undefined) return print(options, await makeClient(options, 'account').get<Server>(at(id)), formatFields)
  return print(options, await makeClient(options, 'server').get<Server>('/v1/server'), formatFields)
}

function at(id: string): string {
  return `/v1/servers/${encodeURIComponent(id)}`
}

function pathOf(accountId: string): string {
  return `/v1/operator/accounts/${encodeURIComponent(accountId)}/servers`
}
