/**
 * failovers - a Redis Cluster whose replicas are behind: primaries are killed and shards moved under load. Nothing that
 * was acknowledged is lost, counters are exact, a key has made one message, and writes go on within seconds.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { SHARD_SLOTS } from '../../cluster/slots/slot-map.ts'
import type { Config } from '../../src/process/config.ts'
import { type Accepted, postEmail, startLoad } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { type ClusterFleet, startClusterFleet } from '../support/service/cluster-fleet.ts'
import type { ClusterNode } from '../support/store/redis-cluster.ts'
import { moveShard } from './moves.ts'

export interface FailoverOptions {
  readonly rounds: number
  /** Shards that are moved to another primary. */
  readonly moves: number
  readonly durability: Config['durability']
  /** How far replicas are behind, ms. */
  readonly lagMs: number
  readonly say: (line: string) => void
}

export interface FailoverReport {
  readonly failovers: number
  readonly messages: number
  /** Acknowledged, and not there. */
  readonly lost: number
  /** Keys that were told of more than one message. */
  readonly doubled: number
  readonly falselyRefused: number
  /** Servers whose counter is not what was accepted. */
  readonly miscounted: readonly string[]
  /** From the kill until a message of the killed primary's shards was accepted again, ms, in order. */
  readonly writesAfterMs: readonly number[]
  /** Longest wait for an answer of each shard that was moved, ms, in order. */
  readonly stoodMs: readonly number[]
  /** Refusals of accounts on primaries that nobody had touched. */
  readonly refusedBeside: number
}

const ACCOUNTS = 12
const CLIENTS = 8
const EVERY_MS = 20
const BETWEEN = 80
const READY_MS_MAX = 120_000
const LOOK_MS = 50

/** Kills one primary after the other, each time a replica takes over; who was killed comes back as a replica. */
export async function runFailovers(options: FailoverOptions): Promise<FailoverReport> {
  const { durability, lagMs, moves, rounds, say } = options
  const fleet = await startClusterFleet({
    accounts: ACCOUNTS,
    durability,
    replicas: 2,
    lagMs,
    // The test kills once the link of the replicas is up; how old it is does not matter.
    settings: { 'cluster-replica-validity-factor': '0', 'min-replicas-to-write': '1', 'min-replicas-max-lag': '5' },
  })
  try {
    return await new Failovers(fleet, say).run(rounds, moves)
  } finally {
    await fleet.end()
  }
}

class Failovers {
  private readonly fleet: ClusterFleet
  private readonly say: (line: string) => void
  private readonly accepted: Accepted[] = []
  private readonly writesAfterMs: number[] = []
  private readonly stoodMs: number[] = []
  /** Tokens on the primary that is down, until writes go on there. */
  private touched: ReadonlySet<string> = new Set()
  private refusedBeside = 0

  constructor(fleet: ClusterFleet, say: (line: string) => void) {
    this.fleet = fleet
    this.say = say
  }

  async run(rounds: number, moves: number): Promise<FailoverReport> {
    const { httpPort: port, keys } = this.fleet
    const load = startLoad({
      port,
      token: keys,
      clients: CLIENTS,
      everyMs: EVERY_MS,
      recipient: (n) => `person${n}@example.com`,
      accepted: async (message) => void this.accepted.push(message),
      refused: ({ token, status, body }) => {
        if (this.touched.has(token)) return
        this.refusedBeside += 1
        this.say(`beside: ${status} ${body}`)
      },
    })
    for (let round = 0; round < rounds; round += 1) {
      await load.passes(BETWEEN)
      await this.failOver(round)
    }
    for (let n = 0; n < moves; n += 1) await this.move(n % ACCOUNTS)
    await load.passes(BETWEEN)
    const ledger = await load.end()
    return {
      failovers: rounds,
      messages: this.accepted.length,
      lost: await this.countLost(),
      doubled: [...ledger.told.values()].filter(({ size }) => size !== 1).length,
      falselyRefused: ledger.falselyRefused.length,
      miscounted: await this.miscounted(),
      writesAfterMs: this.writesAfterMs.toSorted((a, b) => a - b),
      stoodMs: this.stoodMs.toSorted((a, b) => a - b),
      refusedBeside: this.refusedBeside,
    }
  }

