/**
 * day - the operator's day: the blocks of `bash` in the documents, in their order, on one machine; between them the
 * actions of an operator that no command covers (editing settings, publishing records), and checks of the result
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { AuditList } from '../../schemas/operator/audit.ts'
import type { Secret } from '../../schemas/operator/secret.ts'
import type { FirstRun } from '../../src/service/first-start.ts'
import { SETTLED, settle } from '../support/clients/settle.ts'
import { blocksOf } from '../support/documents/blocks.ts'
import type { ZoneRecord } from '../support/peers/zone.ts'
import { must, type Place } from './commands.ts'
import type { Loaded, Order } from './peers.ts'

const SETTINGS = 'set -a; . /etc/sendwright/settings; set +a\n'
/** Prints the id, the name and the start time of the process that is Redis. */
const REDIS = "cut -d ' ' -f 1,2,22 /proc/$(cat /var/lib/sendwright/redis.pid)/stat"
const PROXY_PORT = 8088
/** API, received mail, submission over TLS and with STARTTLS. */
const PROBED = [8080, 25, 465, 587]
const SEND = 'sendwright send --from a@simulator.test --to b@simulator.test --text T --wait --subject'
const SECRET_FILE = '/var/lib/sendwright/secret-key'
const ROTATION_SECONDS_MAX = 240
const BEFORE_ROLL = 40
const AFTER_ROLL = 40
/** On a machine that freezes, the outcome of a commit may be unknown for longer than its client waits. */
const REFUSED_SHARE_MAX = 0.02

export interface Day extends Place {
  /** The archive, and the one that comes next. */
  readonly archives: readonly string[]
}

type Ask = (order: Order) => Promise<unknown>

