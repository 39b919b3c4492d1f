/**
 * joint-cuts - all machines of a cluster lose their power at once: every Redis and every process, on a disk that keeps
 * only what was synced. The replicas of a primary come back before it, and one of them takes its place. At the end a
 * bit is changed in the files of these replicas.
 *
 * A 200 with DURABILITY=replica is on the disks of the primary and of one replica. After a start from its file no
 * replica knows how far it had come, so either may be elected: what only the other one had may be lost. Both have
 * everything but the last milliseconds. A damaged value is an error, never a wrong text.
 */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { seedAccounts } from '../../bench/contestants/seed.ts'
import { SHARD_SLOTS } from '../../cluster/slots/slot-map.ts'
import { type Accepted, type Load, postEmail, startLoad } from '../support/clients/ledger.ts'
import { freePort } from '../support/machine/port.ts'
import { mountPowerDisk, type PowerDisk } from '../support/machine/power-disk.ts'
import { until } from '../support/machine/until.ts'
import { FLEET_SECRET } from '../support/service/fleet.ts'
import { type Host, readinessAt, startHost } from '../support/service/host.ts'
import { wellAgain } from '../support/store/cluster-well.ts'
import { type ClusterNode, startCluster, type TestCluster } from '../support/store/redis-cluster.ts'
import { replicasOf } from './primary-losses.ts'

const DISK_MEGABYTES = 800
const PROCESSES = 2
/** DURABILITY=replica requires as many. */
const REPLICAS = 2
const ACCOUNTS = 6
const CLIENTS = 6
const EVERY_MS = 20
const BETWEEN = 60
/** Writes under way at a freeze end within this. */
const SETTLE_MS = 100
const WAIT_MS = 120_000
const READS_MAX = 100

export interface JointCutsReport {
  readonly cuts: number
  readonly acknowledged: number
  /** Acknowledged, and not there. */
  readonly lost: number
  /** Keys whose answers named more than one message. */
  readonly doubled: number
  readonly falselyRefused: number
  /** Servers whose counter is not what was accepted. */
  readonly miscounted: readonly string[]
  /** Bits changed in the file of a replica that then took over. */
  readonly flipped: number
  /** The status of the message whose value was damaged: 503, never 200 with another text. */
  readonly damagedStatus: number
}

interface Vessel {
  readonly settings: Readonly<Record<string, string>>
  host: Host
}

/** Cuts the power of everything so many times, then changes a bit. Rejects if a node or process does not come back. */
export async function runJointCuts(options: {
  readonly cuts: number
  readonly random: () => number
  readonly say: (line: string) => void
}): Promise<JointCutsReport> {
  const disk = mountPowerDisk(DISK_MEGABYTES)
  const cluster = await startCluster({
    replicas: REPLICAS,
    top: disk.dir,
    settings: { 'cluster-replica-validity-factor': '0', 'min-replicas-to-write': '1', 'min-replicas-max-lag': '5' },
  })
  const cuts = new JointCuts(disk, cluster, options)
  try {
    return await cuts.run(options.cuts)
  } finally {
    await cuts.end()
    await cluster.stop()
    disk.unmount()
  }
}

class JointCuts {
  private readonly disk: PowerDisk
  private readonly cluster: TestCluster
  private readonly random: () => number
  private readonly say: (line: string) => void
  private readonly accepted: Accepted[] = []
  private vessels: Vessel[] = []
  private keys: readonly string[] = []

  constructor(
    disk: PowerDisk,
    cluster: TestCluster,
    { random, say }: Pick<Parameters<typeof runJointCuts>[0], 'random' | 'say'>,
  ) {
    this.disk = disk
    this.cluster = cluster
    this.random = random
    this.say = say
  }

  async run(cuts: number): Promise<JointCutsReport> {
    for (let n = 0; n < PROCESSES; n += 1) this.vessels.push(await this.vessel(n))
    await this.ready()
    const { seeds } = this.cluster
    const seeding = { socketPath: '', seeds, accounts: ACCOUNTS, over: ACCOUNTS, mode: 'test' } as const
    this.keys = await seedAccounts({ ...seeding, secretKey: FLEET_SECRET })
    const load = this.begin()
    for (let n = 0; n < cuts; n += 1) {
      await load.passes(BETWEEN)
      await pause(this.random() * 1_000)
      await this.cut()
      const [lost, heir] = await this.replicaFirst(n)
      await this.startProcesses()
      this.say(`cut ${n + 1}: ${this.accepted.length} acknowledged, ${heir.name} back before ${lost.name}`)
    }
    await load.passes(BETWEEN)
    const ledger = await load.end()
    const [lost, miscounted] = [await this.countLost(), await this.miscounted()]
    const damaged = await this.damageReplica()
    return {
      cuts,
      acknowledged: this.accepted.length,
      lost,
      doubled: [...ledger.told.values()].filter(({ size }) => size !== 1).length,
      falselyRefused: ledger.falselyRefused.length,
      miscounted,
      ...damaged,
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.vessels.map(({ host }) => host.kill('SIGKILL')))
  }

