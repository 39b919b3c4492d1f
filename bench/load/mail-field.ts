/**
 * mail-field - receiving domains on the loopback: 20 names, each with a mail server on its own address
 *
 * One listener serves all addresses; to the product they are 20 sites, as each name's mail server has its own name.
 */

import { startZone, type Zone } from '../../test/support/peers/zone.ts'
import { formatPlace, PLACE } from './message.ts'

const SITES = 20

export interface Field {
  readonly zone: Zone
  readonly mx: { readonly dnsServer: string; readonly port: number }
  readonly recipients: { readonly template: string; readonly count: number }
  close(): Promise<void>
}

/** Opens it over a server that listens on `port` of every address. */
export async function openField(port: number): Promise<Field> {
  const zone = await startZone()
  for (let n = 0; n < SITES; n += 1) addSite(zone, `s${formatPlace(n)}.example.net`, `127.0.90.${n + 1}`)
  return {
    zone,
    mx: { dnsServer: zone.server, port },
    recipients: { template: `person@s${PLACE}.example.net`, count: SITES },
    close: () => zone.close(),
  }
}

/** A domain whose only mail server is at an address. */
export function addSite(zone: Zone, domain: string, address: string): void {
  zone.set(domain, { type: 'MX', exchange: `mx.${domain}`, priority: 10 })
  zone.set(`mx.${domain}`, { type: 'A', address })
}
