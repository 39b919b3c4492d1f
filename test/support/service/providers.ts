/**
 * providers - six mailbox providers on the loopback: their MX records, recorded replies and latencies
 *
 * The local part of a recipient decides the outcome: `ok`, `dead`, `full`, `spam`, `late` (deferred, then accepted) or
 * `gone` (deferred, then rejected), followed by a dot and any text. The replies are rows of `fixtures/replies.tsv`,
 * chosen so that no reply pauses the whole site.
 */
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../machine/port.ts'
import { ROOT } from '../machine/root.ts'
import type { Zone } from '../peers/zone.ts'

const KINDS = ['ok', 'dead', 'full', 'spam', 'late', 'gone'] as const
export type Kind = (typeof KINDS)[number]

interface Profile {
  /** Its name in statistics. */
  readonly site: string
  readonly domain: string
  readonly hosts: readonly string[]
  /** Sources in `replies.tsv`. */
  readonly sources: readonly string[]
  /** Milliseconds to the greeting, and to half of the replies to the final dot. */
  readonly greetMs: number
  readonly dotMs: number
}

const PROFILES: readonly Profile[] = [
  {
    ...{ site: 'google', domain: 'gmail.com', sources: ['gmail'], greetMs: 25, dotMs: 60 },
    hosts: ['gmail-smtp-in.l.google.com', 'alt1.gmail-smtp-in.l.google.com'],
  },
  {
    ...{ site: 'microsoft', domain: 'outlook.com', sources: ['outlook', 'exchange'], greetMs: 60, dotMs: 140 },
    hosts: ['outlook-com.olc.protection.outlook.com'],
  },
  {
    ...{ site: 'yahoo', domain: 'yahoo.com', sources: ['yahoo'], greetMs: 40, dotMs: 90 },
    hosts: ['mta5.am0.yahoodns.net', 'mta6.am0.yahoodns.net'],
  },
  {
    ...{ site: 'apple', domain: 'icloud.com', sources: ['icloud'], greetMs: 30, dotMs: 110 },
    hosts: ['mx01.mail.icloud.com', 'mx02.mail.icloud.com'],
  },
  {
    ...{ site: 'united-internet', domain: 'gmx.de', sources: ['gmx', 'webde'], greetMs: 15, dotMs: 30 },
    hosts: ['mx00.emig.gmx.net', 'mx01.emig.gmx.net'],
  },
  {
    ...{ site: 'mimecast', domain: 'northwind.example', sources: ['mimecast'], greetMs: 80, dotMs: 300 },
    hosts: ['eu-smtp-inbound-1.mimecast.com', 'eu-smtp-inbound-2.mimecast.com'],
  },
]
const ANSWERS: Readonly<Record<string, string>> = { DATA: '354 go ahead', QUIT: '221 2.0.0 bye' }
/** One reply in so many takes `SLOW_FACTOR` times as long. */
const SLOW_IN = 20
const SLOW_FACTOR = 8
/** Deferrals of a single mailbox, which every provider sends. */
const DEFERRALS = ['gmail', 'own'] as const
/** Words by which the service slows a whole site down, or rests a source. */
const OF_A_SITE = ['rate', 'too many', 'throttl', 'TSS04', 'volume', 'too quickly', 'listed', 'block list', '192.0.2']

/** A recorded reply and the class that the record gives it. */
export interface Recorded {
  readonly reply: string
  readonly classification: string
}

export interface Provider extends Profile {
  readonly replies: ReadonlyMap<Kind, Recorded>
}

export interface Providers {
  readonly all: readonly Provider[]
  readonly port: number
  /** Recipients that were deferred, each once. */
  readonly deferred: ReadonlySet<string>
  /** Return path and content of the mails to recipients that `keeps` returned true for. */
  readonly kept: ReadonlyMap<string, { readonly returnPath: string; readonly text: string }>
  /** Accepted mails, also those whose reply was lost. */
  accepted(): number
  close(): void
}

interface Options {
  /** Zone that gets the records. */
  readonly zone: Zone
  /** In [0, 1). */
  readonly random: () => number
  readonly keeps: (recipient: string) => boolean
}

