/**
 * dns-answer - the bytes of an answer of the DNS (RFC 1035 4.1): dns2 takes seconds for one of 64 KB, in the thread of
 * the test
 */
import ipaddr from 'ipaddr.js'

const TYPES: Readonly<Record<ZoneRecord['type'], number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  TLSA: 52,
}
const STRING_BYTES_MAX = 255
const CLASS_IN = 1
const TTL_SECONDS = 60
/** A response, with recursion wanted and available. */
const FLAGS = 0x8180
const TRUNCATED = 0x0200
const AUTHENTIC = 0x0020
/** Where the question's name is, behind the head of 12 bytes. */
const TO_QUESTION = 0xc00c

export type ZoneRecord =
  | { type: 'A' | 'AAAA'; address: string }
  | { type: 'CNAME' | 'PTR'; domain: string }
  | { type: 'NS'; ns: string }
  | { type: 'MX'; exchange: string; priority: number }
  | { type: 'TXT'; data: string | (string | Buffer)[] }
  /** `3 1 1 <hex>`; without the hexadecimal part it is an empty record. */
  | { type: 'TLSA'; tlsa: string }

export interface Answer {
  readonly id: number
  readonly question: { readonly name: string; readonly type: number }
  readonly code: number
  readonly isTruncated: boolean
  /** The resolver has validated it. */
  readonly isSecure?: boolean
  readonly answers: readonly { readonly name: string; readonly record: ZoneRecord }[]
}

/** Records as they follow the question, encoded once: for answers that are sent thousands of times. */
export interface AnswerSection {
  readonly count: number
  readonly bytes: Buffer
}

/** Encodes records. Each has the requested name as its owner (a pointer, RFC 1035 4.1.4). */
export function encodeSection(records: readonly ZoneRecord[]): AnswerSection {
  const all = records.flatMap((record) => {
    const data = dataOf(record)
    return [numbers(TO_QUESTION, TYPES[record.type], CLASS_IN, 0, TTL_SECONDS, data.length), data]
  })
  return { count: records.length, bytes: Buffer.concat(all) }
}

/** The bytes of an answer that holds sections. */
export function encodeSections(
  { id, question }: Pick<Answer, 'id' | 'question'>,
  of: readonly AnswerSection[],
): Buffer {
  const count = of.reduce((sum, section) => sum + section.count, 0)
  const asked = [nameBytes(question.name), numbers(question.type, CLASS_IN)]
  return Buffer.concat([numbers(id, FLAGS, 1, count, 0, 0), ...asked, ...of.map(({ bytes }) => bytes)])
}

/** The bytes of an answer. */
export function encodeAnswer({ id, question, code, isTruncated, isSecure = false, answers }: Answer): Buffer {
  const flags = FLAGS | code | (isTruncated ? TRUNCATED : 0) | (isSecure ? AUTHENTIC : 0)
  const records = answers.flatMap(({ name, record }) => {
    const data = dataOf(record)
    return [nameBytes(name), numbers(TYPES[record.type], CLASS_IN, 0, TTL_SECONDS, data.length), data]
  })
  return Buffer.concat([
    numbers(id, flags, 1, answers.length, 0, 0),
    nameBytes(question.name),
    numbers(question.type, CLASS_IN),
    ...records,
  ])
}

function dataOf(record: ZoneRecord): Buffer {
  if (record.type === 'TXT') return Buffer.concat(stringsOf(record.data))
  if (record.type === 'MX') return Buffer.concat([numbers(record.priority), nameBytes(record.exchange)])
  if (record.type === 'TLSA') return tlsaBytes(record.tlsa)
  if (record.type === 'NS') return nameBytes(record.ns)
  return 'address' in record ? Buffer.from(ipaddr.parse(record.address).toByteArray()) : nameBytes(record.domain)
}

function tlsaBytes(text: string): Buffer {
  const [usage, selector, matching, hex = ''] = text.split(' ')
  return Buffer.concat([Buffer.from([usage, selector, matching].map(Number)), Buffer.from(hex, 'hex')])
}

/** The strings of a TXT record, each after its length. A text that exceeds one string is split. */
function stringsOf(data: string | readonly (string | Buffer)[]): Buffer[] {
  return [data].flat().flatMap((text) => {
    const bytes = Buffer.from(text)
    const count = Math.max(1, Math.ceil(bytes.length / STRING_BYTES_MAX))
    return Array.from({ length: count }, (_, at) => {
      const part = bytes.subarray(at * STRING_BYTES_MAX, (at + 1) * STRING_BYTES_MAX)
      return Buffer.concat([Buffer.of(part.length), part])
    })
  })
}

function nameBytes(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '')
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])),
    Buffer.of(0),
  ])
}

/** Numbers of 16 bits. */
function numbers(...values: readonly number[]): Buffer {
  return Buffer.concat(values.map((value) => Buffer.of(value >> 8, value & 0xff)))
}
