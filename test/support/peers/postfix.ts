/**
 * postfix - a Postfix for one test, if it is installed: configuration, queue and mailboxes in one directory
 *
 * It listens on one address and port of the loopback, offers STARTTLS with its own certificate, accepts every
 * recipient of its domain, and stores accepted mail in one maildir. Files of an installed Postfix are not changed.
 */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { makeCertificate } from '../../../src/process/certificate.ts'
import { until } from '../machine/until.ts'

/** Distributions install it outside of the PATH of a plain user. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
const POSTCONF = FOLDERS.map((folder) => join(folder, 'postconf')).find((path) => existsSync(path)) ?? null
const START_MS_MAX = 30_000
/** As the virtual delivery agent takes no lower one. */
const UID = 65_534

/** False, or why a test that needs it is skipped. */
export const POSTFIX_SKIP: false | string = skipOf()

export interface Postfix {
  /** The complete messages in the maildir, as bytes in latin1. */
  messages(): string[]
  /** Its output. */
  log(): string
  close(): Promise<void>
}

interface PostfixOptions {
  readonly name: string
  readonly domain: string
  /** Takes mail and keeps it in its queue. */
  readonly isHeld?: boolean
  /** Further lines of main.cf, which count before those above. */
  readonly settings?: readonly string[]
  /** Where its directory is made; open to its users. */
  readonly parent?: string
}

/** Starts it as the mail server `name` of `domain`. */
export async function startPostfix(
  { host, port }: { host: string; port: number },
  { name, domain, isHeld = false, parent = '/tmp', settings = [] }: PostfixOptions,
): Promise<Postfix> {
  // Its programs run as their own users, and all of these can reach a path under the temporary directory.
  const folder = mkdtempSync(join(parent, 'sendwright-postfix-'))
  chmodSync(folder, 0o755)
  const mailboxes = join(folder, 'mail')
  const spool = join(folder, 'spool')
  for (const path of [mailboxes, spool, join(folder, 'data')]) mkdirSync(path)
  const owner = parameter('mail_owner')
  execFileSync('chown', [String(UID), mailboxes])
  execFileSync('chown', [owner, join(folder, 'data')])
  const { cert, key } = makeCertificate(name, Date.now())
  writeFileSync(join(folder, 'tls.pem'), key + cert, { mode: 0o600 })
  writeFileSync(join(folder, 'main.cf'), mainOf({ folder, name, domain, isHeld, settings }))
  writeFileSync(join(folder, 'master.cf'), masterOf(host, port))
  makeSpool(spool, owner)
  const child = spawn(join(parameter('daemon_directory'), 'master'), ['-c', folder, '-d'], { stdio: 'ignore', env: {} })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const log = (): string => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '')
  await until(() => greets(host, port), START_MS_MAX).catch((error) => {
    child.kill()
    throw new Error(`Postfix does not answer: ${log()}`, { cause: error })
  })
  return {
    messages: () => readMaildir(join(mailboxes, 'all', 'new')),
    log,
    async close() {
      await end(child, ended)
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function skipOf(): false | string {
  if (POSTCONF === null) return 'Postfix is not installed'
  return process.getuid?.() === 0 ? false : 'Postfix starts only as root'
}

/** A parameter of the installed one: the folder of its programs, and their user. */
function parameter(name: string): string {
  return execFileSync(POSTCONF as string, ['-dh', name], { encoding: 'utf8' }).trim()
}

function mainOf({ folder, name, domain, isHeld, settings = [] }: PostfixOptions & { readonly folder: string }): string {
  return [
    'compatibility_level = 3.6',
    `queue_directory = ${folder}/spool`,
    `data_directory = ${folder}/data`,
    `maillog_file = ${folder}/log`,
    `maillog_file_prefixes = ${folder}`,
    `myhostname = ${name}`,
    'mydestination =',
    'mynetworks = 192.0.2.1/32',
    // Other addresses of the loopback are no interface to it; master.cf names the one that it listens on.
    'inet_interfaces = 127.0.0.1',
    'inet_protocols = ipv4',
    'smtpd_peername_lookup = no',
    'smtpd_relay_restrictions = reject_unauth_destination',
    'smtpd_tls_security_level = may',
    'smtpd_tls_received_header = yes',
    `smtpd_tls_chain_files = ${folder}/tls.pem`,
    'smtpd_client_connection_rate_limit = 0',
    ...(isHeld ? ['smtpd_client_restrictions = check_client_access static:HOLD'] : []),
    `virtual_mailbox_domains = ${domain}`,
    `virtual_mailbox_base = ${folder}/mail`,
    'virtual_mailbox_maps = static:all/',
    'virtual_minimum_uid = 1',
    `virtual_uid_maps = static:${UID}`,
    `virtual_gid_maps = static:${UID}`,
    'alias_maps =',
    'alias_database =',
    ...settings,
    '',
  ].join('\n')
}

/** The services that a receiver without a way out needs; no chroot. */
function masterOf(host: string, port: number): string {
  const service = (name: string, { isPublic = false, wakeup = '-', max = '-', program = name } = {}) =>
    `${name} unix ${isPublic ? 'n' : '-'} - n ${wakeup} ${max} ${program}`
  return [
    `${host}:${port} inet n - n - - smtpd`,
    service('cleanup', { isPublic: true, max: '0' }),
    service('qmgr', { isPublic: true, wakeup: '300', max: '1' }),
    service('tlsmgr', { wakeup: '1000?', max: '1' }),
    service('rewrite', { program: 'trivial-rewrite' }),
    ...['bounce', 'defer', 'trace'].map((name) => service(name, { max: '0', program: 'bounce' })),
    service('retry', { program: 'error' }),
    ...['proxymap', 'error', 'smtp', 'scache'].map((name) => service(name)),
    // It writes as the mailbox's owner.
    'virtual unix - n n - - virtual',
    service('anvil', { max: '1' }),
    'postlog unix-dgram n - n - 1 postlogd',
    '',
  ].join('\n')
}

/** The directories of a queue, as `postfix check` would make them. */
function makeSpool(spool: string, owner: string): void {
  const names = [
    'active',
    'bounce',
    'corrupt',
    'defer',
    'deferred',
    'flush',
    'hold',
    'incoming',
    'private',
    'saved',
    'trace',
  ]
  for (const name of names) mkdirSync(join(spool, name), { mode: 0o700 })
  for (const name of ['public', 'maildrop', 'pid']) mkdirSync(join(spool, name), { mode: 0o755 })
  execFileSync('chown', [owner, ...[...names, 'public', 'maildrop'].map((name) => join(spool, name))])
}

function readMaildir(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))
}

async function end(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  // Its own services end with it.
  child.kill('SIGTERM')
  await ended
}

function greets(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    socket.once('error', () => resolve(false))
    socket.once('data', () => {
      socket.end('QUIT\r\n')
      resolve(true)
    })
  })
}
