/**
 * doctor - `sendwright doctor` checks the external requirements of delivery with a fix for each problem, and explains
 * the authentication of a message in a file.
 *
 * The latter needs no running service: it queries the DNS itself, through DNS_SERVERS if set.
 */
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { InvalidArgumentError } from 'commander'
import { MAIL_BYTES_MAX } from '../../schemas/limits.ts'
import type { Finding, Health } from '../../schemas/operator/health.ts'
import { DnsBudget } from '../dns/budget.ts'
import { createResolver } from '../dns/resolve.ts'
import type { Explained } from '../mail/authenticate/explain.ts'
import type { Judgement } from '../mail/authenticate/judge.ts'
import { formatZone, type ZoneFileRecord } from '../mail/zone-file.ts'
import { readConfig } from '../process/config.ts'
import type { StoreFound } from '../store/repair/check-store.ts'
import { type ClientOptions, makeClient } from './console/client.ts'
import { CommandFailure } from './console/failure.ts'
import { inStore } from './console/in-store.ts'
import { print } from './console/print.ts'
import { formatObjects } from './operator/objects.ts'
import { formatValues } from './store.ts'

const MARKS: Readonly<Record<Finding['status'], string>> = { ok: 'ok', warning: 'WARN', failed: 'FAIL' }

/**
 * Makes the running service examine itself, and prints the findings.
 * @returns 0 if nothing has failed, or only the records are requested; otherwise 1
 */
export async function runDoctor(options: ClientOptions & { zone?: boolean; deep?: boolean }): Promise<number> {
  if (options.deep === true) return runDeep(options)
  const health = await makeClient(options, 'operator').get<Health>('/v1/operator/health')
  if (options.json) console.log(JSON.stringify(health))
  else console.log(options.zone ? formatZone(health.records.map(zoneRecordOf)).trimEnd() : formatHealth(health))
  return health.ok || (options.zone === true && !options.json) ? 0 : 1
}

/**
 * Compares all stored values and files with their sums. Uses the store itself, with the settings of the service.
 * @returns 0 if nothing is damaged, otherwise 1
 */
async function runDeep({ json }: ClientOptions): Promise<number> {
  const { checkStore } = await import('../store/repair/check-store.ts')
  const { isLoss } = await import('../store/repair/check-objects.ts')
  const found = await inStore(checkStore)
  const { values, files, tornShards, objects } = found
  const isDamaged =
    values.damaged > 0 ||
    files.some(({ damagedBlocks }) => damagedBlocks > 0) ||
    tornShards.length > 0 ||
    (objects?.faults.some(isLoss) ?? false)
  const end = isDamaged ? 'Check the memory and disk of the machine, and restore a backup' : 'Nothing is damaged'
  console.log(json ? JSON.stringify({ ok: !isDamaged, ...found }) : [...formatStore(found), end].join('\n'))
  return isDamaged ? 1 : 0
}

function formatStore({ values, files, tornShards, objects }: StoreFound): string[] {
  return [
    ...formatValues(values),
    ...files.map(({ path, bytes, damagedBlocks }) =>
      damagedBlocks === 0 ? `${path}: ${bytes} bytes compared` : `${path}: ${damagedBlocks} blocks are damaged`,
    ),
    ...tornShards.map((shard) => `Shard ${shard} is torn: sendwright repair ${shard}`),
    ...(objects === null ? [] : formatObjects(objects)),
  ]
}

function zoneRecordOf({ remark, ...record }: Health['records'][number]): ZoneFileRecord {
  return remark === null ? record : { ...record, remark }
}

/** One line for each finding, with its fix below. */
function formatHealth({ ok, findings }: Health): string {
  const lines = findings.flatMap(({ name, status, message, fix }) => {
    const line = `${MARKS[status].padEnd(5)}${name.padEnd(16)}${message}`
    return fix === null ? [line] : [line, `${' '.repeat(21)}-> ${fix}`]
  })
  const failures = findings.filter(({ status }) => status === 'failed').length
  return [...lines, '', ok ? 'Nothing is broken' : `Broken: ${failures} of ${findings.length}`].join('\n')
}

