/** server - `sendwright server create|list`: the servers of an account, by the operator. */
import { type Command, Option } from 'commander'
import type { Server } from '../../schemas/server.ts'
import { type ClientOptions, makeClient } from './client.ts'
import { parseInteger, withNote, withOperatorOptions } from './options.ts'
import { readAll } from './pages.ts'
import { formatTable } from './table.ts'

interface CreateOptions extends ClientOptions {
  mode: 'live' | 'test'
  perMinute?: number
  monthlyCap?: number
  note?: string
}

type MadeServer = Server & { key: { token: string } }

/** Adds the commands. `ended` hears the exit code of the one that ran. */
export function addServerCommands(program: Command, ended: (code: number) => void): void {
  const server = program.command('server').description('servers of an account, on the operator listener')
  withNote(server.command('create <accountId> <name>'))
    .description('make a server and print its id and its first key, which is shown only now')
    .addOption(new Option('--mode <mode>', 'what it sends').choices(['live', 'test']).makeOptionMandatory())
    .option('--per-minute <emails>', "a limit of its own, within its account's", parseInteger)
    .option('--monthly-cap <emails>', "a cap of its own, within its account's", parseInteger)
    .action(async (accountId, name, options) => ended(await createServer(accountId, name, options)))
  withOperatorOptions(server.command('list <accountId>'))
    .description('list the servers of an account, newest first')
    .action(async (accountId, options) => ended(await listServers(accountId, options)))
}

async function createServer(accountId: string, name: string, options: CreateOptions): Promise<number> {
  const { mode, perMinute: perMinuteLimit, monthlyCap, note } = options
  const body = { name, mode, perMinuteLimit, monthlyCap, note }
  const made = await makeClient(options, 'operator').post<MadeServer>(pathOf(accountId), body)
  if (options.json) console.log(JSON.stringify(made))
  else console.log(formatTable(['server', 'key'], [[made.serverId, made.key.token]]))
  return 0
}

async function listServers(accountId: string, options: ClientOptions): Promise<number> {
  const servers = await readAll<Server>(makeClient(options, 'operator'), pathOf(accountId), 'servers')
  if (options.json) {
    console.log(JSON.stringify({ servers }))
    return 0
  }
  const rows = servers.map(({ name, mode, createdAt, serverId }) => [name, mode, createdAt, serverId])
  console.log(formatTable(['name', 'mode', 'created', 'id'], rows))
  return 0
}

function pathOf(accountId: string): string {
  return `/v1/operator/accounts/${encodeURIComponent(accountId)}/servers`
}
