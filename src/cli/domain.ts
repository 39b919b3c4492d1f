/** domain - `sendwright domain add|list|verify`: the sending domains of the account. */
import type { Domain, DomainChecked, DomainList } from '../../schemas/domain.ts'
import { type Client, type ClientOptions, makeClient } from './client.ts'
import { CommandFailure } from './failure.ts'
import { formatTable } from './table.ts'

const PAGE = 100
/** 10,000 domains: more than any account has. */
const PAGES_MAX = 100
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Adds a domain and prints the DNS records to create. */
export async function addDomain(name: string, options: ClientOptions): Promise<number> {
  const domain = await makeClient(options, 'account').post<Domain>('/v1/domains', { domain: name })
  if (options.json) return printJson(domain)
  console.log(`Added ${domain.domain} (${domain.domainId}). Create these DNS records:\n`)
  console.log(
    formatTable(
      ['type', 'host', 'value'],
      recordsOf(domain).map(({ type, host, value }) => [type, host, value]),
    ),
  )
  console.log(`\nThen check them with: sendwright domain verify ${domain.domain}`)
  return 0
}

/** Prints every sending domain of the account, newest first. */
export async function listDomains(options: ClientOptions): Promise<number> {
  const domains = await allDomains(makeClient(options, 'account'))
  if (options.json) return printJson({ domains })
  const rows = domains.map((domain) => [
    domain.domain,
    stateOf(domain),
    domain.lastCheckedAt ?? 'never',
    domain.domainId,
  ])
  console.log(formatTable(['domain', 'verified', 'last check', 'id'], rows))
  return 0
}

/**
 * Has a domain's records looked up now and prints what was found.
 * @param domain its name or its id
 * @returns 0 when the domain is verified, else 1
 */
export async function verifyDomain(domain: string, options: ClientOptions): Promise<number> {
  const client = makeClient(options, 'account')
  const id = UUID.test(domain) ? domain : await idOf(client, domain)
  const found = await client.post<DomainChecked>(`/v1/domains/${id}/verify`)
  if (options.json) printJson(found)
  else {
    const checks = [found.check.returnPath, found.check.dkim, found.check.pendingDkim]
    const rows = recordsOf(found).map(({ type, host, value }, at) => [checks[at] ?? '', type, host, value])
    console.log(formatTable(['found', 'type', 'host', 'value'], rows))
    console.log(`\n${found.domain} is ${found.verified ? 'verified' : 'not verified yet'}`)
  }
  return found.verified ? 0 : 1
}

async function idOf(client: Client, name: string): Promise<string> {
  const found = (await allDomains(client)).find(({ domain }) => domain === name.toLowerCase())
  if (!found) throw new CommandFailure(`No sending domain ${name} in this account: add it first`)
  return found.domainId
}

async function allDomains(client: Client): Promise<Domain[]> {
  const domains: Domain[] = []
  let after = ''
  for (let page = 0; page < PAGES_MAX; page++) {
    const list = await client.get<DomainList>(`/v1/domains?limit=${PAGE}${after}`)
    domains.push(...list.domains)
    if (list.next === null) break
    after = `&after=${list.next}`
  }
  return domains
}

/** Its records; a third one while another DKIM key is to follow. */
function recordsOf({ returnPath, dkim, pendingDkim }: Domain) {
  return pendingDkim === undefined ? [returnPath, dkim] : [returnPath, dkim, pendingDkim]
}

function stateOf({ verified, failingSince }: Domain): string {
  if (failingSince) return `until a day after ${failingSince}`
  return verified ? 'yes' : 'no'
}

function printJson(value: unknown): number {
  console.log(JSON.stringify(value))
  return 0
}
