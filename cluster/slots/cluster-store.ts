/**
 * cluster-store - the store over a Redis Cluster: a map of its slots, and a store for each primary
 *
 * Every request for a shard goes to the primary that the map names. Its answer decides (Redis Cluster specification,
 * "redirection and resharding"):
 *
 * After MOVED the same bytes go to the node that it names, and the map is read. After ASK they go to the other node,
 * behind ASKING, in one write, and the map stays. After TRYAGAIN, CLUSTERDOWN, or for an unknown node nothing ran, so
 * the verdict is `away`. A connection that ends: `lost`, and the map is read from the others; a retry reaches the
 * current holder of the slot.
 *
 * Guarantees that one unreachable primary does not stop the others; with `replica` an answer is given only after the
 * gate of its primary (`gate.ts`), whichever way it comes; the answers of an isolated primary move no slot back.
 */
import type { Redis } from 'ioredis'
import type { FactValue, Signal, ViewFact } from '../behaviour.ts'
import type { Clock } from '../clock.ts'
import type { Primaries, Primary } from '../primaries.ts'
import type { Heard } from '../redis/subscriber.ts'
import type {
  Acquired,
  Beat,
  Commit,
  Cursors,
  Enqueue,
  Enqueued,
  EntriesRequest,
  InboxEntry,
  Lag,
  Listening,
  Meta,
  Receivers,
  Replies,
  RepliesRequest,
  Store,
  Verdict,
  WorkerRecord,
} from '../store.ts'
import { ClusterListener } from './cluster-listener.ts'
import { ClusterNodes, type NodesHears, type NodesReach } from './cluster-nodes.ts'
import type { PrimaryNode } from './primary-node.ts'
import { type RedisNodesOptions, redisNodes } from './redis-nodes.ts'
import type { ShardNode } from './shard-node.ts'
import { COMMON_SLOT, SHARD_SLOTS } from './slot-map.ts'

/** A primary is unreachable for every caller if all connections to it have owed answers for this time. */
const AWAY_MS = 1_000
/** Others remove the record of a worker only after a longer silence. */
const RECORD_STAYS_MS = 10_000

/** Receives events about the nodes in addition to the store. */
export type ClusterHears = Omit<NodesHears, 'arranged' | 'heard' | 'held'>

/**
 * Connects to a cluster by any of its nodes.
 * @throws StoreRefused when the settings of a node break the durability level; Error when no node answers within 10 s
 */
export async function connectClusterStore(
  options: RedisNodesOptions & ClusterHears,
): Promise<ClusterStore<PrimaryNode>> {
  const store = new ClusterStore(redisNodes(options), options)
  try {
    await store.ready()
  } catch (error) {
    store.close()
    throw error
  }
  return store
}

interface Topic {
  readonly topic: string
  readonly heard: Heard
  end: () => void
}

export class ClusterStore<Node extends ShardNode = PrimaryNode> implements Store, Primaries {
  private readonly nodes: ClusterNodes<Node>
  private readonly clock: Pick<Clock, 'monotonicMs'>
  private readonly listeners: ClusterListener[] = []
  private topics: Topic[] = []
  private common: Node | null = null
  /** The worker of this process, and when a heartbeat of it was last answered (monotonic). */
  private beaten = { worker: '', atMs: 0 }

  constructor(reach: NodesReach<Node>, hears: ClusterHears = {}) {
    this.clock = reach.clock
    this.nodes = new ClusterNodes(reach, {
      ...hears,
      arranged: () => this.arrange(),
      heard: (channel, message) => {
        for (const listener of this.listeners) listener.heard(channel, message)
      },
      held: (channel) => {
        for (const listener of this.listeners) listener.held(channel)
      },
    })
  }

  /** Resolves when every primary can be reached, or after a while if that of keys outside any shard can be. */
  ready(): Promise<void> {
    return this.nodes.ready()
  }

  close(): void {
    for (const listener of this.listeners) listener.close()
    this.nodes.close()
  }

  of(shard: number): Primary | null {
    return this.nodes.named(SHARD_SLOTS[shard] ?? 0)
  }

  /** The Redis of a shard at this moment, for commands outside the runtime; throws if none is known. */
  viewsOf(shard: number | null): Redis {
    const node = this.nodes.named(shard === null ? COMMON_SLOT : (SHARD_SLOTS[shard] ?? 0))
    if (node === null) throw new Error('No node of the cluster is known to have the requested keys')
    return node.store.views
  }

  /** The primaries that hold shards. */
  get primaries(): readonly Node[] {
    return [...this.nodes.all.values()]
  }

  /** Addresses of the primaries that hold shards, as far as they are known now. */
  get addresses(): readonly string[] {
    return this.primaries.map(({ address }) => address)
  }

  /** The shards of a primary. */
  shardsOf(name: string): readonly number[] {
    return this.nodes.map.shardsOf(name)
  }

