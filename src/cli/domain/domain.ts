/** domain - `sendwright domain add|list|show|verify|test-use|rotate-dkim|remove` for the account's sending domains. */
import type { Command } from 'commander'
import type { Domain, DomainChecked } from '../../../schemas/domain.ts'
import { formatZone } from '../../mail/zone-file.ts'
import { type Client, type ClientOptions, makeClient, readAll } from '../console/client.ts'
import { CommandFailure } from '../console/failure.ts'
import { withClientOptions } from '../console/options.ts'
import { type Ended, print, printJson } from '../console/print.ts'
import { formatTable } from '../console/table.ts'
import { addReportCommands } from './report.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Adds the commands. `ended` is called with the exit code of the command that ran. */
export function addDomainCommands(program: Command, ended: Ended): void {
  const domain = program.command('domain').description('sending domains of the account')
  withClientOptions(domain.command('add <domain>'))
    .description('add a domain and print the DNS records to create')
    .option('--zone', 'print them as a zone file')
    .option('--test-only', 'let test servers send from it at once, without DNS records')
    .action(async (name, options) => ended(await addDomain(name, options)))
  withClientOptions(domain.command('list'))
    .description('list the domains and whether each can be used for sending')
    .action(async (options) => ended(await listDomains(options)))
  withClientOptions(domain.command('show <domain>'))
    .description('print the DNS records of a domain (its name or its id)')
    .option('--zone', 'print them as a zone file')
    .action(async (name, options: ZoneOptions) => {
      const client = makeClient(options, 'account')
      const found = await client.get<Domain>(`/v1/domains/${await idOf(client, name)}`)
      ended(print(options, found, options.zone ? formatDomainZone : formatAllRecords))
    })
  withClientOptions(domain.command('verify <domain>'))
    .description("look a domain's records up now (its name or its id); exit code 1 while it is not verified")
    .action(async (name, options) => ended(await verifyDomain(name, options)))
  withClientOptions(domain.command('test-use <domain>'))
    .description('let test servers send from a domain (its name or its id) before it is verified')
    .action(async (name, options) => {
      const client = makeClient(options, 'account')
      const usable = await client.post<Domain>(`/v1/domains/${await idOf(client, name)}/test-use`)
      ended(print(options, usable, formatTestUse))
    })
  withClientOptions(domain.command('rotate-dkim <domain>'))
    .description('rotate the DKIM key and print its record; the new key signs once the record is found')
    .action(async (name, options) => {
      const client = makeClient(options, 'account')
      const changed = await client.post<Domain>(`/v1/domains/${await idOf(client, name)}/rotate-dkim`)
      ended(print(options, changed, formatRecords))
    })
  addReportCommands(domain, ended, idOf)
  withClientOptions(domain.command('remove <domain>'))
    .description('remove a domain: new mail from it is refused at once')
    .action(async (name, options) => {
      const client = makeClient(options, 'account')
      const id = await idOf(client, name)
      await client.delete(`/v1/domains/${id}`)
      ended(print(options, { domainId: id, removed: true }, () => `Removed ${name}`))
    })
}

type ZoneOptions = ClientOptions & { zone?: boolean }
type AddOptions = ZoneOptions & { testOnly?: boolean }

async function addDomain(name: string, options: AddOptions): Promise<number> {
  const { testOnly } = options
  const domain = await makeClient(options, 'account').post<Domain>('/v1/domains', { domain: name, testOnly })
  if (testOnly && !options.zone) return print(options, domain, formatTestUse)
  // On standard error, so that the output of `--json` stays one line of JSON.
  if (recordsOf(domain).some(({ value }) => /\.localhost\.?$/.test(value)))
    console.error(
      'These records name SERVICE_DOMAIN, which is under .localhost and unknown to other servers. Set it to a domain of yours first',
    )
  if (options.zone) return print(options, domain, formatDomainZone)
  return print(options, domain, () =>
    [
      `Added ${domain.domain} (${domain.domainId}). Create these DNS records:\n`,
      formatRecords(domain),
      ...formatRecommended(domain),
      `\nThen check them with: sendwright domain verify ${domain.domain}`,
    ].join('\n'),
  )
}