/** Runs it. Throws Error with the command and its output if anything differs from the documents. */
export async function runDay(day: Day): Promise<void> {
  const { machine, archives } = day
  for (const path of archives.flatMap((archive) => [archive, `${archive}.sha256`]))
    copyFileSync(path, join(machine.root, 'root', basename(path)))
  const peers = machine.onItsNetwork([process.execPath, join(import.meta.dirname, 'peers.js')])
  const lines = createInterface({ input: peers.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const hear = async (): Promise<unknown> => JSON.parse((await lines.next()).value as string)
  const { dns, smtp } = (await hear()) as { dns: string; smtp: number }
  const ask: Ask = (order) => {
    peers.stdin?.write(`${JSON.stringify(order)}\n`)
    return hear()
  }
  try {
    await install(day, ask, { dns, smtp })
    await backUp(day)
    await restoreEncrypted(day)
    await nameOperators(day)
    await beginRotation(day)
    await upgrade(day)
    await grow(day)
    if (await hasProxy(day)) await roll(day, ask)
    else day.say('SKIPPED the roll under load: nginx is not installed')
    await endRotation(day)
  } finally {
    peers.kill('SIGKILL')
  }
}

async function install(day: Day, ask: Ask, { dns, smtp }: { dns: string; smtp: number }): Promise<void> {
  const { machine, say } = day
  for (const { code } of bashOf('docs/operate/install.md')) {
    if (!day.isEmpty && code.includes('apt-get')) {
      say('(packages are those of this machine)')
      continue
    }
    const out = await must(day, code)
    if (code.includes('/etc/sendwright/settings\n') && code.startsWith('install ')) {
      const path = join(machine.root, 'etc/sendwright/settings')
      const edits = [`DNS_SERVERS=${dns}`, `DELIVERY_PORT=${smtp}`, 'PRIVATE_NETWORKS_ALLOWED=127.0.0.0/8']
      writeFileSync(path, `${readFileSync(path, 'utf8')}${edits.join('\n')}\n`)
      await publishOwn(ask)
    }
    if (code.includes('domain add')) await publish(ask, out)
    if (code.includes('enable --now sendwright')) say('installed and started, without a network')
  }
  const { messages } = (await ask({ order: 'mail' })) as { messages: string[] }
  if (messages.length !== 1 || !messages[0]?.includes('It is real.')) throw new Error(`Received: ${messages}`)
  if (!/^DKIM-Signature:/m.test(messages[0])) throw new Error('The mail is not signed')
  say('a mail from a verified domain is delivered')
}

/** The records of docs/reference/dns.md for the domain of the service, and those of a recipient. */
async function publishOwn(ask: Ask): Promise<void> {
  const address: ZoneRecord = { type: 'A', address: '127.0.0.1' }
  const mx: ZoneRecord = { type: 'MX', exchange: 'mx.svc.example', priority: 10 }
  for (const name of ['out.svc.example', 'mx.svc.example', 'mail.partner.example'])
    await ask({ order: 'set', name, records: [address] })
  for (const name of ['rp.svc.example', 'doctor.rp.svc.example', 'inbound.svc.example'])
    await ask({ order: 'set', name, records: [mx] })
  const partner: ZoneRecord = { type: 'MX', exchange: 'mail.partner.example', priority: 10 }
  await ask({ order: 'set', name: 'partner.example', records: [partner] })
}

/** The records that `domain add` has printed. */
async function publish(ask: Ask, out: string): Promise<void> {
  const found = [...out.matchAll(/^(CNAME|TXT) +(\S+) +(\S.*?)(?: {2,}.*)?$/gm)]
  if (found.length !== 4) throw new Error(`Two required and two recommended records, not: ${out}`)
  for (const [, type, name = '', value = ''] of found) {
    const record: ZoneRecord = type === 'CNAME' ? { type, domain: value } : { type: 'TXT', data: value }
    await ask({ order: 'set', name, records: [record] })
  }
}

/** A backup, a mail after it, and the restore: the state of the copy point. */
async function backUp(day: Day): Promise<void> {
  const [backup, keep, nightly, restore, ...others] = bashOf('docs/operate/backup.md')
  if (restore === undefined || others.length > 0) throw new Error('A backup, kept ones, the timer, and the restore')
  for (const block of [backup, keep, nightly]) await must(day, block?.code ?? '')
  const made = 'systemctl start sendwright-backup && ls /var/backups/sendwright'
  const kept = (await must(day, made)).trim().split('\n')
  // A backup with a name of its own by hand, one of the block, and one of the timer's unit.
  if (kept.length !== 3 || !kept.includes('monday')) throw new Error(`Kept: ${kept}`)
  const subjects = async (): Promise<string> => await must(day, `${SETTINGS}sendwright message search --json`)
  await must(day, `${SETTINGS}${SEND} Later`)
  if (!(await subjects()).includes('Later')) throw new Error('It was not sent')
  await must(day, restore.code)
  const left = await subjects()
  if (left.includes('Later') || !left.includes('Hello')) throw new Error(`Not the state of the backup: ${left}`)
  await must(day, `${SETTINGS}${SEND} Again`)
  day.say('a backup is restored: what came after it is gone, what was before is there, and it goes on')
}

async function upgrade(day: Day): Promise<void> {
  const blocks = bashOf('docs/operate/upgrade.md')
  const before = await must(day, REDIS)
  for (const { code } of blocks) {
    const startedAtMs = performance.now()
    await must(day, code)
    const [, version] = /ln -sfn \/opt\/sendwright-(\S+) /.exec(code) ?? []
    if (version === undefined) continue
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
    const runs = await must(
      day,
      'tr "\\0" " " < /proc/$(systemctl show --value -p MainPID sendwright)/cmdline; sendwright --version',
    )
    if (!runs.includes(`/opt/sendwright-${version}/`) || !runs.trim().endsWith(version))
      throw new Error(`${version}: ${runs}`)
    day.say(`version ${version} runs, ready after ${seconds} s`)
  }
  await must(day, 'systemctl restart sendwright-store && sleep 1 && systemctl is-active sendwright-store')
  const after = await must(day, REDIS)
  if (after !== before) throw new Error(`Redis was ${before} and is ${after}`)
  await must(day, `${SETTINGS}sendwright message search --json`)
  day.say('restarts of both units left Redis alone')
}

/** A backup that is encrypted on its way, and a restore of it. */
async function restoreEncrypted(day: Day): Promise<void> {
  if (day.isEmpty) await must(day, 'apt-get install -y --no-install-recommends gpg gpg-agent')
  if ((await must(day, 'command -v gpg || true')).trim() === '')
    return day.say('SKIPPED the encrypted backup: gpg is not installed')
  const restore = bashOf('docs/operate/backup.md')[3]?.code ?? ''
  const gpg = 'gpg --batch --yes --quiet --pinentry-mode loopback --passphrase-file /root/passphrase'
  const [monday, sealed] = ['/var/backups/sendwright/monday', '/var/backups/sendwright/monday.tar.gpg']
  await must(
    day,
    `${SETTINGS}set -o pipefail
    echo passphrase-of-the-trial > /root/passphrase
    runuser -u sendwright -- sendwright backup - | ${gpg} --symmetric > ${sealed}
    if grep -qa acme.com ${sealed}; then exit 1; fi
    ${SEND} Newer
    rm -r ${monday} /var/lib/sendwright.before
    install -d -m 700 ${monday}
    ${gpg} --decrypt ${sealed} | tar -x -C ${monday}`,
  )
  await must(day, restore)
  const left = await must(day, `${SETTINGS}sendwright message search --json`)
  if (left.includes('Newer') || !left.includes('Again')) throw new Error(`Not the state of the backup: ${left}`)
  day.say('an encrypted backup is restored')
}

/** Two operators with keys of their own: the audit log names each. */
async function nameOperators(day: Day): Promise<void> {
  const { account } = JSON.parse(await must(day, 'cat /var/lib/sendwright/first-run.json')) as FirstRun
  let token = ''
  for (const name of ['Ada', 'Bob']) {
    const made = await must(day, `${SETTINGS}sendwright operator create ${name} --role admin --json`)
    token = (JSON.parse(made) as { token: string }).token
    const limits = `sendwright account limits ${account.accountId} --test-per-minute 100000`
    await must(day, `${SETTINGS}${limits} --note 'by ${name}' --token ${token}`)
  }
  const url = 'http://127.0.0.1:8081/v1/operator/audit?limit=10'
  const { entries } = JSON.parse(await must(day, `curl -fsS -H 'Authorization: Bearer ${token}' '${url}'`)) as AuditList
  for (const name of ['Ada', 'Bob'])
    if (!entries.some((entry) => entry.note === `by ${name}` && entry.actorName === name))
      throw new Error(`${name} is not named in the audit log: ${JSON.stringify(entries)}`)
  day.say('two operators are named in the audit log')
}

/** It goes on through the upgrade, from one process to many, and through the roll under load. */
async function beginRotation(day: Day): Promise<void> {
  const note = "--note 'laptop lost' --no-wait"
  await must(day, `install -m 600 ${SECRET_FILE} /root/former\n${SETTINGS}sendwright secret rotate ${note}`)
}

/** The former secret is in no file any more, doctor finds nothing of it, and what was sent before is read. */
async function endRotation(day: Day): Promise<void> {
  const startedAtMs = performance.now()
  const show = `${SETTINGS}sendwright secret show --json`
  const wait = `for n in $(seq ${ROTATION_SECONDS_MAX}); do ${show} | grep -q '"done"' && break; sleep 1; done`
  const shown = await must(day, `${wait}\n${show}`)
  const { rotation } = JSON.parse(shown) as Secret
  if (rotation?.phase !== 'done' || rotation.unreadable > 0) throw new Error(`The rotation: ${shown}`)
  const left = await must(day, `ls /var/lib/sendwright; grep -rlFf /root/former /var/lib/sendwright || true`)
  if (left.includes('secret-key.') || left.includes('/secret-key')) throw new Error(`Of the former secret: ${left}`)
  const doctor = await must(day, `${SETTINGS}sendwright doctor || true`)
  if (!doctor.includes('rotated at')) throw new Error(`doctor: ${doctor}`)
  const found = await must(day, `${SETTINGS}sendwright message search --recipient b@simulator.test --json`)
  if (!found.includes('Again')) throw new Error(`What was there is not: ${found}`)
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  day.say(`the secret was rotated through all of this, ${rotation.resealed} values; waited ${seconds} s for its end`)
}

const CERTIFICATE = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 \
  -subj /CN=out.svc.example -addext subjectAltName=DNS:out.svc.example,DNS:mx.svc.example \
  -keyout /root/key.pem -out /root/cert.pem 2>/dev/null
install -d -m 750 -g sendwright /etc/sendwright/tls
install -m 640 -g sendwright /root/key.pem /root/cert.pem /etc/sendwright/tls`
/** Prints the serial number of the certificate that a client of port 587 sees. */
const SEEN = `openssl s_client -connect 127.0.0.1:587 -starttls smtp </dev/null 2>/dev/null |
  openssl x509 -noout -serial`

/** A certificate is replaced as the hooks of docs/operate/certificates.md do it, while clients send. */
async function renew(day: Day): Promise<void> {
  const before = await must(day, SEEN)
  await must(day, `${CERTIFICATE}\nsystemctl try-reload-or-restart sendwright 'sendwright@*.service'`)
  const wanted = await must(day, 'openssl x509 -in /etc/sendwright/tls/cert.pem -noout -serial')
  const wait = `for n in $(seq 60); do [ "$(${SEEN})" != '${wanted.trim()}' ] || break; sleep 1; done`
  const after = await must(day, `${wait}\n${SEEN}`)
  if (before === after || after !== wanted) throw new Error(`The certificate was ${before}, is ${after}, not ${wanted}`)
  day.say('a renewed certificate is served under load')
}

/** From one process to many: earlier data is still there. */
async function grow(day: Day): Promise<void> {
  const settings = 'TLS_CERT=/etc/sendwright/tls/cert.pem TLS_KEY=/etc/sendwright/tls/key.pem'
  await must(day, `${CERTIFICATE}\nprintf '%s\\n' ${settings} >> /etc/sendwright/settings`)
  const [grown] = bashOf('docs/operate/many-processes.md')
  await must(day, grown?.code ?? '')
  const found = await must(day, `${SETTINGS}sendwright message search --json`)
  if (!found.includes('Again')) throw new Error(`What was there is not: ${found}`)
  day.say('many processes run on the same store')
}

/** The roll, while clients send through the proxy of the documents. */
async function roll(day: Day, ask: Ask): Promise<void> {
  const { machine, say } = day
  const [, rolled] = bashOf('docs/operate/many-processes.md')
  await startProxy(day)
  const firstRun = JSON.parse(await must(day, 'cat /var/lib/sendwright/first-run.json')) as FirstRun
  const { accountId } = firstRun.account
  await must(day, `${SETTINGS}sendwright account limits ${accountId} --test-per-minute 100000`)
  await ask({ order: 'load', port: PROXY_PORT, token: firstRun.testServer.token })
  await ask({ order: 'passes', count: BEFORE_ROLL })
  await ask({ order: 'probe', ports: PROBED })
  await renew(day)
  await must(day, rolled?.code ?? '')
  await ask({ order: 'passes', count: AFTER_ROLL })
  const { outcomes } = (await ask({ order: 'probed' })) as { outcomes: Readonly<Record<string, number>> }
  const broken = Object.keys(outcomes).filter((outcome) => !outcome.endsWith(' connected'))
  if (broken.length > 0 || Object.keys(outcomes).length !== PROBED.length)
    throw new Error(`Connections every 20 ms: ${JSON.stringify(outcomes)}`)
  say(`no connection was refused during the roll: ${JSON.stringify(outcomes)}`)
  const { told, statuses } = (await ask({ order: 'end' })) as Loaded
  const running = await must(
    day,
    'for p in $(systemctl show --value -p MainPID "sendwright@*"); do tr "\\0" " " < /proc/$p/cmdline; echo; done',
  )
  const old = running.split('\n').filter((line) => line !== '' && !line.includes('/opt/sendwright-0.2.0/'))
  if (old.length > 0) throw new Error(`Not rolled: ${running}`)
  const { serverId } = firstRun.testServer
  const ledger = {
    told: new Map(told.map(([key, id]) => [key, new Set([id])])),
    statuses: new Map(),
    refusals: [],
    cuts: [],
    falselyRefused: [],
  }
  const found = await settle(join(machine.root, 'var/lib/sendwright/redis.sock'), { serverId, accountId, ledger })
  for (const [name, wanted] of Object.entries(SETTLED))
    if (found[name as keyof typeof SETTLED] !== wanted) throw new Error(`After the roll: ${JSON.stringify(found)}`)
  const refused = Object.entries(statuses).flatMap(([status, count]) => (status === '200' ? [] : [count]))
  const share = refused.reduce((sum, count) => sum + count, 0) / told.length
  if (share > REFUSED_SHARE_MAX) throw new Error(`The roll was seen by clients: ${JSON.stringify(statuses)}`)
  say(
    `a roll under load: ${told.length} messages, none lost or doubled; answers by status: ${JSON.stringify(statuses)}`,
  )
}

/** Whether nginx can run there; an empty machine gets it. */
async function hasProxy(day: Day): Promise<boolean> {
  return day.isEmpty || (await must(day, 'command -v nginx || true')).trim() !== ''
}

/** The nginx of docs/operate/proxy.md with the upstream of docs/operate/many-processes.md, without TLS. */
async function startProxy(day: Day): Promise<void> {
  const [whole] = blocksOf('docs/operate/proxy.md').filter(({ language }) => language === 'nginx')
  const [upstream] = blocksOf('docs/operate/many-processes.md').filter(({ language }) => language === 'nginx')
  const server = (whole?.code ?? '').slice((whole?.code ?? '').indexOf('server {\n  listen'))
  const text = server
    .replace('listen 443 ssl;', `listen 127.0.0.1:${PROXY_PORT};`)
    .replace(/^ *ssl_certificate.*\n/gm, '')
    .replace('proxy_next_upstream off;', 'proxy_next_upstream error;')
  if (day.isEmpty) await must(day, 'apt-get install -y --no-install-recommends nginx-light')
  const settings = `events {}\nhttp {\n${upstream?.code}${text}}\n`
  writeFileSync(join(day.machine.root, 'root/nginx.conf'), settings)
  await must(day, 'nginx -c /root/nginx.conf >/root/nginx.log 2>&1')
}

function bashOf(document: string) {
  return blocksOf(document).filter(({ language }) => language === 'bash')
}
