/**
 * packet - questions and replies of the DNS as bytes (RFC 1035 4.1), for the names that c-ares refuses to ask for.
 *
 * Guarantees: never throws. A reply counts only if it repeats the question. Bounds: compressed names point backwards
 * only and have at most 255 octets, a reply has at most 512 answers.
 */
import ipaddr from 'ipaddr.js'
import type { DnsAnswer, RecordType, TlsaRecord } from './answer.ts'

const TYPE_CODES: Readonly<Record<RecordType, number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  TLSA: 52,
}
const CLASS_IN = 1
const HEADER_BYTES = 12
const NAME_BYTES_MAX = 255
const LABEL_BYTES_MAX = 63
const ANSWERS_MAX = 512
const POINTER = 0xc0
const RECURSION_DESIRED = 0x0100
const RESPONSE = 0x8000
const TRUNCATED = 0x0200
/** In a query: the answer's AD bit is wanted (RFC 6840 5.7). In a reply: the resolver has validated it. */
const AUTHENTIC = 0x0020
/** A malformed TLSA record: one record of a stranger must not hide the others. */
const NO_TLSA: TlsaRecord = { usage: 255, selector: 255, matching: 255, data: '' }
const TLSA_HEAD_BYTES = 3
const NXDOMAIN = 3
/** Codes of `node:dns` for the other response codes. */
const FAILURES: Readonly<Record<number, string>> = { 1: 'EFORMERR', 2: 'ESERVFAIL', 4: 'ENOTIMP', 5: 'EREFUSED' }

/** A question: `id` is 16 bits; `name` without escapes, as UTF-8. */
export interface Question {
  readonly id: number
  readonly type: RecordType
  readonly name: string
  /** Whether the reply shall have the AD bit if the resolver has validated it. */
  readonly asksSecurity?: boolean
}

/** The bytes of a question; null for a name that cannot be written as one (RFC 1035 2.3.4). */
export function encodeQuestion({ id, type, name, asksSecurity = false }: Question): Buffer | null {
  const labels = name
    .replace(/\.$/, '')
    .split('.')
    .map((label) => Buffer.from(label))
  const bytes = labels.reduce((sum, label) => sum + 1 + label.length, 1)
  if (bytes > NAME_BYTES_MAX || labels.some((one) => one.length === 0 || one.length > LABEL_BYTES_MAX)) return null
  return Buffer.concat([
    numbers(id, RECURSION_DESIRED | (asksSecurity ? AUTHENTIC : 0), 1, 0, 0, 0),
    ...labels.flatMap((label) => [Buffer.of(label.length), label]),
    Buffer.of(0),
    numbers(TYPE_CODES[type], CLASS_IN),
  ])
}

/**
 * Reads the reply to a query. Takes the query's own bytes and type. Null if it is not a reply to the query, and is
 * ignored; `truncated` if the query must be repeated over TCP.
 */
export function readReply(reply: Buffer, asked: Buffer, type: RecordType): DnsAnswer<unknown> | 'truncated' | null {
  if (!repeats(reply, asked)) return null
  const flags = reply.readUInt16BE(2)
  if ((flags & TRUNCATED) !== 0) return 'truncated'
  const code = flags & 0xf
  if (code === NXDOMAIN) return { status: 'nxdomain' }
  if (code !== 0) return { status: 'failure', code: FAILURES[code] ?? 'EBADRESP' }
  const found = readAnswers(reply, asked.length, type)
  if (found === null) return { status: 'failure', code: 'EBADRESP' }
  const { records, name } = found
  const isSecure = (flags & asked.readUInt16BE(2) & AUTHENTIC) !== 0
  const secure = isSecure ? { secure: { name } } : {}
  return records.length === 0 ? { status: 'nodata', ...secure } : { status: 'ok', records, ...secure }
}

/** Whether it is a response with the id and the question of `asked`; the case of letters does not matter. */
function repeats(reply: Buffer, asked: Buffer): boolean {
  if (reply.length < asked.length || reply.readUInt16BE(0) !== asked.readUInt16BE(0)) return false
  if ((reply.readUInt16BE(2) & RESPONSE) === 0 || reply.readUInt16BE(4) !== 1) return false
  const questionOf = (packet: Buffer) => packet.toString('latin1', HEADER_BYTES, asked.length).toLowerCase()
  return questionOf(reply) === questionOf(asked)
}

/**
 * Records of the type that belong to the name, or to the target of its aliases, and the last target; null for a
 * malformed reply.
 */