function formatTestUse({ domain, verified }: Domain): string {
  return verified
    ? `${domain} is verified: every server can send from it`
    : `Test servers can send from ${domain} now. Live servers need its DNS records: sendwright domain show ${domain}`
}

/** Its records as a zone file, without the end of the last line. */
function formatDomainZone(domain: Domain): string {
  return formatZone(recordsOf(domain).map(({ host, type, value }) => ({ host, type, value }))).trimEnd()
}

function formatRecords(domain: Domain): string {
  return formatTable(
    ['type', 'host', 'value'],
    recordsOf(domain).map(({ type, host, value }) => [type, host, value]),
  )
}

function formatAllRecords(domain: Domain): string {
  return [formatRecords(domain), ...formatRecommended(domain)].join('\n')
}

/** The records that lead reports here. A domain has one DMARC record, so an existing one gets the address. */
function formatRecommended({ recommended }: Domain): string[] {
  if (recommended.length === 0) return []
  const rows = recommended.map(({ type, host, value }) => [type, host, value])
  return [
    '\nRecommended, so that receivers send their reports here. Add the `rua` to a record that you already have:\n',
    formatTable(['type', 'host', 'value'], rows),
  ]
}

async function listDomains(options: ClientOptions): Promise<number> {
  const domains = await allDomains(makeClient(options, 'account'))
  const rows = domains.map((domain) => [
    domain.domain,
    stateOf(domain),
    domain.lastCheckedAt ?? 'never',
    domain.domainId,
  ])
  return print(options, { domains }, () => formatTable(['domain', 'verified', 'last check', 'id'], rows))
}

/** Checks a domain's records now. Returns 0 if the domain is verified, otherwise 1. */
async function verifyDomain(domain: string, options: ClientOptions): Promise<number> {
  const client = makeClient(options, 'account')
  const id = await idOf(client, domain)
  const found = await client.post<DomainChecked>(`/v1/domains/${id}/verify`)
  if (options.json) printJson(found)
  else {
    const checks = [found.check.returnPath, found.check.dkim, found.check.pendingDkim]
    const rows = recordsOf(found).map(({ type, host, value }, at) => [checks[at] ?? '', type, host, value])
    console.log(formatTable(['found', 'type', 'host', 'value'], rows))
    const instead = [found.check.found.returnPath, found.check.found.dkim, found.check.found.pendingDkim]
    for (const [at, { type, host }] of recordsOf(found).entries())
      for (const value of instead[at] ?? []) console.log(`\nInstead, ${type} ${host} is ${value}`)
    console.log(`\n${found.domain} is ${found.verified ? 'verified' : 'not verified yet'}`)
  }
  return found.verified ? 0 : 1
}

/** The id of a domain given by its name or its id. */
async function idOf(client: Client, name: string): Promise<string> {
  if (UUID.test(name)) return name
  const found = (await allDomains(client)).find(({ domain }) => domain === name.toLowerCase())
  if (!found) throw new CommandFailure(`No sending domain ${name} in this account: add it first`)
  return found.domainId
}

function allDomains(client: Client): Promise<Domain[]> {
  return readAll<Domain>(client, '/v1/domains', 'domains')
}

/** Its records, with a third one while a new DKIM key is pending. */
function recordsOf({ returnPath, dkim, pendingDkim }: Domain) {
  return pendingDkim === undefined ? [returnPath, dkim] : [returnPath, dkim, pendingDkim]
}

function stateOf({ verified, testOnly, failingSince, unverifiedSince, undecidedSince }: Domain): string {
  if (testOnly) return 'on test servers only'
  if (unverifiedSince) return `no longer, since ${unverifiedSince}`
  if (failingSince) return `until a day after ${failingSince}`
  if (undecidedSince) return `${verified ? 'yes' : 'no'}, undecided since ${undecidedSince}`
  return verified ? 'yes' : 'no'
}
