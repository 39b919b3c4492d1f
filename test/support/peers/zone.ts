/**
 * zone - a real DNS server on the loopback (UDP and TCP on one port) whose records a test sets.
 *
 * A name with records of another type answers "no data", an unknown name NXDOMAIN. An alias is followed, as a resolver
 * does. Answers that are too large for UDP are sent over TCP. `fail` makes a name answer SERVFAIL, REFUSED, cut off or
 * not at all. `asked` lists the questions, so that a test can prove that none was asked.
 */

import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import dns2 from 'dns2'
import { freePort } from '../machine/port.ts'
import { type AnswerSection, encodeAnswer, encodeSections, type ZoneRecord } from './dns-answer.ts'

export type { ZoneRecord } from './dns-answer.ts'

const TYPE_NAMES = { 1: 'A', 2: 'NS', 5: 'CNAME', 12: 'PTR', 15: 'MX', 16: 'TXT', 28: 'AAAA', 52: 'TLSA' } as Record<
  number,
  string
>
const RCODES = { servfail: 2, nxdomain: 3, refused: 5 }
/** Aliases that are followed; a resolver gives up some time. */
const ALIASES_MAX = 16
/** RFC 1035 2.3.4. */
const UDP_BYTES_MAX = 512

/** `truncated`: cut off, over TCP too. */
export type ZoneFailure = 'servfail' | 'refused' | 'timeout' | 'truncated'

export interface Zone {
  /** `127.0.0.1:port`, as a resolver takes it. */
  readonly server: string
  readonly port: number
  /** Questions so far as `TYPE name`. */
  readonly asked: string[]
  /** Replaces the records of a name; none = the name exists without records. */
  set(name: string, ...records: ZoneRecord[]): void
  /**
   * Replaces the records of a name as soon as its addresses have been returned once. The next question gets the new
   * ones.
   */
  rebind(name: string, ...records: ZoneRecord[]): void
  /** Removes a name: NXDOMAIN again. */
  remove(name: string): void
  /** Makes a name fail, except for the types of `records`. */
  fail(name: string, how: ZoneFailure, ...records: ZoneRecord[]): void
  /** The records of names that are not set. Without it they do not exist. */
  fill(records: (name: string, type: string) => readonly ZoneRecord[]): void
  /** The answer over TCP to the questions for which it has sections. */
  flood(sections: (name: string, type: string) => readonly AnswerSection[] | null): void
  /** The answers about these names, and those under them, are validated. */
  sign(...names: string[]): void
  /** Answers come so much later from now on. */
  slow(ms: number): void
  close(): Promise<void>
}

interface Name {
  readonly records: readonly ZoneRecord[]
  readonly failure: ZoneFailure | null
}

/** Starts a zone without names. */
export async function startZone(): Promise<Zone> {
  const names = new Map<string, Name>()
  const rebound = new Map<string, Name>()
  const asked: string[] = []
  let fill: ((name: string, type: string) => readonly ZoneRecord[]) | null = null
  let flood: ((name: string, type: string) => readonly AnswerSection[] | null) | null = null
  const signed = new Set<string>()
  let lateMs = 0
  const port = await freePort()
  const nameOf = (name: string, type: string): Name | undefined =>
    names.get(name.toLowerCase()) ?? (fill === null ? undefined : { records: fill(name, type), failure: null })
  const isSigned = (name: string): boolean => [...signed].some((one) => name === one || name.endsWith(`.${one}`))
  const server = dns2.createServer({
    udp: true,
    tcp: true,
    handle: async (request, send, peer) => {
      const question = request.questions[0] as { name: string; type: number; class: number }
      const type = TYPE_NAMES[question.type] ?? String(question.type)
      asked.push(`${type} ${question.name.toLowerCase()}`)
      const sections = flood?.(question.name.toLowerCase(), type) ?? null
      const found = follow(question.name, type, nameOf)
      if (lateMs > 0) await delay(lateMs)
      if (found.failure === 'timeout') return
      const code = found.failure === null || found.failure === 'truncated' ? 0 : RCODES[found.failure]
      const path = [question, ...found.answers].map(({ name }) => name.toLowerCase())
      const isSecure = path.every(isSigned)
      const answer = { id: (request.header as { id: number }).id, question, code, isSecure }
      const whole =
        sections === null
          ? encodeAnswer({ ...answer, isTruncated: false, answers: found.answers })
          : encodeSections(answer, sections)
      const isCut = found.failure === 'truncated' || (!(peer instanceof Socket) && whole.length > UDP_BYTES_MAX)
      send((isCut ? encodeAnswer({ ...answer, isTruncated: true, answers: [] }) : whole) as never)
      const next = type === 'A' ? rebound.get(question.name.toLowerCase()) : undefined
      if (next !== undefined) names.set(question.name.toLowerCase(), next)
    },
  })
  await server.listen({ udp: { port, address: '127.0.0.1' }, tcp: { port, address: '127.0.0.1' } })
  return {
    server: `127.0.0.1:${port}`,
    port,
    asked,
    set: (name, ...records) => names.set(name.toLowerCase(), { records, failure: null }),
    rebind: (name, ...records) => rebound.set(name.toLowerCase(), { records, failure: null }),
    remove: (name) => names.delete(name.toLowerCase()),
    fail: (name, failure, ...records) => names.set(name.toLowerCase(), { records, failure }),
    fill: (records) => {
      fill = records
    },
    flood: (sections) => {
      flood = sections
    },
    sign: (...names) => {
      for (const name of names) signed.add(name)
    },
    slow: (ms) => {
      lateMs = ms
    },
    close: async () => {
      await server.close()
    },
  }
}

interface Found {
  readonly answers: readonly { readonly name: string; readonly record: ZoneRecord }[]
  readonly failure: keyof typeof RCODES | ZoneFailure | null
}

/** The records of a name and type, and the target of its alias. */
function follow(asked: string, type: string, nameOf: (name: string, type: string) => Name | undefined): Found {
  const answers: { name: string; record: ZoneRecord }[] = []
  let name = asked
  for (let left = ALIASES_MAX; left > 0; left -= 1) {
    const entry = nameOf(name, type)
    if (entry === undefined) return { answers, failure: 'nxdomain' }
    const own = answersOf(entry.records, type)
    for (const record of own) answers.push({ name, record })
    if (own.length === 0) return { answers, failure: entry.failure }
    const alias = type === 'CNAME' ? undefined : own.find((record) => record.type === 'CNAME')
    if (alias?.type !== 'CNAME') break
    name = alias.domain
  }
  return { answers, failure: null }
}

function answersOf(records: readonly ZoneRecord[], type: string): readonly ZoneRecord[] {
  return records.filter((record) => record.type === type || record.type === 'CNAME')
}
