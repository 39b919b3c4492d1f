/** program - the commands of `sendwright` and their options: starts the service and speaks to its API.
 *
 *  Exit codes: 0 done, 1 refused or failed, 2 wrongly called or wrongly configured.
 */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addAccountCommands } from './account.ts'
import { addClusterCommands } from './cluster.ts'
import { runDoctor } from './doctor.ts'
import { addDomain, listDomains, verifyDomain } from './domain.ts'
import { listenEvents, tailEvents } from './events.ts'
import { CommandFailure } from './failure.ts'
import { collect, parseInstant, parseUrl, withClientOptions, withOperatorOptions } from './options.ts'
import { listQueue, orderQueue, type QueueOrder } from './queue.ts'
import { type SendOptions, sendMessage } from './send.ts'
import { addServerCommands } from './server.ts'
import { start } from './start.ts'
import { addStoreCommands } from './store.ts'
import { addTokenCommands } from './token.ts'
import { createWebhook, listDeliveries, listWebhooks, replayDeliveries } from './webhook.ts'

/** Runs one command until it ends. In: what stands after `sendwright`. Out: its exit code; what it says is printed. */
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

/** Every command with its options; `ended` hears the exit code of the one that ran. */
function makeProgram(ended: (code: number) => void): Command {
  const program = new Command('sendwright')
    .description('Transactional email service: runs it, and speaks to its API.')
    .version(readVersion())
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
  program
    .command('start')
    .description('run the service with the settings of the environment (README, "Settings")')
    .action(async () => {
      // Whatever is still open belongs to the service, which has ended.
      process.exit(await start())
    })
  addDomainCommands(program.command('domain').description('sending domains of the account'), ended)
  addSendCommand(program, ended)
  addAccountCommands(program, ended)
  addServerCommands(program, ended)
  addTokenCommands(program, ended)
  addClusterCommands(program, ended)
  addStoreCommands(program, ended)
  addQueueCommands(program, ended)
  addWebhookCommands(program.command('webhook').description('webhooks of a server'), ended)
  addEventCommands(program, ended)
  withOperatorOptions(program.command('doctor'))
    .description(
      'examine what delivery needs (DNS, ports, certificate, store) and print how to mend what is broken; exit code 1 then',
    )
    .action(async (options) => ended(await runDoctor(options)))
  return program
}

function addDomainCommands(domain: Command, ended: (code: number) => void): void {
  withClientOptions(domain.command('add <domain>'))
    .description('add a domain and print the DNS records to create')
    .action(async (name, options) => ended(await addDomain(name, options)))
  withClientOptions(domain.command('list'))
    .description('list the domains and whether mail may be sent from them')
    .action(async (options) => ended(await listDomains(options)))
  withClientOptions(domain.command('verify <domain>'))
    .description("look a domain's records up now (its name or its id); exit code 1 while it is not verified")
    .action(async (name, options) => ended(await verifyDomain(name, options)))
}

function addSendCommand(program: Command, ended: (code: number) => void): void {
  const send = withClientOptions(program.command('send'))
    .description('send one message and print its id')
    .requiredOption('--from <address>', 'sender, on a verified sending domain')
    .requiredOption('--to <address>', 'recipient; may be given several times', collect)
    .requiredOption('--subject <text>', 'subject')
    .option('--text <text>', 'plain text; this or --html is needed')
    .option('--html <html>', 'HTML text')
    .option('--stream <id>', "a stream of the server; without it the server's default one")
    .option('--idempotency-key <key>', 'a second call with the same key within 24 hours sends nothing')
    .option('--wait', 'wait up to 60 s until every recipient has ended and print the events')
  send.action(async (options: SendOptions) => {
    if (options.text === undefined && options.html === undefined) send.error('error: give --text or --html')
    ended(await sendMessage(options))
  })
}

function addQueueCommands(program: Command, ended: (code: number) => void): void {
  const queue = withClientOptions(program.command('queue'))
    .description('what waits to be delivered, by destination; orders need the operator key')
    .action(async (options) => ended(await listQueue(options)))
  const orders: readonly [order: QueueOrder, does: string][] = [
    ['retry', 'make what waits for a destination due now'],
    ['hold', 'attempt nothing of a destination until it is released, what comes later neither'],
    ['release', 'end a hold'],
    ['drop', 'end what waits: its recipients bounce'],
  ]
  for (const [order, does] of orders) {
    withClientOptions(queue.command(`${order} <domain>`))
      .description(does)
      .option('--note <text>', 'kept in the audit log')
      // What `queue` takes too, it takes for itself, wherever it stands.
      .action(async (domain, _options, command: Command) =>
        ended(await orderQueue(order, domain, command.optsWithGlobals())),
      )
  }
}

function addWebhookCommands(webhook: Command, ended: (code: number) => void): void {
  withClientOptions(webhook.command('create <url>'))
    .description('register a URL and print its signing secret')
    .option('--event <name>', 'an event that it gets; may be given several times (default: every event)', collect)
    .option('--stream <id>', 'message events of this stream only')
    .option('--reference', 'received messages without their content')
    .action(async (url, options) => ended(await createWebhook(url, options)))
  withClientOptions(webhook.command('list'))
    .description('list the webhooks of the server')
    .action(async (options) => ended(await listWebhooks(options)))
  withClientOptions(webhook.command('deliveries <webhook>'))
    .description('list the newest deliveries of a webhook (its URL or its id)')
    .option('--status <status>', 'pending, delivered or dead')
    .option('--event <name>', 'of this event only')
    .option('--limit <n>', 'at most so many, up to 1000 (default: 100)')
    .action(async (name, options) => ended(await listDeliveries(name, options)))
  withClientOptions(webhook.command('replay <webhook> [delivery]'))
    .description('queue a delivery again, or with --since all that are dead')
    .option('--since <instant>', 'what was created at or after this and is dead', parseInstant)
    .action(async (name, delivery, options) => ended(await replayDeliveries(name, delivery, options)))
}

function addEventCommands(program: Command, ended: (code: number) => void): void {
  withOperatorOptions(program.command('tail'))
    .description("print a server's events as they happen; goes on when the service comes back")
    .option('--server <id>', 'the server (default: the test server of first-run.json)')
    .action(async (options) => ended(await tailEvents(options)))
  withOperatorOptions(program.command('listen <url>'))
    .description("post a server's events to a local URL, signed as a webhook's, and print them")
    .option('--server <id>', 'the server (default: the test server of first-run.json)')
    .option('--secret <secret>', 'signing secret (default: a new one, which is printed)')
    .action(async (url, options) => ended(await listenEvents(parseUrl(url), options)))
}

function readVersion(): string {
  const manifest = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}