function readAnswers(
  reply: Buffer,
  startsAt: number,
  type: RecordType,
): { readonly records: unknown[]; readonly name: string } | null {
  const count = reply.readUInt16BE(6)
  if (count > ANSWERS_MAX) return null
  const asked = readName(reply, HEADER_BYTES)
  if (asked === null) return null
  let name = asked.name.toLowerCase()
  const owners = new Set([name])
  const records: unknown[] = []
  let at = startsAt
  for (let left = count; left > 0; left -= 1) {
    const head = readRecordHead(reply, at)
    if (head === null) return null
    const { owner, code, isInternet, start, end } = head
    at = end
    if (!isInternet || !owners.has(owner)) continue
    if (code === TYPE_CODES.CNAME && type !== 'CNAME') {
      const alias = readName(reply, start)
      if (alias === null) return null
      name = alias.name.toLowerCase()
      owners.add(name)
    } else if (code === TYPE_CODES[type]) {
      const record = readRecord(reply, { type, start, end })
      if (record === null) return null
      records.push(record)
    }
  }
  return { records, name }
}

/** The fields of a record before its data, the owner in lower case (RFC 1035 3.2.1); null for a malformed one. */
function readRecordHead(
  reply: Buffer,
  at: number,
): { owner: string; code: number; isInternet: boolean; start: number; end: number } | null {
  const owner = readName(reply, at)
  if (owner === null || owner.end + 10 > reply.length) return null
  const start = owner.end + 10
  const end = start + reply.readUInt16BE(owner.end + 8)
  if (end > reply.length) return null
  const isInternet = reply.readUInt16BE(owner.end + 2) === CLASS_IN
  return { owner: owner.name.toLowerCase(), code: reply.readUInt16BE(owner.end), isInternet, start, end }
}

/** A record in the form of `node:dns`; null for a malformed one. */
function readRecord(reply: Buffer, { type, start, end }: { type: RecordType; start: number; end: number }): unknown {
  if (type === 'A' || type === 'AAAA') {
    const isWhole = end - start === (type === 'A' ? 4 : 16)
    return isWhole ? ipaddr.fromByteArray([...reply.subarray(start, end)]).toString() : null
  }
  if (type === 'TXT') return readStrings(reply.subarray(start, end))
  if (type === 'TLSA') return readTlsa(reply.subarray(start, end))
  const name = readName(reply, type === 'MX' ? start + 2 : start)
  if (name === null || name.end !== end) return null
  return type === 'MX' ? { exchange: name.name, priority: reply.readUInt16BE(start) } : name.name
}

function readTlsa(data: Buffer): TlsaRecord {
  const [usage, selector, matching] = data
  if (data.length <= TLSA_HEAD_BYTES || usage === undefined || selector === undefined || matching === undefined)
    return NO_TLSA
  return { usage, selector, matching, data: data.toString('hex', TLSA_HEAD_BYTES) }
}

function readStrings(data: Buffer): string[] | null {
  const strings: string[] = []
  for (let at = 0; at < data.length; ) {
    const end = at + 1 + (data[at] as number)
    if (end > data.length) return null
    strings.push(data.toString('latin1', at + 1, end))
    at = end
  }
  return strings.length === 0 ? null : strings
}

/** The name at `at`, and its end; null if it is malformed. */
function readName(reply: Buffer, at: number): { readonly name: string; readonly end: number } | null {
  const labels: string[] = []
  let bytes = 1
  let end: number | null = null
  // Each pointer must lead to before the place that the last one led to, so a loop is impossible.
  let before = at
  for (let next = at; ; ) {
    const length = reply[next]
    if (length === undefined) return null
    if (length === 0) return { name: labels.join('.'), end: end ?? next + 1 }
    if ((length & POINTER) === POINTER) {
      const low = reply[next + 1]
      const target = low === undefined ? before : ((length & ~POINTER) << 8) | low
      if (target >= before) return null
      end ??= next + 2
      before = target
      next = target
      continue
    }
    bytes += 1 + length
    if (length > LABEL_BYTES_MAX || bytes > NAME_BYTES_MAX || next + 1 + length > reply.length) return null
    labels.push(escaped(reply.toString('latin1', next + 1, next + 1 + length)))
    next += 1 + length
  }
}

/** A label in the form of master files (RFC 1035 5.1), in which a dot inside a label is escaped. */
function escaped(label: string): string {
  return label.replace(/[^!-~]|[.\\]/g, (char) =>
    char === '.' || char === '\\' ? `\\${char}` : `\\${String(char.charCodeAt(0)).padStart(3, '0')}`,
  )
}

/** Numbers of 16 bits. */
function numbers(...values: readonly number[]): Buffer {
  return Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]))
}