export interface MailFileOptions {
  mailFile: string
  ip?: string
  helo?: string
  mailFrom?: string
  json?: boolean
}

interface Session {
  readonly mailFrom: string
  readonly ip: string | null
  readonly helo: string
}

/** Checks the mail. Returns 0 if DMARC passes or does not apply, otherwise 1. */
export async function runMailFile(options: MailFileOptions): Promise<number> {
  const raw = await readMail(options.mailFile)
  // The code that judges mail loads longer than all other commands together.
  const { readSessionFromHeaders } = await import('../mail/authenticate/session-from-headers.ts')
  const { explain } = await import('../mail/authenticate/explain.ts')
  const told = readSessionFromHeaders(raw)
  const session = {
    mailFrom: options.mailFrom ?? told.address ?? '',
    ip: options.ip ?? told.ip,
    helo: options.helo ?? told.helo ?? '',
  }
  const judged = await judge(raw, session)
  const explained = explain(judged, session.ip)
  const answer = { session, authentication: judged.authentication, checks: explained }
  print(options, answer, () => formatChecks(session, explained))
  return ['pass', 'none'].includes(judged.authentication.dmarc) ? 0 : 1
}

/** An IP address. */
export function parseIp(text: string): string {
  if (isIP(text) !== 0) return text
  throw new InvalidArgumentError('Expected an IP address.')
}

async function readMail(path: string): Promise<Buffer> {
  const raw = await (path === '-' ? buffer(process.stdin) : readFile(path)).catch((error: Error) => {
    throw new CommandFailure(`Cannot read the message: ${error.message}`)
  })
  if (raw.length <= MAIL_BYTES_MAX) return raw
  throw new CommandFailure(`The message has ${raw.length} bytes: the maximum is ${MAIL_BYTES_MAX}`)
}

async function judge(raw: Buffer, { mailFrom, ip, helo }: Session): Promise<Judgement> {
  const { judgeMail } = await import('../mail/authenticate/judge.ts')
  const settings = readConfig()
  const { dnsServers, smtpHostname } = settings.ok ? settings.config : { dnsServers: [], smtpHostname: 'localhost' }
  const resolver = createResolver({ servers: dnsServers, nowMs: () => performance.now() })
  const { lookUp } = new DnsBudget(resolver, { nowMs: () => performance.now() })
  const sender = ip === null ? null : { address: mailFrom, ip, helo, receiver: smtpHostname }
  try {
    return await judgeMail(raw, { sender, lookUp, nowMs: Date.now() })
  } finally {
    resolver.close()
  }
}

const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/g
const CHECK_WIDTH = 9
const VERDICT_WIDTH = 11
const INDENT = ' '.repeat(CHECK_WIDTH + VERDICT_WIDTH)

function formatChecks({ mailFrom, ip, helo }: Session, explained: readonly Explained[]): string {
  const who =
    ip === null
      ? 'The client address is unknown, because no Received field names a public one. Add --ip and --helo to check SPF too.'
      : `MAIL FROM:<${mailFrom}> from ${ip}, HELO ${helo || '-'}. Is that not so: --mail-from, --ip, --helo.`
  const lines = explained.flatMap(({ check, verdict, message, record, fix }) => [
    `${check.padEnd(CHECK_WIDTH)}${verdict.padEnd(VERDICT_WIDTH)}${message}`,
    ...(record === null ? [] : [`${INDENT}${record.name}: ${record.text}`]),
    ...(fix === null ? [] : [`${INDENT}-> ${fix}`]),
  ])
  // Texts from the network go to a terminal.
  return [who, '', ...lines].map((line) => line.replace(CONTROLS, '\ufffd')).join('\n')
}
