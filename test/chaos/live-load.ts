/**
 * live-load - mail to slow receivers, sent continuously through a fleet, and the received mail compared with the
 * accepted one.
 */
import { Redis } from 'ioredis'
import { shardTag } from '../../cluster/keyspace.ts'
import { parseKey } from '../../src/http/key.ts'
import { type Load, startLoad } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { startZone, type Zone } from '../support/peers/zone.ts'
import { verifyDomain } from '../support/service/crash-live.ts'
import type { Fleet } from '../support/service/fleet.ts'
import { type SlowMx, startSlowMx } from './slow-mx.ts'

/** The results of the mail. */
export interface Taken {
  readonly messages: number
  /** Accepted, taken by no receiver, and not waiting for an attempt. */
  readonly lost: number
  /** Still in the queue when the time to settle was over. */
  readonly waiting: number
  /** Taken more often than the lost answers explain. */
  readonly doubled: readonly string[]
  /** Received again because the first answer was lost. */
  readonly unheard: number
  readonly falselyRefused: number
  readonly refused: number
}

export interface Receivers {
  readonly zone: Zone
  readonly mx: SlowMx
  /** How a service reaches them. */
  readonly settings: Readonly<Record<string, string>>
  close(): Promise<void>
}

const SITES = 8
/** Some ten messages a second: receivers that are slow take that many. */
const CLIENTS = 4
const EVERY_MS = 400
/** After the final dot. */
const ANSWER_MS_MAX = 2_500
const SETTLE_MS_MAX = 300_000
const DOMAIN = 'acme.example'

/** Starts receivers whose answers take as long as `random` returns. */
export async function openReceivers(random: () => number): Promise<Receivers> {
  const [zone, mx] = [await startZone(), await startSlowMx(() => random() * ANSWER_MS_MAX)]
  // Each is a separate site, because one alone would receive the queue only slowly.
  for (let n = 0; n < SITES; n += 1) {
    zone.set(`d${n}.example`, { type: 'MX', exchange: `mx.d${n}.example`, priority: 10 })
    zone.set(`mx.d${n}.example`, { type: 'A', address: '127.0.0.1' })
  }
  return {
    zone,
    mx,
    settings: { DNS_SERVERS: zone.server, DELIVERY_PORT: String(mx.port), PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' },
    async close() {
      mx.close()
      await zone.close()
    },
  }
}

export class LiveLoad {
  /** The hash tag of the sending account. */
  readonly shard: string
  private readonly redis: Redis
  private readonly receivers: Receivers
  private readonly load: Load

  private constructor(fleet: Fleet, receivers: Receivers, ports: readonly number[]) {
    const { token } = fleet.firstRun.liveServer
    this.shard = shardTag(parseKey(token)?.shard ?? 0)
    this.redis = new Redis({ path: fleet.redis.socketPath })
    this.receivers = receivers
    this.load = startLoad({
      port: ports,
      token,
      clients: CLIENTS,
      everyMs: EVERY_MS,
      from: `shop@${DOMAIN}`,
      recipient: (n) => `person${n}@d${n % SITES}.example`,
    })
  }

  /** Begins to send from the live server of the fleet's first account. */
  static async begin(fleet: Fleet, receivers: Receivers): Promise<LiveLoad> {
    const ports = fleet.with('http').map(({ httpPort }) => httpPort)
    await verifyDomain(ports[0] ?? 0, fleet.firstRun, { zone: receivers.zone, domain: DOMAIN })
    return new LiveLoad(fleet, receivers, ports)
  }

  /** Waits until so many more messages have been begun. */
  passes(count: number): Promise<void> {
    return this.load.passes(count)
  }

  /** Sends no more, waits until everything accepted was received, and counts. */
  async settle(): Promise<Taken> {
    const { told, falselyRefused, refusals } = await this.load.end()
    const all = new Map<string, { copies: number; unheard: number }>()
    await until(async () => {
      all.clear()
      for (const { recipient, isHeard } of this.receivers.mx.copies) {
        const one = all.get(recipient) ?? { copies: 0, unheard: 0 }
        all.set(recipient, { copies: one.copies + 1, unheard: one.unheard + (isHeard === false ? 1 : 0) })
      }
      return all.size >= told.size && (await this.waiting()) === 0
    }, SETTLE_MS_MAX).catch(() => undefined)
    const waiting = await this.waiting()
    this.redis.disconnect()
    return {
      messages: told.size,
      lost: Math.max(0, told.size - all.size - waiting),
      waiting,
      doubled: [...all].filter(([, { copies, unheard }]) => copies - unheard > 1).map(([recipient]) => recipient),
      unheard: [...all.values()].reduce((sum, { copies, unheard }) => sum + Math.min(unheard, copies - 1), 0),
      falselyRefused: falselyRefused.length,
      refused: refusals.filter(({ status }) => status === 503).length,
    }
  }

  private async waiting(): Promise<number> {
    const lanes = Array.from({ length: SITES }, (_, n) => `${this.shard}:due:deliver/d${n}.example`)
    const counts = await Promise.all(lanes.map((lane) => this.redis.zcard(lane)))
    return counts.reduce((sum, count) => sum + count, 0)
  }
}