  /**
   * Whether any primary can be reached. Requests to this process are then answered, except those for shards of others.
   */
  get connected(): boolean {
    return this.primaries.some(({ isUp }) => isUp)
  }

  /**
   * A node that is unreachable for every connection is left out while another is reachable, because that is not a
   * fault of this process.
   */
  get lags(): readonly Lag[] {
    const found = this.primaries.map(({ name, isUp, store }) => {
      const lags = store.lags.map((lag): Lag => ({ ...lag, store: name }))
      return { lags, isAway: !isUp || lags.every(({ ms }) => ms > AWAY_MS) }
    })
    const there = found.filter(({ isAway }) => !isAway)
    return (there.length > 0 ? there : found).flatMap(({ lags }) => lags)
  }

  prepareToAsk(worker: string): void {
    for (const { name, store } of this.primaries) {
      for (const listener of this.listeners) if (listener.worker === worker) listener.begin(name)
      store.prepareToAsk('')
    }
  }

  get identity(): { readonly clientId: number; readonly runId: string } {
    return this.nodes.named(COMMON_SLOT)?.store.identity ?? { clientId: 0, runId: '' }
  }

  async commit(commit: Commit): Promise<Verdict> {
    const node = this.at(commit.shard)
    if (node === null) return { kind: 'unsent' }
    const verdict = await node.store.commit(commit)
    if (verdict.kind === 'lost' || verdict.kind === 'away') this.nodes.hurry()
    if (!node.isGated || (verdict.kind !== 'ok' && verdict.kind !== 'dup')) return verdict
    return (await this.kept(commit.shard, node)) ? verdict : { kind: 'lost' }
  }

  async read(shard: number, facts: readonly ViewFact[]): Promise<readonly FactValue[] | null> {
    return (await this.at(shard)?.store.read(shard, facts)) ?? null
  }

  /** It passes the gate too, so that later reads of the shard can be relied on, whichever process wrote the data. */
  async acquire(request: { shard: number; sawToken: string; newToken: string; worker: string }): Promise<Acquired> {
    const node = this.at(request.shard)
    if (node === null) return { kind: 'failed' }
    const acquired = await node.store.acquire(request)
    if (acquired.kind === 'failed' || (node.isGated && !(await this.kept(request.shard, node))))
      return { kind: 'failed' }
    if (acquired.kind === 'ok') this.takes(request.worker, request.shard, true)
    return acquired
  }

  async release(request: { shard: number; token: string }): Promise<boolean> {
    for (const { worker } of this.listeners) this.takes(worker, request.shard, false)
    return (await this.at(request.shard)?.store.release(request)) ?? false
  }

  async fenced(request: { shard: number; token: string }): Promise<{ seq: number; last: string } | null> {
    const node = this.at(request.shard)
    const found = (await node?.store.fenced(request)) ?? null
    if (node === null || found === null || !node.isGated) return found
    return (await this.kept(request.shard, node)) ? found : null
  }

  async metas(shards: readonly number[]): Promise<readonly (Meta | null | undefined)[] | null> {
    const found = new Map<number, Meta | null>()
    await Promise.all(
      this.byNode(shards, (shard) => shard).map(async ([node, some]) => {
        const metas = await node.store.metas(some)
        for (const [place, shard] of some.entries()) {
          const meta = metas?.[place]
          if (meta !== undefined) found.set(shard, meta)
        }
      }),
    )
    return found.size === 0 ? null : shards.map((shard) => found.get(shard))
  }

  /**
   * A record that may be new passes the gate as well. If a failover dropped it, the others would repeat what a living
   * worker performs, because a worker without a record is gone.
   */
  async heartbeat(request: { worker: string; record: WorkerRecord }): Promise<Beat> {
    const { worker } = request
    const node = this.nodes.at(COMMON_SLOT)
    const beat = (await node?.store.heartbeat(request)) ?? { kind: 'failed' }
    if (node === null || beat.kind === 'failed') return beat
    const mayBeNew = this.beaten.worker !== worker || this.clock.monotonicMs() - this.beaten.atMs >= RECORD_STAYS_MS
    const isKept = !node.isGated || !mayBeNew || ((await node.kept()) && this.nodes.named(COMMON_SLOT) === node)
    if (!isKept) return { kind: 'failed' }
    this.beaten = { worker, atMs: this.clock.monotonicMs() }
    return beat
  }

  async retire(worker: string, seen?: string): Promise<void> {
    await this.nodes.at(COMMON_SLOT)?.store.retire(worker, seen)
  }

  async look(
    clients: readonly number[],
  ): Promise<{ workers: ReadonlyMap<string, string>; connected: Set<number> } | null> {
    return (await this.nodes.at(COMMON_SLOT)?.store.look(clients)) ?? null
  }

