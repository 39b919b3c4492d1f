/**
 * token - `sendwright token create|list|revoke` for the keys of an account or of a server; `sendwright key generate`
 * for a key of the first start.
 *
 * With `--account` or `--server`, the operator's key manages the keys; with `--own-account` or `--of <serverId>`, the
 * account's key does. Otherwise the commands act on the keys of the server whose key is used.
 */
import { type Command, Option } from 'commander'
import type { Token } from '../../schemas/token.ts'
import { makeKey } from '../http/key.ts'
import { type ClientOptions, type KeyOwner, makeClient, readAll } from './console/client.ts'
import { withServerOptions } from './console/options.ts'
import { type Ended, print } from './console/print.ts'
import { formatTable } from './console/table.ts'

interface OwnerOptions extends ClientOptions {
  account?: string
  server?: string
  of?: string
  ownAccount?: boolean
  note?: string
}

/** Where the keys are, and whose key manages them. */
interface Place {
  readonly path: string
  readonly by: KeyOwner
}

/** Keys of the first account, which lives on shard 0. */
const FIRST_KINDS = { test: 'sk_test', live: 'sk', account: 'ak', operator: 'ok' } as const
const FIRST_SHARD = 0

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addTokenCommands(program: Command, ended: Ended): void {
  program
    .command('key')
    .description('keys for the first start')
    .command('generate')
    .description('print a new key for FIRST_RUN_TEST_KEY and the like; no service is asked')
    .addOption(
      new Option('--kind <kind>', 'what the key is for').choices(Object.keys(FIRST_KINDS)).makeOptionMandatory(),
    )
    .option('--json', 'print one line of JSON')
    .action(({ kind, ...options }: { kind: keyof typeof FIRST_KINDS; json?: boolean }) => {
      const { token } = makeKey(FIRST_KINDS[kind], FIRST_SHARD)
      ended(print(options, { token }, () => token))
    })
  const token = program.command('token').description('keys of an account or of a server')
  const create = withOwner(token.command('create <name>'))
    .description('create a key and print it; it is shown only once')
    .action(async (name, options) => ended(await createToken(name, options, placeOf(create, options))))
  const list = withOwner(token.command('list'))
    .description('list the keys of an owner, active and revoked, newest first')
    .action(async (options) => ended(await listTokens(options, placeOf(list, options))))
  const revoke = withOwner(token.command('revoke <tokenId>'))
    .description('revoke a key: requests with it are refused from now on')
    .action(async (tokenId, options) => ended(await revokeToken(tokenId, options, placeOf(revoke, options))))
}

function withOwner(command: Command): Command {
  return withServerOptions(command)
    .option('--account <id>', 'owner: an account, by the operator')
    .option('--server <id>', 'owner: a server, by the operator')
    .option('--own-account', 'owner: the account of an account key')
    .option('--of <serverId>', 'owner: a server of the account of an account key')
    .option('--note <text>', 'reason for the audit log, by the operator')
}

function placeOf(command: Command, { account, server, of, ownAccount }: OwnerOptions): Place {
  const named = [account, server, of, ownAccount].filter((one) => one !== undefined)
  if (named.length > 1) command.error('error: give one of --account, --server, --own-account and --of')
  const id = encodeURIComponent(account ?? server ?? of ?? '')
  if (account !== undefined) return { path: `/v1/operator/accounts/${id}/tokens`, by: 'operator' }
  if (server !== undefined) return { path: `/v1/operator/servers/${id}/tokens`, by: 'operator' }
  if (of !== undefined) return { path: `/v1/servers/${id}/tokens`, by: 'account' }
  return ownAccount === true ? { path: '/v1/account/tokens', by: 'account' } : { path: '/v1/tokens', by: 'server' }
}

async function createToken(name: string, options: OwnerOptions, { path, by }: Place): Promise<number> {
  const body = { name, note: options.note }
  const made = await makeClient(options, by).post<Token & { token: string }>(path, body)
  return print(options, made, ({ token }) => token)
}

async function listTokens(options: OwnerOptions, { path, by }: Place): Promise<number> {
  const tokens = await readAll<Token>(makeClient(options, by), path, 'tokens')
  const rows = tokens.map(({ name, prefix, createdAt, revokedAt, tokenId }) => [
    name,
    prefix,
    createdAt,
    revokedAt ?? 'live',
    tokenId,
  ])
  return print(options, { tokens }, () => formatTable(['name', 'prefix', 'created', 'revoked', 'id'], rows))
}

async function revokeToken(tokenId: string, options: OwnerOptions, { path, by }: Place): Promise<number> {
  const body = by === 'operator' ? { note: options.note } : undefined
  const revoked = await makeClient(options, by).post<Token>(`${path}/${encodeURIComponent(tokenId)}/revoke`, body)
  return print(options, revoked, ({ name, prefix, revokedAt }) => `${name} (${prefix}) is revoked since ${revokedAt}`)
}
