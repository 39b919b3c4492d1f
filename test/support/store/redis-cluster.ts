/** redis-cluster - a real Redis Cluster for one test file: primaries and replicas, each a process, on the loopback */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePorts } from '../machine/port.ts'
import { until } from '../machine/until.ts'
import { type NodeProxy, startNodeProxy, type Way } from './node-proxy.ts'

const SLOTS = 16_384
const READY_MS_MAX = 60_000
const NODE_TIMEOUT_MS = 2_000
const ASK_MS_MAX = 5_000

/** As PEM. */
export interface Secure {
  readonly key: string
  readonly cert: string
}

export interface ClusterNode {
  readonly port: number
  /** As the cluster names it. */
  readonly name: string
  /** A client of this node alone, past any proxy. */
  readonly client: Redis
  /** Its directory. */
  readonly dir: string
  /** Its log output. */
  log(): string
  /** SIGKILL; resolves once it has gone. */
  kill(): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Starts it again on the same files. */
  start(): Promise<void>
}

export interface TestCluster {
  /** Addresses of all nodes. */
  readonly seeds: readonly string[]
  /** The first primaries, then the replicas. */
  readonly nodes: readonly ClusterNode[]
  /** The node that has the slot of a key now. If several claim it, the one with the highest epoch. */
  primaryOf(slot: number): Promise<ClusterNode>
  /**
   * Cuts a node off from all others, and from clients too with `clients`, until `heal`; only with `lagsMs`.
   * Connections of nodes end, those of clients fall silent.
   */
  isolate(node: ClusterNode, options: { clients: boolean }): void
  heal(): void
  stop(): Promise<void>
}

/**
 * Starts it and waits until every node reports it as complete.
 *
 * @param options.settings further settings by name, which win
 */
