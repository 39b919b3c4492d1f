/**
 * receiving - a service that receives at an address, and the clients that bring it mail
 */

import { setTimeout as delay } from 'node:timers/promises'
import { openDialog } from '../../test/support/peers/smtp-dialog.ts'
import type { BenchStore } from '../store.ts'
import { startWholeService, type WholeService } from './whole-service.ts'

const PARSED_MS_MAX = 600_000
const LOOK_MS = 200

/** A service that receives. */
export interface Receiving {
  readonly service: WholeService
  readonly address: string
  /** Resolves once so many mails were parsed since its start. */
  haveParsed(mails: number): Promise<void>
}

/** A mail to send: its sender, the text after the plus sign of the address ('' for none), and its bytes. */
export interface Brought {
  readonly sender: string
  readonly plus: string
  readonly raw: string | Buffer
}

/** Starts it on a store. */
export async function startReceiving(store: BenchStore, dnsServer: string): Promise<Receiving> {
  const service = await startWholeService(store, { DNS_SERVERS: dnsServer })
  const most = 1_000_000_000
  const limits = { inboundPerMinuteLimit: most, testPerMinuteLimit: most, testMonthlyCap: most }
  await service.call('PATCH', `/v1/operator/accounts/${service.accountId}`, service.operator, limits)
  const stream = { kind: 'inbound', name: 'Mail' }
  const made = (await service.call('POST', '/v1/streams', service.live, stream)) as { inboundAddress: string }
  return {
    service,
    address: made.inboundAddress,
    // Asking costs the service a few milliseconds, so that it is done seldom.
    async haveParsed(mails) {
      const deadlineMs = performance.now() + PARSED_MS_MAX
      while ((await parsedBy(service)) !== mails) {
        if (performance.now() > deadlineMs) throw new Error(`Of ${mails} mails not all were parsed`)
        await delay(LOOK_MS)
      }
    },
  }
}

async function parsedBy({ operatorPort }: WholeService): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${operatorPort}/metrics`)).text()
  return [...page.matchAll(/^sendwright_parsed_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
}

/** Brings mail over one connection, one after the other. Throws Error if one is refused. */
export async function bring({ service, address }: Receiving, mails: Iterable<Brought>): Promise<void> {
  const dialog = await openDialog(service.mxPort)
  try {
    await dialog.say('EHLO far.example')
    for (const { sender, plus, raw } of mails) {
      const [localPart, domain] = address.split('@')
      await dialog.say(`MAIL FROM:<${sender}>`)
      await dialog.say(`RCPT TO:<${localPart}${plus === '' ? '' : `+${plus}`}@${domain}>`)
      await dialog.say('DATA')
      dialog.write(raw)
      const reply = await dialog.say('.')
      if (!reply.startsWith('250')) throw new Error(reply)
    }
  } finally {
    dialog.end()
  }
}
