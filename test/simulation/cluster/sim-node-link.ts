/** sim-node-link - what one process has of one node of a cluster in memory: its requests, its clock, its gate */
import type { Clock } from '../../../cluster/clock.ts'
import { shardBellChannel, shardParcelChannel } from '../../../cluster/keyspace.ts'
import { AnswerTimes } from '../../../cluster/primaries.ts'
import type { ClusterNodes } from '../../../cluster/slots/cluster-nodes.ts'
import { ReplicaGate } from '../../../cluster/slots/gate.ts'
import type { NodeEvents, NodeStore, ShardNode, ToldStream } from '../../../cluster/slots/shard-node.ts'
import { type Commit, changeStore, type Listening, type Receivers, type Verdict } from '../../../cluster/store.ts'
import type { Network } from '../network.ts'
import type { WorkerClock } from '../virtual-time.ts'
import { nodesAt } from './nodes-text.ts'
import type { SimCluster } from './sim-cluster.ts'
import type { NodeLink, SimNode } from './sim-node.ts'

const PULSE_MS = 2_000
/** Requests are long on their way here. */
const SILENT_MS = 6_000
/** `WAIT` returns after this time with the number of replicas reached. */
const WAIT_MS = 1_000
/** A connection that has ended is opened again. */
const OPEN_MS = 100
/** No more time passes between the creation of a commit and its first sending. */
const APART_MS_MAX = 2_000

/** The fault that is planted in a process of a cluster. */
export interface ClusterBugs {
  /** It does not follow redirections, and does not ask the other nodes for the owner. */
  readonly isDeaf?: boolean
  /** Nobody waits for replicas. */
  readonly isUngated?: boolean
  /** All primaries have one clock. */
  readonly hasOneClock?: boolean
  /** Replies go to a stream on any node. */
  readonly toldKey?: (worker: string) => string
}

export interface SimLinkOptions {
  /** Number of the process. */
  readonly from: number
  readonly node: SimNode
  readonly cluster: SimCluster
  readonly network: Network
  readonly clock: WorkerClock
  readonly events: NodeEvents
  readonly nodes: Pick<ClusterNodes<SimNodeLink>, 'targetOf'>
  readonly bugs: ClusterBugs
  /** Commits that the process has sent, wherever. */
  readonly sent: Set<string>
  violated(sentence: string): void
}

export class SimNodeLink implements ShardNode, NodeLink {
  readonly name: string
  readonly address: string
  readonly clock: Clock
  readonly store: NodeStore
  readonly isGated: boolean
  private readonly options: SimLinkOptions
  private readonly times: AnswerTimes
  private readonly gate: ReplicaGate
  private channels: ReadonlySet<string> = new Set()
  private readonly tellers = new Set<{ readonly key: () => string; readonly heard: (text: string) => void }>()
  private isSet = false
  private isClosed = false
  /** For the connections: commands in flight on other connections have ended. */
  private ended: () => void = () => undefined
  private end = this.opened()

  constructor(options: SimLinkOptions) {
    const { bugs, clock, node } = options
    this.options = options
    this.name = node.name
    this.address = node.name
    this.clock = clock.twin(node.offsetMs)
    this.isGated = bugs.isUngated !== true
    this.times = new AnswerTimes(clock.monotonicMs())
    this.gate = new ReplicaGate({ call: async (word) => (word === 'WAIT' ? this.wait() : PONG) }, 1)
    this.store = this.makeStore()
    node.links.add(this)
    void this.pulse()
  }

  get isUp(): boolean {
    return this.isSet
  }

  get isSilent(): boolean {
    return this.options.clock.monotonicMs() - this.times.lastMs > SILENT_MS
  }

  get answeredAtMs(): number {
    return this.times.lastMs
  }

  get steadySinceMs(): number {
    return this.times.sinceMs
  }

  kept(): Promise<boolean> {
    return this.isGated ? this.gate.pass() : Promise.resolve(true)
  }

  hear(channels: ReadonlySet<string>): void {
    this.channels = channels
  }

  listen(worker: string, ears: Receivers): Listening {
    const { from, network, node } = this.options
    return node.base.listen(worker, {
      bells: () => undefined,
      replies: () => undefined,
      joined: () => network.say({ to: from, what: 'joined', call: () => ears.joined() }),
      released: (shard) => network.say({ to: from, what: `released s${shard}`, call: () => ears.released(shard) }),
    })
  }

  nodes(): Promise<string | null> {
    const { bugs, cluster, from, network, node } = this.options
    const isSilent = (): boolean => node.state === 'down' || bugs.isDeaf === true
    const said = async (): Promise<string | null> => (isSilent() ? null : nodesAt(cluster, node))
    return network.ask({ from, method: 'nodes' }, null, said)
  }

  depose(): void {
    this.down()
  }

  close(): void {
    this.isClosed = true
    this.options.node.links.delete(this)
    this.ended()
  }

  down(): void {
    const wasSet = this.isSet
    this.isSet = false
    this.ended()
    this.end = this.opened()
    if (wasSet) this.options.events.onDown()
    if (!this.isClosed) this.options.clock.after(OPEN_MS, () => void this.pulse(true))
  }

  rung(shard: number, text: string, said: Uint8Array | null): void {
    const { events, from, network } = this.options
    if (!this.channels.has(shardBellChannel(shard))) return
    network.say({
      to: from,
      what: `bell s${shard}`,
      call: () => {
        if (said !== null) events.heard(shardParcelChannel(shard), Buffer.from(said))
        events.heard(shardBellChannel(shard), Buffer.from(text))
      },
    })
  }

