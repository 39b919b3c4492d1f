/**
 * keys - `sendwright operator create|list|revoke` for the keys of the installation's operators, and `operator find` for
 * the messages of a recipient over all accounts.
 */
import type { Command } from 'commander'
import type { OperatorKeyResource } from '../../../schemas/operator/operator-key.ts'
import type { RecipientMessage, RecipientMessages } from '../../../schemas/operator/recipient.ts'
import { OPERATOR_ROLES } from '../../../schemas/operator/role.ts'
import { type ClientOptions, makeClient, readAll } from '../console/client.ts'
import { withOperatorOptions } from '../console/options.ts'
import { type Ended, print } from '../console/print.ts'
import { formatTable } from '../console/table.ts'

const PATH = '/v1/operator/tokens'
/** Messages of a page, and pages that are printed. */
const PAGE = 100
const PAGES_MAX = 100

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
  withOperatorOptions(operator.command('find <address>'))
    .description('find the messages of a recipient over all accounts; recorded in the audit log')
    .option('--note <text>', 'reason for the audit log')
    .action(async (address, options) => ended(await findRecipient(address, options)))
}

/** Prints the messages of all pages. A page may be empty although there is more. */
async function findRecipient(recipient: string, options: ClientOptions & { note?: string }): Promise<number> {
  const { note } = options
  const client = makeClient(options, 'operator')
  const messages: RecipientMessage[] = []
  let accounts = 0
  let next: string | null = null
  for (let page = 0; page < PAGES_MAX && (page === 0 || next !== null); page += 1) {
    const body: object = {
      recipient,
      limit: PAGE,
      ...(next !== null && { after: next }),
      ...(note !== undefined && { note }),
    }
    const found: RecipientMessages = await client.post<RecipientMessages>('/v1/operator/recipients/search', body)
    messages.push(...found.messages)
    accounts += found.accounts
    next = found.next
  }
  const rows = messages.map(({ submittedAt, status, messageId, recipientIndex, accountId, serverId }) => [
    submittedAt,
    status,
    `${messageId} ${recipientIndex}`,
    accountId,
    serverId,
  ])
  const head = ['submitted', 'status', 'message, recipient', 'account', 'server']
  const more = next === null ? '' : `\nThere are more: this is the end of ${PAGES_MAX} pages`
  return print(options, { messages, accounts, next }, () => `${formatTable(head, rows)}${more}`)
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
