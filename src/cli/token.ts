/** token - `sendwright token create|list|revoke`: the keys of an account or of a server, by the operator. */
import type { Command } from 'commander'
import type { Token } from '../../schemas/token.ts'
import { type ClientOptions, makeClient } from './client.ts'
import { withNote, withOperatorOptions } from './options.ts'
import { readAll } from './pages.ts'
import { formatTable } from './table.ts'

interface OwnerOptions extends ClientOptions {
  account?: string
  server?: string
  note?: string
}

/** Adds the commands. `ended` hears the exit code of the one that ran. */
export function addTokenCommands(program: Command, ended: (code: number) => void): void {
  const token = program.command('token').description('keys of an account or of a server, on the operator listener')
  const create = withOwner(withNote(token.command('create <name>')))
    .description('make a key and print it: it is shown only now')
    .action(async (name, options) => ended(await createToken(name, options, pathOf(create, options))))
  const list = withOwner(withOperatorOptions(token.command('list')))
    .description('list the keys of an owner, live and revoked, newest first')
    .action(async (options) => ended(await listTokens(options, pathOf(list, options))))
  const revoke = withOwner(withNote(token.command('revoke <tokenId>')))
    .description('revoke a key: no request with it passes from now on')
    .action(async (tokenId, options) => ended(await revokeToken(tokenId, options, pathOf(revoke, options))))
}

function withOwner(command: Command): Command {
  return command.option('--account <id>', 'owner: an account').option('--server <id>', 'owner: a server')
}

function pathOf(command: Command, { account, server }: OwnerOptions): string {
  if ((account === undefined) === (server === undefined)) command.error('error: give --account or --server')
  const owner =
    account === undefined ? `servers/${encodeURIComponent(server ?? '')}` : `accounts/${encodeURIComponent(account)}`
  return `/v1/operator/${owner}/tokens`
}

async function createToken(name: string, options: OwnerOptions, path: string): Promise<number> {
  const body = { name, note: options.note }
  const made = await makeClient(options, 'operator').post<Token & { token: string }>(path, body)
  console.log(options.json ? JSON.stringify(made) : made.token)
  return 0
}

async function listTokens(options: OwnerOptions, path: string): Promise<number> {
  const tokens = await readAll<Token>(makeClient(options, 'operator'), path, 'tokens')
  if (options.json) {
    console.log(JSON.stringify({ tokens }))
    return 0
  }
  const rows = tokens.map(({ name, prefix, createdAt, revokedAt, tokenId }) => [
    name,
    prefix,
    createdAt,
    revokedAt ?? 'live',
    tokenId,
  ])
  console.log(formatTable(['name', 'prefix', 'created', 'revoked', 'id'], rows))
  return 0
}

async function revokeToken(tokenId: string, options: OwnerOptions, path: string): Promise<number> {
  const at = `${path}/${encodeURIComponent(tokenId)}/revoke`
  const token = await makeClient(options, 'operator').post<Token>(at, { note: options.note })
  console.log(
    options.json ? JSON.stringify(token) : `${token.name} (${token.prefix}) is revoked since ${token.revokedAt}`,
  )
  return 0
}
