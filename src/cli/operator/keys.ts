/** keys - `sendwright operator create|list|revoke` for the keys of the installation's operators. */
import type { Command } from 'commander'
import type { OperatorKeyResource } from '../../../schemas/operator/operator-key.ts'
import { OPERATOR_ROLES } from '../../../schemas/operator/role.ts'
import { type ClientOptions, makeClient, readAll } from '../console/client.ts'
import { withOperatorOptions } from '../console/options.ts'
import { type Ended, print } from '../console/print.ts'
import { formatTable } from '../console/table.ts'

const PATH = '/v1/operator/tokens'

/** Adds the commands. `ended` receives the exit code of the one that ran. */
export function addOperatorCommands(program: Command, ended: Ended): void {
  const operator = program.command('operator').description('keys of the operators of the installation')
  withOperatorOptions(operator.command('create <name>'))
    .description('create a key for a person or a program, and print it; it is shown only once')
    .requiredOption('--role <role>', `${OPERATOR_ROLES.join(', ')}: reads; retries, lifts and reveals too; everything`)
    .option('--note <text>', 'reason for the audit log')
    .action(async (name, { role, note, ...options }) => {
      const made = await makeClient(options, 'operator').post<{ token: string }>(PATH, { name, role, note })
      ended(print(options, made, ({ token }) => token))
    })
  withOperatorOptions(operator.command('list'))
    .description('list the keys, active and revoked, newest first')
    .action(async (options) => ended(await listKeys(options)))
  withOperatorOptions(operator.command('revoke <tokenId>'))
    .description('revoke a key and end its sessions; the last active admin key cannot be revoked')
    .option('--note <text>', 'reason for the audit log')
    .action(async (tokenId, { note, ...options }) => {
      const path = `${PATH}/${encodeURIComponent(tokenId)}/revoke`
      const revoked = await makeClient(options, 'operator').post<OperatorKeyResource>(path, { note })
      ended(print(options, revoked, ({ name, prefix }) => `${name} (${prefix}) is revoked`))
    })
}

async function listKeys(options: ClientOptions): Promise<number> {
  const tokens = await readAll<OperatorKeyResource>(makeClient(options, 'operator'), PATH, 'tokens')
  const rows = tokens.map(({ name, role, prefix, createdAt, lastUsedAt, revokedAt, tokenId }) => [
    name,
    role,
    prefix,
    createdAt,
    lastUsedAt ?? '',
    revokedAt ?? 'active',
    tokenId,
  ])
  const head = ['name', 'role', 'prefix', 'created', 'last used', 'revoked', 'id']
  return print(options, { tokens }, () => formatTable(head, rows))
}