  told(stream: string, text: string): void {
    const { from, network } = this.options
    for (const { heard, key } of this.tellers)
      if (key() === stream) network.say({ to: from, what: 'replies', call: () => heard(text) })
  }

  /** Sends a commit that another node has refused. */
  async sendOn(commit: Commit, { hops, isAsking }: { hops: number; isAsking: boolean }): Promise<Verdict> {
    const { cluster, from, network, node } = this.options
    const lost: Verdict = { kind: 'lost' }
    const request = { from, method: 'commit', shard: commit.shard, commit, node } as const
    const verdict = await this.orEnd(
      network.ask<Verdict>(request, lost, () => cluster.commit(node, commit, isAsking)),
      lost,
    )
    return this.followed(verdict, commit, hops)
  }

  private makeStore(): NodeStore {
    const { bugs, cluster, from, network, node } = this.options
    const link = network.link(from, cluster.storeOf(node))
    const store = changeStore(link, {
      commit: async (commit) => {
        this.judgeClock(commit)
        return this.sendOn(commit, { hops: 0, isAsking: false })
      },
      read: (shard, facts) => this.orEnd(link.read(shard, facts), null),
      acquire: (request) => this.orEnd(link.acquire(request), { kind: 'failed' }),
      enqueue: ({ replyTo, ...request }) => {
        const lost = request.parcels.map(() => 'lost' as const)
        const to = bugs.toldKey?.(replyTo.slice(replyTo.lastIndexOf(':') + 1)) ?? replyTo
        return this.orEnd(link.enqueue({ ...request, replyTo: to }), lost)
      },
      heartbeat: (request) => this.orEnd(link.heartbeat(request), { kind: 'failed' }),
    })
    const views = null as never
    const own = {
      lags: [],
      identity: { clientId: from, runId: 'r' },
      views,
      prepareToAsk: () => undefined,
      tell: (_worker: string, key: () => string, heard: (text: string) => void) => this.tell(key, heard),
      hear: async () => () => undefined,
    }
    return { ...store, ...own }
  }

  /** A commit is made by the clock of the primary that it goes to; in doubt it is sent again as it was. */
  private judgeClock({ commitId, nowMs, shard }: Commit): void {
    const offMs = nowMs - this.clock.nowMs()
    const { sent, violated } = this.options
    if (!sent.has(commitId) && Math.abs(offMs) > APART_MS_MAX)
      violated(`Shard ${shard}: committed by the clock of another primary, ${offMs} ms off`)
    sent.add(commitId)
  }

  private tell(key: () => string, heard: (text: string) => void): ToldStream {
    const teller = { key, heard }
    return { begin: () => void this.tellers.add(teller), close: () => void this.tellers.delete(teller) }
  }

  private async followed(verdict: Verdict, commit: Commit, hops: number): Promise<Verdict> {
    const { clock, nodes } = this.options
    if (verdict.kind !== 'lost' && verdict.kind !== 'unsent') this.times.note(clock.monotonicMs())
    if (verdict.kind !== 'away') return verdict
    const target = nodes.targetOf(verdict.reason, { from: this.name, hops })
    if (target === null) return verdict
    const isAsking = verdict.reason.startsWith('ASK ')
    const there = await target.sendOn(commit, { hops: hops + 1, isAsking })
    const isTold = there.kind !== 'lost' && there.kind !== 'unsent' && there.kind !== 'away'
    return !isTold || (await target.kept()) ? there : { kind: 'lost' }
  }

  /** Asks for its time. */
  private async pulse(isOnce = false): Promise<void> {
    const { clock, events, from, network, node } = this.options
    if (this.isClosed) return
    const sentAtMs = clock.monotonicMs()
    const time = async (): Promise<number | null> => (node.state === 'down' ? null : node.base.nowMs)
    const storeMs = await this.orEnd(network.ask({ from, method: 'time' }, null, time), null)
    if (!isOnce) clock.after(PULSE_MS, () => void this.pulse())
    if (storeMs === null || this.isClosed) return
    this.clock.set(storeMs, sentAtMs)
    this.times.note(clock.monotonicMs())
    if (this.isSet) return
    this.isSet = true
    events.onUp()
  }

  private async wait(): Promise<typeof PONG | { kind: 'reply'; value: number } | { kind: 'lost' }> {
    const { clock, cluster, from, network, node } = this.options
    const replicate = async (): Promise<number | null> =>
      node.state === 'down' ? null : Number(cluster.replicate(node))
    const value = await this.orEnd(network.ask({ from, method: 'wait' }, null, replicate), null)
    if (value === null) return { kind: 'lost' }
    // A command that waits for replicas ends with its connection.
    const waited = new Promise<boolean>((resolve) => clock.after(WAIT_MS, () => resolve(true)))
    if (value === 0 && !(await this.orEnd(waited, false))) return { kind: 'lost' }
    return { kind: 'reply', value }
  }

  private opened(): Promise<void> {
    return new Promise((resolve) => {
      this.ended = resolve
    })
  }

  /** The answer, or `lost` if the connection ends before it. */
  private orEnd<Value>(answer: Promise<Value>, lost: Value): Promise<Value> {
    return Promise.race([answer, this.end.then(() => lost)])
  }
}

const PONG = { kind: 'reply', value: 'PONG' } as const
