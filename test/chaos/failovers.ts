/**
 * failovers - a Redis Cluster whose replicas lag: primaries and replicas are killed or cut off and shards moved under
 * load. Nothing acknowledged is lost, counters are exact, a key leads to one message, accounts elsewhere get no
 * refusal, and writes continue within seconds.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { SHARD_SLOTS } from '../../cluster/slots/slot-map.ts'
import type { Config } from '../../src/process/config.ts'
import { type Accepted, type Load, postEmail, startLoad } from '../support/clients/ledger.ts'
import { type ClusterFleet, startClusterFleet } from '../support/service/cluster-fleet.ts'
import { wellAgain } from '../support/store/cluster-well.ts'
import type { ClusterNode } from '../support/store/redis-cluster.ts'
import { type Election, electionSince } from './elections.ts'
import { moveShard, tearMove, tearOf } from './moves.ts'
import { losePrimary, replicasOf, WAYS, type Way } from './primary-losses.ts'

export interface FailoverOptions {
  /** Primaries that are lost, by turns in each of the ways. */
  readonly rounds: number
  readonly ways: readonly Way[]
  /** Replicas that are killed. */
  readonly replicaKills: number
  /** Times that a primary and its replicas stay dead for a while. */
  readonly blackouts: number
  /** Shards that are moved to another primary. */
  readonly moves: number
  /** Shards that are moved while the source, the target or the order is lost. */
  readonly tears: number
  readonly durability: Config['durability']
  /** How far replicas are behind, ms, as `startCluster` has it. */
  readonly lagsMs: readonly number[]
  /** `cluster-node-timeout`. */
  readonly nodeTimeoutMs: number
  readonly say: (line: string) => void
}

export interface FailoverReport {
  readonly failovers: number
  readonly messages: number
  /** Acknowledged, and not there. */
  readonly lost: number
  /** Keys whose answers named more than one message. */
  readonly doubled: number
  readonly falselyRefused: number
  /** Servers whose counter is not what was accepted. */
  readonly miscounted: readonly string[]
  /** From the loss until a new message was accepted for every account of that primary, ms, in order. */
  readonly writesAfterMs: readonly number[]
  /** The part of it after the election, ms, in order, which is not the cluster's own. */
  readonly afterElectionMs: readonly number[]
  /** Elections that were not won at once. */
  readonly electionsAgain: number
  /** Longest wait for the answer of a message that was under way at the loss, ms, in order. */
  readonly inDoubtMs: readonly number[]
  /** Longest wait for an answer of each moved shard, ms, in order. */
  readonly stoodMs: readonly number[]
  /** The same of shards whose source, target or order was lost on the way. */
  readonly tornStoodMs: readonly number[]
  /** Refusals of accounts on primaries without a fault. */
  readonly refusedBeside: number
}

const ACCOUNTS = 12
const CLIENTS = 8
const EVERY_MS = 20
const BETWEEN = 80
const LOOK_MS = 50
/** Longer losses are reported in full. */
const SLOW_MS = 6_000
/** A new message is tried so often while its primary is away, and so many times at most. */
const PROBE_MS = 100
const PROBES_MAX = 600
/** Messages of others while a primary stays dead. */
const BLACKOUT = 300

/** Kills one primary after the other. Each time a replica takes over, and the killed node returns as a replica. */
export async function runFailovers(options: FailoverOptions): Promise<FailoverReport> {
  const { durability, lagsMs, nodeTimeoutMs, say } = options
  const fleet = await startClusterFleet({
    accounts: ACCOUNTS,
    durability,
    replicas: 2,
    lagsMs,
    // The test kills once the link of the replicas is up; how old it is does not matter.
    settings: {
      'cluster-node-timeout': String(nodeTimeoutMs),
      'cluster-replica-validity-factor': '0',
      'min-replicas-to-write': '1',
      'min-replicas-max-lag': '5',
    },
  })
  try {
    return await new Failovers(fleet, say).run(options)
  } finally {
    await fleet.end()
  }
}

class Failovers {
  private readonly fleet: ClusterFleet
  private readonly say: (line: string) => void
  private readonly accepted: Accepted[] = []
  private readonly writesAfterMs: number[] = []
  private readonly inDoubtMs: number[] = []
  private readonly afterElectionMs: number[] = []
  private readonly stoodMs: number[] = []
  private readonly tornStoodMs: number[] = []
  private electionsAgain = 0
  /** Tokens on the failed primary, until writes continue there. */
  private touched: ReadonlySet<string> = new Set()
  /** The end of the time for which tokens were affected, by `performance.now()`. */
  private readonly touchedUntilMs = new Map<string, number>()
  private refusedBeside = 0