  private async vessel(n: number): Promise<Vessel> {
    const dir = join(this.disk.dir, `process-${n}`)
    mkdirSync(dir)
    const settings = {
      REDIS_URL: this.cluster.seeds.slice(0, 3).join(','),
      DURABILITY: 'replica',
      SECRET_KEY: FLEET_SECRET,
      DATA_DIR: dir,
      ROLES: 'http,actors',
      HTTP_PORT: String(await freePort()),
      OPERATOR_PORT: String(await freePort()),
      MX_PORT: '0',
      SUBMISSION_PORT: '0',
      SUBMISSION_TLS_PORT: '0',
      CONTENT_STORE: 'redis',
      EDGE_RATE: '0',
      LOG_LEVEL: 'fatal',
    }
    return { settings, host: await startHost(settings, { ready: false }) }
  }

  private begin(): Load {
    return startLoad({
      port: this.vessels.map(({ settings }) => Number(settings.HTTP_PORT)),
      token: this.keys,
      clients: CLIENTS,
      everyMs: EVERY_MS,
      recipient: (n) => `person${n}@simulator.test`,
      accepted: async (message) => void this.accepted.push(message),
    })
  }

  /** Everything loses its power in the same moment. */
  private async cut(): Promise<void> {
    const { nodes } = this.cluster
    await this.disk.cut({
      freeze: async () => {
        // The processes first, so that an answer of Redis that they have not read is never acknowledged.
        for (const { host } of this.vessels) process.kill(host.pid, 'SIGSTOP')
        for (const node of nodes) node.signal('SIGSTOP')
        await pause(SETTLE_MS)
      },
      end: () => this.killAll(),
    })
  }

  private async killAll(): Promise<void> {
    await Promise.all([
      ...this.vessels.map(({ host }) => host.kill('SIGKILL')),
      ...this.cluster.nodes.map((node) => node.kill()),
    ])
  }

  /** The replicas of a primary are back before it, and one of them replaces it. Out: both. */
  private async replicaFirst(
    n: number,
    before?: (replicas: readonly ClusterNode[]) => void,
  ): Promise<[ClusterNode, ClusterNode]> {
    const { nodes } = this.cluster
    const lost = this.primaries[n % this.primaries.length] as ClusterNode
    const replicas = this.heirs.get(lost) ?? []
    before?.(replicas)
    await Promise.all(nodes.filter((node) => node !== lost).map((node) => node.start()))
    const heir = await until(async () => {
      const roles = await Promise.all(replicas.map(roleOf))
      return replicas[roles.indexOf('master')]
    }, WAIT_MS)
    await lost.start()
    await this.isWhole()
    return [lost, heir]
  }

  private primaries: readonly ClusterNode[] = []
  private readonly heirs = new Map<ClusterNode, readonly ClusterNode[]>()

  /** Resolves once every primary has its replicas, and remembers which. */
  private async isWhole(): Promise<void> {
    await wellAgain(this.cluster)
    const { nodes } = this.cluster
    const roles = await Promise.all(nodes.map(roleOf))
    this.primaries = nodes.filter((_, place) => roles[place] === 'master')
    for (const node of this.primaries) this.heirs.set(node, await replicasOf(this.cluster, node))
    // Redis does not sync the file with its role after CLUSTER REPLICATE. Another file system writes it by itself soon.
    execFileSync('sync', ['--file-system', this.disk.dir])
  }

  private async startProcesses(): Promise<void> {
    for (const vessel of this.vessels) vessel.host = await startHost(vessel.settings, { ready: false })
    await this.ready()
  }

  private async ready(): Promise<void> {
    await this.isWhole()
    await until(async () => {
      for (const { host } of this.vessels) if (!host.isRunning()) throw new Error(`A process ended: ${host.said()}`)
      const ports = this.vessels.map(({ settings }) => Number(settings.OPERATOR_PORT))
      return (await Promise.all(ports.map(readinessAt))).every((status) => status === 200)
    }, WAIT_MS)
  }