export async function startCluster({
  primaries = 3,
  replicas = 0,
  lagsMs = [],
  settings = {},
  secure = null,
  top = process.env.STORES_DIR ?? tmpdir(),
}: {
  primaries?: number
  replicas?: number
  /**
   * The delays of nodes as replicas: the first primaries, the first replica of each, the second ones, and from the
   * beginning again. With any delay every node is behind a proxy.
   */
  lagsMs?: readonly number[]
  settings?: Record<string, string>
  /** For every node, with its own certificate as authority: TLS for clients and between nodes, and nothing else. */
  secure?: Secure | null
  /** Where its directory is made. */
  top?: string
} = {}): Promise<TestCluster> {
  const dir = mkdtempSync(join(top, 'sendwright-cluster-'))
  const count = primaries * (1 + replicas)
  const first = await freePorts(4 * count)
  const isBehind = lagsMs.length > 0
  const nodes = Array.from({ length: count }, (_, n) => {
    const [port, bus] = [first + n, first + count + n]
    const hidden = isBehind ? 2 * count : 0
    return makeNode({ dir, port, bus, own: port + hidden, ownBus: bus + hidden, settings, secure })
  })
  const network = new ClusterNetwork(nodes)
  const lags = nodes.map((_, n) => lagsMs[Math.floor(n / primaries) % lagsMs.length] ?? 0)
  if (isBehind) await network.open(lags)
  const endWithUs = (): void => {
    for (const { signal } of nodes) signal('SIGKILL')
  }
  process.once('exit', endWithUs)
  await Promise.all(nodes.map(({ start }) => start()))
  await meet(nodes, { primaries, first, count })
  await network.name()
  return {
    seeds: nodes.map(({ port }) => `${secure === null ? 'redis' : 'rediss'}://127.0.0.1:${port}`),
    nodes,
    primaryOf: (slot) => primaryOf(nodes, slot),
    isolate: (node, { clients }) => network.cut(node, clients),
    heal: () => network.cut(null, false),
    async stop() {
      for (const { client } of nodes) client.disconnect()
      network.close()
      await Promise.all(nodes.map(({ kill }) => kill()))
      process.removeListener('exit', endWithUs)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** The proxies in front of the nodes: replicas receive later, and a node can be cut off. */
class ClusterNetwork {
  private readonly nodes: readonly ClusterNode[]
  private readonly proxies: NodeProxy[] = []
  /** Names of the nodes among themselves. */
  private ids = new Map<string, ClusterNode>()
  private apart: { readonly node: ClusterNode; readonly clients: boolean } | null = null

  constructor(nodes: readonly ClusterNode[]) {
    this.nodes = nodes
  }

  /** Is in front of the nodes, whose own ports are twice as high. In: the delay of each as a replica, in ms. */
  async open(lagsMs: readonly number[]): Promise<void> {
    const count = this.nodes.length
    const lagOf = new Map(this.nodes.map(({ port }, n) => [String(port + 2 * count), lagsMs[n] ?? 0]))
    for (const node of this.nodes) {
      const clients = {
        port: node.port,
        // A replica announces its own port with its second command.
        peerOf: (data: Buffer, known: string) =>
          known || (LISTENS.exec(data.subarray(0, 512).toString('latin1'))?.[1] ?? ''),
        wayOf: (peer: string) => this.wayOf(node, peer),
        lateMs: (peer: string) => lagOf.get(peer) ?? 0,
      }
      const bus = {
        port: node.port + count,
        peerOf: (data: Buffer, known: string) => known || data.subarray(SENDER_AT, SENDER_AT + 40).toString('latin1'),
        wayOf: (peer: string) => this.busWayOf(node, peer),
        lateMs: () => 0,
      }
      for (const one of [clients, bus]) this.proxies.push(await startNodeProxy({ ...one, to: one.port + 2 * count }))
    }
  }

  /** Asks the nodes what they are called. */
  async name(): Promise<void> {
    for (const node of this.nodes) this.ids.set(String(await node.client.call('CLUSTER', 'MYID')), node)
  }

  cut(node: ClusterNode | null, clients: boolean): void {
    this.apart = node === null ? null : { node, clients }
    for (const proxy of this.proxies) proxy.look()
  }

  close(): void {
    for (const proxy of this.proxies) proxy.close()
  }

  private wayOf(node: ClusterNode, peer: string): Way {
    if (node !== this.apart?.node) return 'open'
    if (peer !== '') return 'cut'
    return this.apart.clients ? 'held' : 'open'
  }

  private busWayOf(node: ClusterNode, sender: string): Way {
    const { apart } = this
    return apart !== null && (node === apart.node || this.ids.get(sender) === apart.node) ? 'cut' : 'open'
  }
}

const LISTENS = /listening-port\r\n\$\d+\r\n(\d+)/
/** Where in a message between nodes its sender is named (`clusterMsg` of cluster.h). */
const SENDER_AT = 40

/** The asked node itself. */
async function primaryOf(nodes: readonly ClusterNode[], slot: number): Promise<ClusterNode> {
  let best: { node: ClusterNode; epoch: number } | null = null
  for (const node of nodes) {
    const text = (await node.client.call('CLUSTER', 'NODES').catch(() => '')) as string
    const line = text.split('\n').find((one) => one.includes('myself,master')) ?? ''
    const [, , , , , , epoch, , ...ranges] = line.split(' ')
    const has = ranges.some((range) => {
      const [from = 0, to = from] = range.split('-').map(Number)
      return slot >= from && slot <= to
    })
    if (has && Number(epoch) > (best?.epoch ?? -1)) best = { node, epoch: Number(epoch) }
  }
  if (best === null) throw new Error(`Nobody has slot ${slot}`)
  return best.node
}

async function meet(
  nodes: readonly ClusterNode[],
  { primaries, first, count }: { primaries: number; first: number; count: number },
): Promise<void> {
  const [one] = nodes
  if (one === undefined) return
  const share = Math.ceil(SLOTS / primaries)
  for (const [n, { client }] of nodes.entries()) {
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', n + 1)
    if (n < primaries) await client.call('CLUSTER', 'ADDSLOTSRANGE', n * share, Math.min(SLOTS, (n + 1) * share) - 1)
  }
  for (const { port } of nodes.slice(1))
    await one.client.call('CLUSTER', 'MEET', '127.0.0.1', port, first + count + (port - first))
  await until(async () => {
    const known = await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'NODES') as Promise<string>))
    return known.every((text) => text.trim().split('\n').length === count && !text.includes('handshake'))
  }, READY_MS_MAX)
  for (const [n, { client }] of nodes.slice(primaries).entries()) {
    const id = (await nodes[n % primaries]?.client.call('CLUSTER', 'MYID')) as string
    await client.call('CLUSTER', 'REPLICATE', id)
  }
  await until(async () => {
    const infos = await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'INFO') as Promise<string>))
    const links = await Promise.all(nodes.slice(primaries).map(({ client }) => client.info('replication')))
    return (
      infos.every((text) => text.includes('cluster_state:ok')) &&
      links.every((text) => text.includes('master_link_status:up'))
    )
  }, READY_MS_MAX)
}

