/** egress - `sendwright egress show|apply|explain`: sources, pools and rules of outgoing mail. */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { Egress, EgressExplained } from '../../../schemas/operator/egress.ts'
import { type ClientOptions, makeClient } from '../console/client.ts'
import { CommandFailure } from '../console/failure.ts'
import { withNote, withOperatorOptions } from '../console/options.ts'
import { type Ended, print } from '../console/print.ts'
import { formatTable } from '../console/table.ts'

const PATH = '/v1/operator/egress'
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

interface ExplainOptions extends ClientOptions {
  recipient?: string
  account?: string
  server?: string
  stream?: string
  streamKind?: string
}

/** Adds the commands. `ended` receives the exit code of the one that ran. */
export function addEgressCommands(program: Command, ended: Ended): void {
  const egress = program.command('egress').description('sources, pools and rules of outgoing mail')
  withOperatorOptions(egress.command('show'))
    .description('print the document that egress apply takes, and on standard error which sources rest')
    .action(async (options: ClientOptions) => ended(await show(options)))
  withNote(egress.command('apply <file>'))
    .description(
      'replace sources, pools and rules by a JSON file, or - for standard input. A relay keeps its stored password if the file has none',
    )
    .action(async (file: string, options: ClientOptions & { note?: string }) => ended(await apply(file, options)))
  withOperatorOptions(egress.command('explain <message|address>'))
    .description(
      'explain which pool, source and limits a message has, or mail to an address or a domain, and why it waits',
    )
    .option('--recipient <index>', 'which recipient of the message, from 0')
    .option('--account <accountId>', 'as mail of this account')
    .option('--server <serverId>', 'as mail of this server')
    .option('--stream <streamId>', 'as mail of this stream')
    .option('--stream-kind <kind>', 'as mail of a transactional or broadcast stream')
    .action(async (subject: string, options: ExplainOptions) => ended(await explain(subject, options)))
}

async function show(options: ClientOptions): Promise<number> {
  const seen = await makeClient(options, 'operator').get<Egress>(PATH)
  if (options.json !== true)
    for (const { source, site, until, why } of seen.resting)
      process.stderr.write(`${source} rests at ${site} until ${until}: ${why ?? ''}\n`)
  const { sources, pools, rules, defaultPool } = seen
  return print(options, seen, () => JSON.stringify({ sources, pools, rules, defaultPool }, null, 2))
}

async function apply(file: string, { note, ...options }: ClientOptions & { note?: string }): Promise<number> {
  const document = parseDocument(file === '-' ? await text(process.stdin) : await readText(file))
  const body = { ...document, ...(note !== undefined && { note }) }
  const applied = await makeClient(options, 'operator').put<Egress>(PATH, body)
  return print(
    options,
    applied,
    ({ version, sources, pools, rules }) =>
      `Version ${version}: ${sources.length} sources, ${pools.length} pools, ${rules.length} rules. Every process uses it within seconds`,
  )
}

async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: Error) => {
    throw new CommandFailure(`Cannot read ${file}: ${error.message}`)
  })
}

function parseDocument(json: string): object {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // The sentence below is for both.
  }
  throw new CommandFailure('The document must be a JSON object with sources, pools and rules')
}

async function explain(subject: string, options: ExplainOptions): Promise<number> {
  const { recipient, account, server, stream, streamKind } = options
  const query = new URLSearchParams(
    Object.entries({
      ...(UUID.test(subject)
        ? { messageId: subject, recipientIndex: recipient }
        : { domain: subject.slice(subject.lastIndexOf('@') + 1) }),
      accountId: account,
      serverId: server,
      streamId: stream,
      streamKind,
    }).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
  const seen = await makeClient(options, 'operator').get<EgressExplained>(`${PATH}/explain?${query}`)
  return print(options, seen, formatExplained)
}

function formatExplained({ domain, site, rule, pool, waits, until, sources }: EgressExplained): string {
  const by = rule === null ? 'no rule matches' : `rule ${rule}`
  const lines = [
    `${domain}: site ${site ?? 'not found'}, pool ${pool} (${by})`,
    waits === null ? 'A source may send now' : `Waits${until === null ? '' : ` until ${until}`}: ${waits}`,
  ]
  const rows = sources.map(({ source, weight, state, until, limits, today }) => [
    source,
    String(weight),
    until === null ? state : `${state} until ${until}`,
    limits
      .map(
        ({ limit, value, used, isCeiling }) =>
          `${isCeiling ? '*' : ''}${limit} ${used === null ? '' : `${used}/`}${value}`,
      )
      .join(', '),
    `${today.delivered}/${today.deferred}/${today.bounced}`,
  ])
  const head = ['source', 'weight', 'state', 'limits (* the ceiling)', 'today: delivered/deferred/bounced']
  return [...lines, formatTable(head, rows)].join('\n')
}