  private async move(shard: number): Promise<void> {
    const token = this.fleet.keys[shard] ?? ''
    this.touched = new Set([token])
    let isOver = false
    const moving = moveShard(this.fleet, shard).finally(() => {
      isOver = true
    })
    let worstMs = 0
    for (let wasOver = false; !wasOver; ) {
      wasOver = isOver
      const askedAtMs = performance.now()
      await this.accepts(token)
      worstMs = Math.max(worstMs, Math.round(performance.now() - askedAtMs))
    }
    await moving
    this.stoodMs.push(worstMs)
    this.say(`shard ${shard} moved: it stood for ${worstMs} ms at most`)
    this.touched = new Set()
  }

  private async failOver(round: number): Promise<void> {
    const { cluster, keys } = this.fleet
    const places = await Promise.all(keys.map((_, shard) => cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)))
    const killed = [...new Set(places)][round % new Set(places).size] as ClusterNode
    const there = keys.filter((_, shard) => places[shard] === killed)
    this.touched = new Set(there)
    const startedAtMs = performance.now()
    await killed.kill()
    await Promise.all(there.map((token) => this.accepts(token)))
    const tookMs = Math.round(performance.now() - startedAtMs)
    this.writesAfterMs.push(tookMs)
    this.say(`failover ${round + 1}: ${killed.name} killed, writes again after ${tookMs} ms`)
    await killed.start()
    await until(async () => {
      const infos = await Promise.all(cluster.nodes.map(({ client }) => client.info('replication').catch(() => '')))
      return infos.every((info) => /role:master[\s\S]*connected_slaves:2|master_link_status:up/.test(info))
    }, READY_MS_MAX)
    await this.fleet.ready()
    this.touched = new Set()
  }

  /** Sends one message until it is accepted. */
  private async accepts(token: string): Promise<void> {
    const key = `probe-${performance.now()}-${Math.random()}`
    for (;;) {
      const body = { from: 'you@simulator.test', to: ['probe@example.com'], subject: 's', text: 't' }
      const answer = await postEmail({ port: this.fleet.httpPort, token }, body, key)
      if (answer?.status === 200) {
        const { messageId } = JSON.parse(answer.body) as { messageId: string }
        this.accepted.push({ key, messageId, token })
        return
      }
      await pause(LOOK_MS)
    }
  }

  private async countLost(): Promise<number> {
    let lost = 0
    for (const { messageId, token } of this.accepted) {
      const status = await this.read(`/v1/messages/${messageId}`, token).then(({ status: one }) => one)
      if (status !== 200) lost += 1
    }
    return lost
  }

  /** What each server has used of its month is what was accepted over it: nothing lost, nothing twice. */
  private async miscounted(): Promise<string[]> {
    const found: string[] = []
    for (const token of this.fleet.keys) {
      const ids = new Set(this.accepted.filter((one) => one.token === token).map(({ messageId }) => messageId))
      const { json } = await this.read('/v1/server', token)
      const limits = (json as { limits: { period: string; used: number }[] }).limits
      const used = limits.find(({ period }) => period === 'month')?.used ?? -1
      if (used !== ids.size) found.push(`accepted ${ids.size}, counted ${used}`)
    }
    return found
  }

  private async read(path: string, token: string): Promise<{ status: number; json: unknown }> {
    const headers = { authorization: `Bearer ${token}`, connection: 'close' }
    const answer = await fetch(`http://127.0.0.1:${this.fleet.httpPort}${path}`, { headers })
    return { status: answer.status, json: await answer.json() }
  }
}

/** What was promised and did not hold. In: within how many ms writes must go on, and a moved shard must accept. */
export function failuresOfFailovers(
  report: FailoverReport,
  { writesMsMax, stoodMsMax }: { writesMsMax: number; stoodMsMax: number },
): string[] {
  const { lost, doubled, falselyRefused, miscounted, writesAfterMs, stoodMs, refusedBeside } = report
  const found: string[] = []
  if (lost > 0) found.push(`Failovers lost ${lost} acknowledged messages`)
  if (doubled > 0) found.push(`${doubled} keys made several messages`)
  if (falselyRefused > 0) found.push(`${falselyRefused} messages were refused and had come true`)
  if (miscounted.length > 0) found.push(`Counters are off: ${miscounted.join('; ')}`)
  const last = writesAfterMs.at(-1) ?? 0
  if (last > writesMsMax) found.push(`Writes went on after ${last} ms, ${writesMsMax} at most`)
  const longest = stoodMs.at(-1) ?? 0
  if (longest > stoodMsMax) found.push(`A shard that moved stood for ${longest} ms, ${stoodMsMax} at most`)
  if (refusedBeside > 0) found.push(`${refusedBeside} refusals of accounts on other primaries`)
  return found
}