  async enqueue(request: Enqueue): Promise<readonly Enqueued[]> {
    const listener = this.listeners.find(({ worker }) => worker === request.replyTo)
    const results = new Map<number, Enqueued>()
    const places = [...request.parcels.keys()]
    await Promise.all(
      this.byNode(places, (place) => request.parcels[place]?.shard ?? 0).map(async ([node, some]) => {
        const replyTo = listener?.begin(node.name) ?? request.replyTo
        const parcels = some.flatMap((place) => request.parcels[place] ?? [])
        const sent = await node.store.enqueue({ ...request, replyTo, parcels })
        for (const [at, place] of some.entries()) results.set(place, sent[at] ?? 'lost')
      }),
    )
    if ([...results.values()].some((result) => result !== 'ok' && result !== 'busy')) this.nodes.hurry()
    return places.map((place) => results.get(place) ?? 'unsent')
  }

  async handIn(request: { shard: number; cmdId: string; body: Uint8Array }): Promise<boolean> {
    const node = this.at(request.shard)
    if (node === null || !(await node.store.handIn(request))) return false
    return !node.isGated || this.kept(request.shard, node)
  }

  async entries(request: EntriesRequest): Promise<readonly InboxEntry[] | null> {
    return (await this.at(request.shard)?.store.entries(request)) ?? null
  }

  async waiting(cursors: readonly Cursors[]): Promise<readonly number[] | null> {
    const found = await Promise.all(
      this.byNode(cursors, ({ shard }) => shard).map(([node, some]) => node.store.waiting(some)),
    )
    return found.every((one) => one === null) ? null : found.flatMap((one) => one ?? [])
  }

  async replies(parcels: readonly RepliesRequest[]): Promise<readonly (Replies | null)[]> {
    const results = new Map<RepliesRequest, Replies | null>()
    await Promise.all(
      this.byNode(parcels, ({ shard }) => shard).map(async ([node, some]) => {
        const found = await node.store.replies(some)
        const isKept = !node.isGated || (await node.kept())
        for (const [place, parcel] of some.entries()) {
          const isHere = isKept && (!node.isGated || this.holds(node, parcel.shard))
          results.set(parcel, isHere ? (found[place] ?? null) : null)
        }
      }),
    )
    return parcels.map((parcel) => results.get(parcel) ?? null)
  }

  signal(signals: readonly Signal[]): void {
    const node = this.nodes.at(COMMON_SLOT) ?? this.primaries.find(({ isUp }) => isUp)
    node?.store.signal(signals)
  }

  listen(worker: string, ears: Receivers): Listening {
    const listener = new ClusterListener(worker, ears, this.nodes.map)
    this.listeners.push(listener)
    this.arrange()
    return listener
  }

  /**
   * Subscribes to a topic; resolves with a function that ends it. Messages published while its node changes are lost.
   */
  async hear(topic: string, heard: Heard): Promise<() => void> {
    const one: Topic = { topic, heard, end: () => undefined }
    this.topics.push(one)
    await this.hearAt(this.nodes.named(COMMON_SLOT), one)
    return () => {
      this.topics = this.topics.filter((other) => other !== one)
      one.end()
    }
  }

  private async hearAt(node: Node | null, one: Topic): Promise<void> {
    one.end()
    const end = await node?.store.hear(one.topic, one.heard)
    if (end === undefined) return
    if (this.topics.includes(one)) one.end = end
    else end()
  }

  /** A holder changed or a subscriber was added, so all subscriptions move to the current holders. */
  private arrange(): void {
    const common = this.nodes.named(COMMON_SLOT)
    for (const listener of this.listeners) listener.arrange(this.nodes.all, common)
    this.listenToShards()
    if (common === this.common) return
    this.common = common
    for (const one of this.topics) void this.hearAt(common, one)
  }

  private takes(worker: string, shard: number, isTaken: boolean): void {
    const listener = this.listeners.find((one) => one.worker === worker)
    if (listener === undefined || listener.taken.has(shard) === isTaken) return
    if (isTaken) listener.taken.add(shard)
    else listener.taken.delete(shard)
    this.listenToShards()
  }

  private listenToShards(): void {
    for (const [name, node] of this.nodes.all) {
      const shards = this.nodes.map.shardsOf(name)
      node.hear(new Set(this.listeners.flatMap((listener) => listener.channels(shards))))
    }
  }

  private at(shard: number): Node | null {
    return this.nodes.at(SHARD_SLOTS[shard] ?? 0)
  }

  /** Passes the gate of a shard's primary, which must still be the one that was asked. */
  private async kept(shard: number, node: Node): Promise<boolean> {
    return (await node.kept()) && this.holds(node, shard)
  }

  private holds(node: Node, shard: number): boolean {
    return this.nodes.named(SHARD_SLOTS[shard] ?? 0) === node
  }

  /** Requests to each reachable primary. */
  private byNode<Item>(items: readonly Item[], shardOf: (item: Item) => number): [Node, Item[]][] {
    const found = new Map<Node, Item[]>()
    for (const item of items) {
      const node = this.at(shardOf(item))
      if (node === null) continue
      const some = found.get(node)
      if (some === undefined) found.set(node, [item])
      else some.push(item)
    }
    return [...found]
  }
}
