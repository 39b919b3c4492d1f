/**
 * zone - a real DNS server on the loopback (UDP and TCP on one port) whose records a test sets.
 *
 * A name with records of another type answers "no data", an unknown name NXDOMAIN; `fail` makes a name answer SERVFAIL or
 * nothing at all. `asked` lists the questions, so that a test can prove that none was asked.
 */

import dns2 from 'dns2'
import { freePort } from '../machine/port.ts'

const TYPE_NAMES = { 1: 'A', 2: 'NS', 5: 'CNAME', 12: 'PTR', 15: 'MX', 16: 'TXT', 28: 'AAAA' } as Record<number, string>
const RCODE_SERVFAIL = 2
const RCODE_NXDOMAIN = 3

export type ZoneRecord =
  | { type: 'A' | 'AAAA'; address: string }
  | { type: 'CNAME' | 'PTR'; domain: string }
  | { type: 'NS'; ns: string }
  | { type: 'MX'; exchange: string; priority: number }
  | { type: 'TXT'; data: string | string[] }

export interface Zone {
  /** `127.0.0.1:port`, as a resolver takes it. */
  readonly server: string
  readonly port: number
  /** Questions so far as `TYPE name`. */
  readonly asked: string[]
  /** Replaces the records of a name; none = the name exists without records. */
  set(name: string, ...records: ZoneRecord[]): void
  /** Replaces the records of a name as soon as its addresses have been told once: whoever asks again is told others. */
  rebind(name: string, ...records: ZoneRecord[]): void
  /** Removes a name: NXDOMAIN again. */
  remove(name: string): void
  fail(name: string, how: 'servfail' | 'timeout'): void
  close(): Promise<void>
}

/** Starts a zone without names. */
export async function startZone(): Promise<Zone> {
  const names = new Map<string, ZoneRecord[] | 'servfail' | 'timeout'>()
  const rebound = new Map<string, ZoneRecord[]>()
  const asked: string[] = []
  const port = await freePort()
  const server = dns2.createServer({
    udp: true,
    tcp: true,
    handle: (request, send) => {
      const response = dns2.Packet.createResponseFromRequest(request)
      const question = request.questions[0] as { name: string; type: number; class: number }
      const type = TYPE_NAMES[question.type] ?? String(question.type)
      asked.push(`${type} ${question.name.toLowerCase()}`)
      const entry = names.get(question.name.toLowerCase())
      if (entry === 'timeout') return
      if (entry === undefined) response.header.rcode = RCODE_NXDOMAIN
      else if (entry === 'servfail') response.header.rcode = RCODE_SERVFAIL
      else
        for (const one of answersOf(entry, type))
          response.answers.push({ ...question, ttl: 60, ...toRdata(one) } as never)
      send(response)
      const next = type === 'A' ? rebound.get(question.name.toLowerCase()) : undefined
      if (next !== undefined) names.set(question.name.toLowerCase(), next)
    },
  })
  await server.listen({ udp: { port, address: '127.0.0.1' }, tcp: { port, address: '127.0.0.1' } })
  return {
    server: `127.0.0.1:${port}`,
    port,
    asked,
    set: (name, ...records) => names.set(name.toLowerCase(), records),
    rebind: (name, ...records) => rebound.set(name.toLowerCase(), records),
    remove: (name) => names.delete(name.toLowerCase()),
    fail: (name, how) => names.set(name.toLowerCase(), how),
    close: async () => {
      await server.close()
    },
  }
}

function answersOf(records: readonly ZoneRecord[], type: string): readonly ZoneRecord[] {
  return records.filter((record) => record.type === type || record.type === 'CNAME')
}

function toRdata(record: ZoneRecord): object {
  const type = Number(Object.keys(TYPE_NAMES).find((key) => TYPE_NAMES[Number(key)] === record.type))
  return { ...record, type }
}
