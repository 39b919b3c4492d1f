/**
 * client - one question to the DNS servers: by c-ares, or by ourselves for names that c-ares refuses and for answers
 * whose validation matters
 *
 * Never throws and never rejects. An answer above 128 KB of heap is a failure (EBADRESP).
 */

import { Resolver as CAres } from 'node:dns/promises'
import { answerBytes, type DnsAnswer, type RecordType } from './answer.ts'
import { ask } from './ask.ts'

const QUERY_TIMEOUT_MS = 2000
const QUERY_TRIES = 2
/** Heap: 64 KB on the wire can become a megabyte, as compressed names or strings of one byte. */
const ANSWER_BYTES_MAX = 128 * 1024
/** Characters that c-ares refuses in a name (EBADNAME), or reads as an escape. */
const UNUSUAL = /[^\w./*\u0080-\uffff-]/

/** Types whose validation matters to delivery (RFC 7672 2). */
const VALIDATED: ReadonlySet<RecordType> = new Set<RecordType>(['MX', 'A', 'AAAA', 'CNAME', 'TLSA'])

export interface ClientOptions {
  /** `ip` or `ip:port`; absent or empty = the system's servers. */
  readonly servers?: readonly string[]
  /** Time limit of one try. */
  readonly queryTimeoutMs?: number
  /** The servers validate with DNSSEC, and the way to them is safe: their AD bit counts. */
  readonly isTrusted?: boolean
}

/** Asks the servers each time. */
export interface DnsClient {
  query(type: RecordType, name: string): Promise<DnsAnswer<unknown>>
  /** Questions in flight get `failure`. */
  close(): void
}

/** A client in this thread. The loop pauses while c-ares reads the answers: 2 ms for one of 64 KB. */
export function openClient(options: ClientOptions): DnsClient {
  const { servers = [], queryTimeoutMs = QUERY_TIMEOUT_MS, isTrusted: asksSecurity = false } = options
  const cAres = new CAres({ timeout: queryTimeoutMs, tries: QUERY_TRIES })
  if (servers.length > 0) cAres.setServers(servers)
  const closing = new AbortController()

  function queryDirectly(type: RecordType, name: string): Promise<DnsAnswer<unknown>> {
    const { signal } = closing
    return ask(type, name, { servers: cAres.getServers(), timeoutMs: queryTimeoutMs, asksSecurity, signal })
  }

  return {
    async query(type, name) {
      const isOurs = UNUSUAL.test(name) || type === 'TLSA' || (asksSecurity && VALIDATED.has(type))
      const answer = await (isOurs ? queryDirectly(type, name) : queryCAres(cAres, type, name))
      return answerBytes(answer) > ANSWER_BYTES_MAX ? { status: 'failure', code: 'EBADRESP' } : answer
    },
    close() {
      cAres.cancel()
      closing.abort()
    },
  }
}

async function queryCAres(cAres: CAres, type: RecordType, name: string): Promise<DnsAnswer<unknown>> {
  try {
    const records = (await cAres.resolve(name, type)) as unknown[]
    return records.length === 0 ? { status: 'nodata' } : { status: 'ok', records }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'EUNKNOWN'
    if (code === 'ENOTFOUND') return { status: 'nxdomain' }
    if (code === 'ENODATA') return { status: 'nodata' }
    // A name that cannot be written as a question (an empty label, one over 63 octets) cannot exist either.
    if (code === 'EBADNAME') return { status: 'nxdomain' }
    return { status: 'failure', code }
  }
}
