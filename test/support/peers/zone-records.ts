/** zone-records - the zones that tests write down, put into a real DNS server */
import type { Records } from './records.ts'
import type { Zone, ZoneRecord } from './zone.ts'

/** Copies a zone of tests into a real one. A name that times out returns SERVFAIL here, which takes less time. */
export function fillZone(zone: Zone, records: Records): void {
  for (const [name, texts] of Object.entries(records)) {
    const own = texts.filter((text) => text !== 'TIMEOUT').map(recordOf)
    if (texts.includes('TIMEOUT')) zone.fail(name, 'servfail', ...own)
    else zone.set(name, ...own)
  }
}

function recordOf(text: string): ZoneRecord {
  const [, type = '', value = ''] = /^(\S+) (.*)$/s.exec(text) ?? []
  if (type === 'TXT') return { type, data: [Buffer.from(value, 'latin1')] }
  if (type === 'MX') return { type, priority: Number.parseInt(value, 10), exchange: value.split(' ')[1] ?? '' }
  if (type === 'A' || type === 'AAAA') return { type, address: value }
  return { type: type === 'PTR' ? 'PTR' : 'CNAME', domain: value }
}
