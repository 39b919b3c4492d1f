/**
 * ask - sends one query to DNS servers without c-ares, which refuses names with `+`, `=` or `'` (EBADNAME), such as
 * the local part of a VERP, SRS or BATV sender in an SPF macro. Also asks whether the resolver has validated an answer,
 * which c-ares does not report.
 *
 * UDP first, TCP if the reply is truncated; two tries, at different servers if there are several. Each try has its own
 * socket with a port chosen by the kernel and a random id, and accepts only a reply of that server to that query.
 * Never rejects.
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import type { DnsAnswer, RecordType } from './answer.ts'
import { encodeQuestion, readReply } from './packet.ts'

const TRIES = 2
const PORT = 53
const IDS = 0x10000
/** Before each message over TCP (RFC 1035 4.2.2): at most 65,535 octets follow. */
const LENGTH_BYTES = 2

export interface AskOptions {
  /** As `node:dns` lists them: `ip`, `ip:port` or `[ip]:port`. */
  readonly servers: readonly string[]
  /** Timeout of one try over UDP, and of one over TCP. */
  readonly timeoutMs: number
  /** Whether an answer shall say that the resolver has validated it. */
  readonly asksSecurity?: boolean
  readonly signal: AbortSignal
}

interface Server {
  readonly host: string
  readonly port: number
}

type Asked = DnsAnswer<unknown> | 'truncated'

const BAD_REPLY: DnsAnswer<unknown> = { status: 'failure', code: 'EBADRESP' }

/** Asks. A name that cannot be a question does not exist. */
export async function ask(type: RecordType, name: string, options: AskOptions): Promise<DnsAnswer<unknown>> {
  const servers = options.servers.map(parseServer)
  let last: DnsAnswer<unknown> = { status: 'failure', code: 'ECONNREFUSED' }
  for (let n = 0; n < TRIES && servers.length > 0 && !options.signal.aborted; n += 1) {
    const server = servers[n % servers.length] as Server
    const question = encodeQuestion({ id: randomInt(IDS), type, name, asksSecurity: options.asksSecurity ?? false })
    if (question === null) return { status: 'nxdomain' }
    const take = (reply: Buffer) => readReply(reply, question, type)
    const heard = await overUdp(server, { question, take, options })
    const answer = heard === 'truncated' ? await overTcp(server, { question, take, options }) : heard
    if (answer !== 'truncated' && answer.status !== 'failure') return answer
    last = answer === 'truncated' ? BAD_REPLY : answer
  }
  return last
}

interface Try {
  readonly question: Buffer
  /** Null if it is not a reply to the query. */
  readonly take: (reply: Buffer) => Asked | null
  readonly options: AskOptions
}

function overUdp({ host, port }: Server, { question, take, options }: Try): Promise<Asked> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    const end = ending(options, resolve, () => socket.close())
    socket.on('error', (error) => end(failed(error)))
    socket.on('message', (reply) => {
      const heard = take(reply)
      if (heard !== null) end(heard)
    })
    // A connected socket receives from its peer only.
    socket.connect(port, host, () => socket.send(question))
  })
}

function overTcp({ host, port }: Server, { question, take, options }: Try): Promise<Asked> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const end = ending(options, resolve, () => socket.destroy())
    const chunks: Buffer[] = []
    let bytes = 0
    let bytesWanted = LENGTH_BYTES
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes < bytesWanted) return
      const received = Buffer.concat(chunks)
      bytesWanted = LENGTH_BYTES + received.readUInt16BE(0)
      if (bytes >= bytesWanted) end(take(received.subarray(LENGTH_BYTES, bytesWanted)) ?? BAD_REPLY)
    })
    const head = Buffer.of(question.length >> 8, question.length & 0xff)
    socket.on('connect', () => socket.write(Buffer.concat([head, question])))
  })
}

/** Ends a try once: by an answer, its timeout, or the signal. */
function ending({ timeoutMs, signal }: AskOptions, resolve: (heard: Asked) => void, close: () => void) {
  let isOpen = true
  const end = (heard: Asked): void => {
    if (!isOpen) return
    isOpen = false
    clearTimeout(timer)
    signal.removeEventListener('abort', cancel)
    close()
    resolve(heard)
  }
  const cancel = () => end({ status: 'failure', code: 'ECANCELLED' })
  const timer = setTimeout(() => end({ status: 'failure', code: 'ETIMEOUT' }), timeoutMs)
  signal.addEventListener('abort', cancel)
  return end
}

function failed(error: NodeJS.ErrnoException): Asked {
  return { status: 'failure', code: error.code ?? 'EUNKNOWN' }
}

function parseServer(text: string): Server {
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(text)
  if (bracketed !== null) return { host: bracketed[1] as string, port: Number(bracketed[2] ?? PORT) }
  if (isIPv6(text)) return { host: text, port: PORT }
  const [host = '', port] = text.split(':')
  return { host, port: Number(port ?? PORT) }
}