  constructor(fleet: ClusterFleet, say: (line: string) => void) {
    this.fleet = fleet
    this.say = say
  }

  async run({ blackouts, moves, replicaKills, rounds, tears, ways }: FailoverOptions): Promise<FailoverReport> {
    const { httpPort: port, keys } = this.fleet
    const load = startLoad({
      port,
      token: keys,
      clients: CLIENTS,
      everyMs: EVERY_MS,
      recipient: (n) => `person${n}@example.com`,
      accepted: async (message) => void this.accepted.push(message),
      refused: ({ token, status, body, startedAtMs }) => {
        // A request that began while its primary was unreachable may be refused once that is back.
        if (this.touched.has(token) || startedAtMs < (this.touchedUntilMs.get(token) ?? 0)) return
        this.refusedBeside += 1
        const tookMs = Math.round(performance.now() - startedAtMs)
        this.say(`beside: account ${this.fleet.keys.indexOf(token)}, ${status} ${body} after ${tookMs} ms`)
      },
    })
    for (let round = 0; round < rounds; round += 1) {
      await load.passes(BETWEEN)
      await this.failOver(round, ways[round % ways.length] ?? WAYS[0])
    }
    for (let n = 0; n < replicaKills; n += 1) await this.killReplica(n, load)
    for (let n = 0; n < blackouts; n += 1) await this.blackOut(n)
    for (let n = 0; n < moves; n += 1) await this.move(n % ACCOUNTS)
    for (let n = 0; n < tears; n += 1) await this.tear(n)
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
      afterElectionMs: this.afterElectionMs.toSorted((a, b) => a - b),
      electionsAgain: this.electionsAgain,
      inDoubtMs: this.inDoubtMs.toSorted((a, b) => a - b),
      stoodMs: this.stoodMs.toSorted((a, b) => a - b),
      tornStoodMs: this.tornStoodMs.toSorted((a, b) => a - b),
      refusedBeside: this.refusedBeside,
    }
  }

  /** No primary is affected any more. */
  private leave(): void {
    for (const token of this.touched) this.touchedUntilMs.set(token, performance.now())
    this.touched = new Set()
  }

  private async move(shard: number): Promise<void> {
    const token = this.fleet.keys[shard] ?? ''
    this.touched = new Set([token])
    const worstMs = await this.longestWait(token, moveShard(this.fleet, shard))
    this.stoodMs.push(worstMs)
    this.say(`shard ${shard} moved: it stood for ${worstMs} ms at most`)
    this.leave()
  }

  /** A shard moves, and a node or order that the move needs is lost. Any primary may be affected. */
  private async tear(n: number): Promise<void> {
    const { cluster, keys } = this.fleet
    const [shard, tear] = [n % ACCOUNTS, tearOf(n)]
    this.touched = new Set(keys)
    const worstMs = await this.longestWait(keys[shard] ?? '', tearMove(this.fleet, shard, tear))
    await wellAgain(cluster)
    await this.fleet.ready()
    this.tornStoodMs.push(worstMs)
    const { which, how, step } = tear
    const when = which === 'order' ? 'killed' : `${how} once it was ${step}`
    this.say(`shard ${shard} moved, the ${which} ${when}: it stood for ${worstMs} ms at most`)
    this.leave()
  }

  /** The longest that a message of an account waited for its 200 until something is over, ms. */
  private async longestWait(token: string, something: Promise<void>): Promise<number> {
    let isOver = false
    const over = something.finally(() => {
      isOver = true
    })
    let worstMs = 0
    for (let wasOver = false; !wasOver; ) {
      wasOver = isOver
      const askedAtMs = performance.now()
      await this.accepts(token)
      worstMs = Math.max(worstMs, Math.round(performance.now() - askedAtMs))
    }
    await over
    return worstMs
  }

  private async failOver(round: number, way: Way): Promise<void> {
    const { cluster } = this.fleet
    const { lost, there } = await this.choose(round)
    this.touched = new Set(there)
    const [startedAtMs, sinceMs] = [performance.now(), Date.now()]
    const bringBack = await losePrimary(cluster, lost, way)
    const back = await Promise.all(there.map((token) => this.comesBack(token, startedAtMs)))
    const tookMs = Math.max(...back.map(({ newMs }) => newMs))
    this.writesAfterMs.push(tookMs)
    const election = electionSince(cluster, sinceMs)
    this.note(election, tookMs)
    const { lines, ...times } = election
    this.say(`failover ${round + 1}: ${lost.name} ${way}, writes again after ${tookMs} ms ${JSON.stringify(times)}`)
    if (tookMs > SLOW_MS) for (const line of lines) this.say(`  ${line}`)
    await bringBack()
    await wellAgain(cluster)
    const inDoubt = await Promise.all(back.map(({ firstMs }) => firstMs))
    this.inDoubtMs.push(Math.max(...inDoubt))
    await this.fleet.ready()
    this.leave()
  }

  private note({ tries, wonMs }: Election, tookMs: number): void {
    if (wonMs !== null) this.afterElectionMs.push(tookMs - wonMs)
    if (tries > 1) this.electionsAgain += 1
  }

  /** One primary after the other, and the tokens of the accounts that it holds. */
  private async choose(round: number): Promise<{ lost: ClusterNode; there: string[] }> {
    const { cluster, keys } = this.fleet
    const places = await Promise.all(keys.map((_, shard) => cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)))
    const lost = [...new Set(places)][round % new Set(places).size] as ClusterNode
    return { lost, there: keys.filter((_, shard) => places[shard] === lost) }
  }

  /** Nobody is refused anything for want of one replica. */
  private async killReplica(n: number, load: Load): Promise<void> {
    const { lost } = await this.choose(n)
    const [replica] = await replicasOf(this.fleet.cluster, lost)
    await replica?.kill()
    await load.passes(BETWEEN)
    await replica?.start()
    await wellAgain(this.fleet.cluster)
    this.say(`replica ${n + 1}: ${replica?.name} killed and back`)
  }

  /** A primary and its replicas stay dead: its accounts wait, no other account is affected. */
  private async blackOut(n: number): Promise<void> {
    const { cluster, keys } = this.fleet
    const { lost, there } = await this.choose(n)
    const others = keys.filter((token) => !there.includes(token))
    const dead = [...(await replicasOf(cluster, lost)), lost]
    this.touched = new Set(there)
    await Promise.all(dead.map((node) => node.kill()))
    let refused = 0
    for (let sent = 0; sent < BLACKOUT; sent += 1) {
      const [token, key] = [others[sent % others.length] ?? '', newKey()]
      if (await this.tries(token, key)) continue
      refused += 1
      await this.accepts(token, key)
    }
    this.refusedBeside += refused
    await Promise.all(dead.toReversed().map((node) => node.start()))
    await Promise.all(there.map((token) => this.accepts(token)))
    await wellAgain(cluster)
    await this.fleet.ready()
    this.leave()
    this.say(
      `blackout ${n + 1}: ${lost.name} and its replicas dead, ${refused} of ${BLACKOUT} messages of others refused`,
    )
  }

  /**
   * Tries new messages until one is accepted: `newMs` since the loss. `firstMs`: the wait of the first of them, whose
   * outcome may have been unknown, until it was accepted; by then all of them are.
   */
  private async comesBack(token: string, startedAtMs: number): Promise<{ newMs: number; firstMs: Promise<number> }> {
    let back: (ms: number) => void = () => undefined
    const cameBack = new Promise<number>((resolve) => {
      back = resolve
    })
    const sinceLoss = (): number => Math.round(performance.now() - startedAtMs)
    const probe = async (): Promise<number> => {
      const key = newKey()
      if (await this.tries(token, key)) back(sinceLoss())
      else await cameBack.then(() => this.accepts(token, key))
      return sinceLoss()
    }
    const probes: Promise<number>[] = []
    let newMs: number | null = null
    for (let n = 0; newMs === null && n < PROBES_MAX; n += 1) {
      probes.push(probe())
      newMs = await Promise.race([cameBack, pause(PROBE_MS, null)])
    }
    return { newMs: newMs ?? (await cameBack), firstMs: Promise.all(probes).then(([first = 0]) => first) }
  }

  /** Sends one message until it is accepted. */
  private async accepts(token: string, key = newKey()): Promise<void> {
    while (!(await this.tries(token, key))) await pause(LOOK_MS)
  }

  /** Sends one message. Out: whether it was accepted. */
  private async tries(token: string, key: string): Promise<boolean> {
    const body = { from: 'you@simulator.test', to: ['probe@example.com'], subject: 's', text: 't' }
    const answer = await postEmail({ port: this.fleet.httpPort, token }, body, key)
    if (answer?.status !== 200) return false
    const { messageId } = JSON.parse(answer.body) as { messageId: string }
    this.accepted.push({ key, messageId, token })
    return true
  }

  private async countLost(): Promise<number> {
    let lost = 0
    for (const { messageId, token } of this.accepted) {
      const status = await this.read(`/v1/messages/${messageId}`, token).then(({ status: one }) => one)
      if (status !== 200) lost += 1
    }
    return lost
  }

  /** The month's usage of each server equals the number accepted over it: nothing lost, nothing twice. */
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

function newKey(): string {
  return `probe-${randomUUID()}`
}

/** The broken promises. In: the time in ms within which writes must continue, and a moved shard must accept. */
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