function makeNode({
  dir,
  port,
  bus,
  own: ownPort,
  ownBus,
  settings,
  secure,
}: {
  dir: string
  /** As the others report it. */
  port: number
  bus: number
  /** Where it listens. */
  own: number
  ownBus: number
  settings: Record<string, string>
  secure: Secure | null
}): ClusterNode {
  const own = join(dir, String(port))
  mkdirSync(own)
  const ports = {
    port: String(ownPort),
    'cluster-port': String(ownBus),
    'cluster-announce-port': String(port),
    'cluster-announce-bus-port': String(bus),
  }
  const all = { ...BASE, dir: own, ...ports, ...(secure !== null && secureSettings(own, secure, ports)), ...settings }
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])
  const client = new Redis({
    port: ownPort,
    host: '127.0.0.1',
    maxRetriesPerRequest: 0,
    // A client of a frozen node must not freeze itself.
    commandTimeout: ASK_MS_MAX,
    retryStrategy: () => 200,
    ...(secure !== null && { tls: { ca: secure.cert } }),
  })
  client.on('error', () => undefined)
  let child: ChildProcess | null = null
  return {
    port,
    name: `127.0.0.1:${port}`,
    client,
    dir: own,
    log: () => readFileSync(join(own, 'redis.log'), 'utf8'),
    async kill() {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
    signal: (signal) => void child?.kill(signal),
    async start() {
      const output = openSync(join(own, 'redis.log'), 'a')
      child = spawn('redis-server', args, { cwd: own, stdio: ['ignore', output, output] })
      closeSync(output)
      await once(child, 'spawn')
      await until(
        () =>
          client.ping().then(
            () => true,
            () => false,
          ),
        READY_MS_MAX,
      )
    },
  }
}

/** The port of the others becomes the one for TLS. */
function secureSettings(dir: string, { key, cert }: Secure, ports: Record<string, string>): Record<string, string> {
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  writeFileSync(keyFile, key)
  writeFileSync(certFile, cert)
  return {
    port: '0',
    'tls-port': ports.port ?? '',
    'cluster-announce-tls-port': ports['cluster-announce-port'] ?? '',
    'tls-cluster': 'yes',
    'tls-replication': 'yes',
    'tls-auth-clients': 'no',
    'tls-key-file': keyFile,
    'tls-cert-file': certFile,
    'tls-ca-cert-file': certFile,
  }
}

const BASE: Readonly<Record<string, string>> = {
  bind: '127.0.0.1',
  'cluster-enabled': 'yes',
  'cluster-node-timeout': String(NODE_TIMEOUT_MS),
  'cluster-require-full-coverage': 'no',
  save: '',
  appendonly: 'yes',
  appendfsync: 'always',
  'no-appendfsync-on-rewrite': 'no',
  'auto-aof-rewrite-min-size': '268435456',
  'maxmemory-policy': 'noeviction',
  'repl-diskless-sync-delay': '0',
}
