/** program - the commands of `sendwright` and their options: starts the service and speaks to its API.
 *
 *  Exit codes: 0 done, 1 refused or failed, 2 wrongly called or wrongly configured.
 */
import { Command, CommanderError } from 'commander'
import { readVersion } from '../process/version.ts'
import { addAccountCommands } from './account.ts'
import { addBroadcastCommands } from './broadcast.ts'
import { addClusterCommands } from './cluster/cluster.ts'
import { CommandFailure } from './console/failure.ts'
import { withOperatorOptions } from './console/options.ts'
import { addDashboardLinkCommand } from './dashboard-link.ts'
import { parseIp, runDoctor, runMailFile } from './doctor.ts'
import { addDomainCommands } from './domain/domain.ts'
import { addEraseCommand } from './erase.ts'
import { addEventSearchCommands } from './event-search.ts'
import { addEventCommands } from './events.ts'
import { addImportCommands } from './import.ts'
import { addInboundCommands } from './inbound.ts'
import { addMcpCommand } from './mcp/mcp.ts'
import { addMessageCommands } from './message.ts'
import { addEgressCommands } from './operator/egress.ts'
import { addOperatorCommands } from './operator/keys.ts'
import { addOperatorLinkCommand } from './operator/link.ts'
import { addSecretCommands } from './operator/secret.ts'
import { addQueueCommands } from './queue.ts'
import { addRequestCommands } from './requests.ts'
import { addRetentionCommands } from './retention.ts'
import { addSendCommands } from './send.ts'
import { addServerCommands } from './server.ts'
import { type StartOptions, start } from './start.ts'
import { addStatsCommands } from './stats.ts'
import { addStoreCommands } from './store.ts'
import { addStreamCommands } from './stream.ts'
import { addSuppressionCommands } from './suppression.ts'
import { addTokenCommands } from './token.ts'
import { addWebhookCommands } from './webhook.ts'

/**
 * Runs one command until it ends. Takes the arguments after `sendwright`. Returns its exit code; its output is printed.
 */
export async function runCommand(args: readonly string[]): Promise<number> {
  let code = 0
  const program = makeProgram((result) => {
    code = result
  })
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (!(error instanceof CommandFailure)) throw error
    console.error(error.message)
    if (args.includes('--json')) console.log(JSON.stringify(error.body))
    return 1
  }
}

/** Every command with its options; `ended` is called with the exit code of the command that ran. */
export function makeProgram(ended: (code: number) => void): Command {
  const program = new Command('sendwright')
    .description('Runs the transactional email service and calls its API.')
    .version(readVersion())
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
  program
    .command('start')
    .description('run the service with the settings of the environment (docs/reference/settings.md)')
    .option('--accept-service-domain', 'confirm a changed SERVICE_DOMAIN')
    .option('--test-only', 'receive no mail and deliver none to other servers: for tests of applications')
    .option('--install-redis', 'install a missing redis-server with apt-get, without a question (root alone)')
    .action(async (options: StartOptions) => {
      // Whatever is still open belongs to the service, which has ended.
      process.exit(await start(options))
    })
  addSendCommands(program, ended)
  addMessageCommands(program, ended)
  addMcpCommand(program, ended)
  addStatsCommands(program, ended)
  addRequestCommands(program, ended)
  addInboundCommands(program, ended)
  addEventCommands(program, ended)
  addEventSearchCommands(program, ended)
  addWebhookCommands(program, ended)
  addBroadcastCommands(program, ended)
  addImportCommands(program, ended)
  addSuppressionCommands(program, ended)
  addStreamCommands(program, ended)
  addRetentionCommands(program, ended)
  addDomainCommands(program, ended)
  addEraseCommand(program, ended)
  addAccountCommands(program, ended)
  addDashboardLinkCommand(program, ended)
  addOperatorLinkCommand(program, ended)
  addServerCommands(program, ended)
  addTokenCommands(program, ended)
  addOperatorCommands(program, ended)
  addEgressCommands(program, ended)
  addSecretCommands(program, ended)
  addQueueCommands(program, ended)
  addClusterCommands(program, ended)
  addStoreCommands(program, ended)
  withOperatorOptions(program.command('doctor'))
    .description(
      'check the requirements of delivery (DNS, ports, certificate, store) and print a fix for each problem; exit code 1 if there are problems. With --mail-file: check and explain the authentication of a message in a file',
    )
    .option(
      '--deep',
      'compare every stored value and file of the store with its checksum, on a machine that reaches the store',
    )
    .option('--zone', 'print every DNS record that the installation needs, as a zone file')
    .option(
      '--mail-file <file>',
      'check this message (SPF, DKIM, DMARC, ARC) and explain the results; - is standard input',
    )
    .option('--ip <address>', 'with --mail-file: address of the client (default: from its Received fields)', parseIp)
    .option('--helo <name>', 'with --mail-file: the name in HELO (default: from its Received fields)')
    .option('--mail-from <address>', 'with --mail-file: MAIL FROM (default: its Return-Path)')
    .action(async (options) =>
      ended(await (options.mailFile === undefined ? runDoctor(options) : runMailFile(options))),
    )
  return program
}