/** Starts them: each has a loopback address of its own, all have one port. */
export async function startProviders({ zone, random, keeps }: Options): Promise<Providers> {
  const rows = readReplies()
  const port = await freePort()
  const all = PROFILES.map((one) => ({ ...one, replies: repliesOf(one, rows) }))
  const deferred = new Set<string>()
  const kept = new Map<string, { returnPath: string; text: string }>()
  const sockets = new Set<Socket>()
  let accepted = 0
  const servers = await Promise.all(
    all.map((provider, place) => {
      const address = `127.0.88.${place + 1}`
      const exchanges = provider.hosts.map((exchange, at) => ({ type: 'MX' as const, exchange, priority: at + 1 }))
      zone.set(provider.domain, ...exchanges)
      for (const host of provider.hosts) zone.set(host, { type: 'A', address })
      const received = (recipient: string, mail: { returnPath: string; text: string }): void => {
        accepted += 1
        if (keeps(recipient)) kept.set(recipient, mail)
      }
      return listen(address, port, (socket) => {
        sockets.add(socket)
        socket.on('close', () => sockets.delete(socket))
        converse(socket, { provider, random, deferred, received })
      })
    }),
  )
  return {
    all,
    port,
    deferred,
    kept,
    accepted: () => accepted,
    close() {
      for (const server of servers) server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** The outcome that an address asks for. */
export function kindOf(recipient: string): Kind {
  const word = recipient.slice(0, recipient.indexOf('.'))
  return KINDS.find((kind) => kind === word) ?? 'ok'
}

interface Row extends Recorded {
  readonly phase: string
  readonly verdict: string
  readonly source: string
}

function readReplies(): Row[] {
  const lines = readFileSync(join(ROOT, 'test/fixtures/replies.tsv'), 'utf8').split('\n')
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [verdict = '', phase = '', classification = '', source = '', reply = ''] = line.split('\t')
      return { verdict, phase, classification, source, reply }
    })
    .filter(({ reply }) => !OF_A_SITE.some((word) => reply.includes(word)))
}

/** Its own rows, otherwise those of any source. */
function repliesOf({ sources }: Profile, rows: readonly Row[]): Map<Kind, Recorded> {
  const find = (from: readonly string[], isSo: (row: Row) => boolean): Row => {
    const fits = rows.filter((row) => ['rcpt', 'dot'].includes(row.phase) && isSo(row))
    const found = fits.find(({ source }) => from.includes(source)) ?? fits[0]
    if (found === undefined) throw new Error('No recorded reply fits')
    return found
  }
  const isPermanent = ({ reply }: Row) => reply.startsWith('5')
  const dead = find(sources, (row) => row.verdict === 'dead' && row.classification === 'InvalidRecipient')
  const full = find(sources, (row) => isPermanent(row) && row.classification === 'QuotaIssues')
  const spam = find(sources, (row) => isPermanent(row) && row.phase === 'dot' && row.classification !== 'QuotaIssues')
  const late = find(DEFERRALS, ({ phase, reply }) => phase === 'rcpt' && reply.startsWith('45'))
  return new Map<Kind, Recorded>([
    ['dead', dead],
    ['full', full],
    ['spam', spam],
    ['late', late],
    ['gone', late],
  ])
}

function listen(host: string, port: number, hear: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(hear)
    server.on('error', reject)
    server.listen(port, host, () => {
      if ((server.address() as AddressInfo).port !== port) reject(new Error('Another port'))
      else resolve(server)
    })
  })
}

interface Conversation {
  readonly provider: Provider
  readonly random: () => number
  readonly deferred: Set<string>
  received(recipient: string, mail: { returnPath: string; text: string }): void
}

/** One session, without extensions: each command waits for its reply. */
function converse(socket: Socket, { provider, random, deferred, received }: Conversation): void {
  let [returnPath, recipient, rest] = ['', '', '']
  let content: string[] | null = null
  const say = (text: string) => void (socket.writable && socket.write(`${text}\r\n`))
  const waitMs = () => provider.dotMs * (0.5 + random()) * (random() * SLOW_IN < 1 ? SLOW_FACTOR : 1)
  const replyOf = (kind: Kind): string => provider.replies.get(kind)?.reply ?? '250 2.0.0 OK'

  const judgeRecipient = (): string => {
    const kind = kindOf(recipient)
    if ((kind === 'late' || kind === 'gone') && !deferred.has(recipient)) {
      deferred.add(recipient)
      return replyOf(kind)
    }
    if (kind === 'gone') return replyOf('dead')
    return kind === 'dead' || kind === 'full' ? replyOf(kind) : '250 2.1.5 OK'
  }

  const endData = (text: string): void => {
    const mail = { returnPath, text }
    const to = recipient
    setTimeout(() => {
      if (kindOf(to) === 'spam') return say(replyOf('spam'))
      received(to, mail)
      say('250 2.0.0 OK queued')
    }, waitMs())
  }

  const take = (line: string): void => {
    if (content !== null) {
      if (line !== '.') return void content.push(line)
      endData(content.join('\r\n'))
      content = null
      return
    }
    const verb = line.slice(0, 4).toUpperCase()
    const address = line.slice(line.indexOf('<') + 1, line.indexOf('>'))
    if (verb === 'MAIL') returnPath = address
    if (verb === 'RCPT') recipient = address
    if (verb === 'DATA') content = []
    say(verb === 'RCPT' ? judgeRecipient() : (ANSWERS[verb] ?? '250 2.0.0 OK'))
  }

  socket.on('error', () => undefined)
  socket.setNoDelay(true)
  socket.on('data', (bytes) => {
    const lines = (rest + bytes.toString('latin1')).split('\r\n')
    rest = lines.pop() ?? ''
    for (const line of lines) take(line)
  })
  setTimeout(() => say(`220 ${provider.hosts[0]} ESMTP`), provider.greetMs * (0.5 + random()))
}