  /** A bit changes in the file of a replica while nothing runs, and the replica takes over. */
  private async damageReplica(): Promise<Pick<JointCutsReport, 'flipped' | 'damagedStatus'>> {
    const mark = `mark${randomUUID()}`
    const [token = ''] = this.keys
    const body = { from: 'you@simulator.test', to: ['mark@simulator.test'], subject: mark, text: 'Marked' }
    const port = Number(this.vessels[0]?.settings.HTTP_PORT)
    const answer = await postEmail({ port, token }, body, randomUUID())
    const { messageId } = JSON.parse(answer?.body ?? '{}') as { messageId: string }
    const holder = await this.cluster.primaryOf(SHARD_SLOTS[0] ?? 0)
    await this.isWhole()
    await this.killAll()
    let flipped = 0
    const [lost, heir] = await this.replicaFirst(this.primaries.indexOf(holder), (replicas) => {
      for (const { dir } of replicas) flipped += flipIn(join(dir, 'appendonlydir'), mark)
    })
    await this.startProcesses()
    const damaged = await this.read(`/v1/messages/${messageId}`, token)
    const isWrong = damaged.status === 200 && (damaged.json as { subject: string }).subject !== mark
    const [other] = this.accepted.filter((one) => one.token === token)
    const beside = await this.read(`/v1/messages/${other?.messageId}`, token)
    this.say(`bit: ${flipped} changed at ${heir.name} for ${lost.name}: ${damaged.status}, others ${beside.status}`)
    if (beside.status !== 200) throw new Error(`Another message of the shard answers ${beside.status}`)
    return { flipped, damagedStatus: isWrong ? 0 : damaged.status }
  }

  private async countLost(): Promise<number> {
    let lost = 0
    for (let at = 0; at < this.accepted.length; at += READS_MAX) {
      const some = this.accepted.slice(at, at + READS_MAX)
      const found = await Promise.all(some.map((one) => this.read(`/v1/messages/${one.messageId}`, one.token)))
      lost += found.filter(({ status }) => status !== 200).length
    }
    return lost
  }

  /** The month's usage of each server equals the number accepted over it. */
  private async miscounted(): Promise<string[]> {
    const found: string[] = []
    for (const token of this.keys) {
      const ids = new Set(this.accepted.filter((one) => one.token === token).map(({ messageId }) => messageId))
      const { json } = await this.read('/v1/server', token)
      const { limits } = json as { limits: { period: string; used: number }[] }
      const used = limits.find(({ period }) => period === 'month')?.used ?? -1
      if (used !== ids.size) found.push(`accepted ${ids.size}, counted ${used}`)
    }
    return found
  }

  private async read(path: string, token: string): Promise<{ status: number; json: unknown }> {
    const headers = { authorization: `Bearer ${token}`, connection: 'close' }
    const answer = await fetch(`http://127.0.0.1:${this.vessels[0]?.settings.HTTP_PORT}${path}`, { headers })
    return { status: answer.status, json: await answer.json() }
  }
}

async function roleOf({ client }: ClusterNode): Promise<string> {
  const info = await client.info('replication').catch(() => '')
  return /role:(\w+)/.exec(info)?.[1] ?? ''
}

/** Changes a bit of a text wherever it is in the files of a directory. Out: how often. */
function flipIn(dir: string, text: string): number {
  let flipped = 0
  for (const name of readdirSync(dir)) {
    const bytes = readFileSync(join(dir, name))
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
      bytes[at + 5] = (bytes[at + 5] ?? 0) ^ 1
      flipped += 1
    }
    writeFileSync(join(dir, name), bytes)
  }
  return flipped
}

/** The broken promises. */
export function failuresOfJointCuts(report: JointCutsReport): string[] {
  const { damagedStatus, doubled, falselyRefused, flipped, lost, miscounted } = report
  const found: string[] = []
  if (lost > 0) found.push(`Joint cuts lost ${lost} acknowledged messages`)
  if (doubled > 0) found.push(`${doubled} keys made several messages`)
  if (falselyRefused > 0) found.push(`${falselyRefused} messages were refused and had come true`)
  if (miscounted.length > 0) found.push(`Counters are off: ${miscounted.join('; ')}`)
  if (flipped === 0) found.push('No bit was changed')
  if (damagedStatus !== 503) found.push(`A damaged value answered ${damagedStatus}, not 503`)
  return found
}
