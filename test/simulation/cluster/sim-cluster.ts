/**
 * sim-cluster - an in-memory Redis Cluster: primaries that hold shards, each with its own clock and with replicas that
 * lag; failovers, which lose everything that no replica has; shards that move, at once (`SETSLOT` alone) or key by key
 * as redis-cli does.
 */
import { shardTag } from '../../../cluster/keyspace.ts'
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { type Commit, changeStore, type Meta, type Store, type Verdict } from '../../../cluster/store.ts'
import type { Observer } from '../observer.ts'
import { SHARDS } from '../process.ts'
import { SimStore } from '../sim-store.ts'
import { FenceWatch } from './fence-watch.ts'
import { SimNode } from './sim-node.ts'
import { type Claim, type Ear, SlotNews } from './slot-news.ts'

/** The location of a shard that is moving key by key. */
interface Move {
  readonly from: SimNode
  readonly to: SimNode
  /** All keys have arrived. */
  isOver: boolean
}

interface ClusterDeps {
  readonly observer: Observer
  readonly virtualMs: () => number
  /** The chance in one step that a node learns of a slot that has changed its owner. */
  readonly newsChance: () => number
}

export class SimCluster {
  readonly connected = new Set<number>()
  nodes: SimNode[] = []
  /** Most of the primaries: they hold nothing here, and vote. */
  readonly crowd: SimNode
  readonly news: SlotNews
  readonly watch: FenceWatch
  moves = 0
  /** Primaries that were killed or cut off. */
  failovers = 0
  private readonly observer: Observer
  private readonly virtualMs: () => number
  /** Virtual time at which a primary or a shard was on its way last. */
  troubledAtMs = Number.NEGATIVE_INFINITY
  private readonly moving = new Map<number, Move>()
  /** The newest epoch among nodes that communicate. */
  private epochNow = 0
  private made = 0
  private storeMs = 0

  /** `offsets`: how far the clock of each primary is from that of the world. Shards are dealt out. */
  constructor(offsets: readonly number[], { observer, virtualMs, newsChance }: ClusterDeps) {
    this.news = new SlotNews(newsChance)
    this.observer = observer
    this.virtualMs = virtualMs
    observer.withReplicas()
    this.watch = new FenceWatch(observer, (shard) => this.at(shard))
    for (const offsetMs of offsets) this.nodes.push(this.make(offsetMs, new SimStore(0, this.connected)))
    for (let shard = 0; shard < SHARDS; shard += 1) this.nodes[shard % offsets.length]?.shards.add(shard)
    this.nodes[0]!.hasCommon = true
    this.crowd = this.make(0, new SimStore())
  }

  set nowMs(ms: number) {
    this.storeMs = ms
    for (const { base, offsetMs } of this.nodes) base.nowMs = ms + offsetMs
  }

  set full(isFull: boolean) {
    for (const { base } of this.nodes) base.full = isFull
  }

  /** Primaries that have replicas. */
  get primaries(): SimNode[] {
    return this.nodes.filter(({ hasReplicas, state }) => state === 'primary' && hasReplicas)
  }

  node(name: string): SimNode | undefined {
    return this.nodes.find((node) => node.name === name)
  }

  /** All nodes, when asked for the slot map. */
  get members(): SimNode[] {
    return [...this.nodes, this.crowd]
  }

  /**
   * Replicas and their primaries. A node itself stands for its own replica. A lost node that has returned follows its
   * successor.
   */
  get followed(): { readonly node: SimNode; readonly primary: SimNode }[] {
    return this.nodes.flatMap((node) => {
      if (node.heir === null) return node.hasReplicas && node.state !== 'deposed' ? [{ node, primary: node }] : []
      let primary = node.heir
      while (primary.heir !== null) primary = primary.heir
      return node.state === 'deposed' ? [{ node, primary }] : []
    })
  }

  /**
   * The node that the cluster will name as the owner of a shard. Of two claims, the one that the others receive, then
   * the newer.
   */
  at(shard: number): SimNode {
    const claiming = this.nodes.filter(({ heir, shards }) => heir === null && shards.has(shard))
    const heard = claiming.filter(({ state }) => state === 'primary')
    const [newest] = (heard.length > 0 ? heard : claiming).sort((one, other) => other.epoch - one.epoch)
    return newest ?? this.nodes[0]!
  }

  async metas(shards: readonly number[]): Promise<readonly (Meta | null)[]> {
    const found = await Promise.all(shards.map((shard) => this.at(shard).base.metas([shard])))
    return found.map((metas) => metas?.[0] ?? null)
  }

  read(shard: number, facts: Parameters<SimStore['read']>[1]): ReturnType<SimStore['read']> {
    return this.at(shard).base.read(shard, facts)
  }

  forgetMail(shard: number): void {
    this.at(shard).base.forgetMail(shard)
  }

  /** The replicas of a primary receive all its data. False if it has none, or if they are disconnected from it. */
  replicate(node: SimNode): boolean {
    if (node.state !== 'primary' || !node.hasReplicas) return false
    node.settle()
    const arrived = [...this.moving].flatMap(([shard, { to, isOver }]) => (to === node && isOver ? [shard] : []))
    this.observer.replicated([...node.shards, ...arrived])
    return true
  }

  /** A primary is killed, or its replicas and the other nodes are disconnected from it. */
  lose(node: SimNode, isKilled: boolean): void {
    this.failovers += 1
    this.trouble()
    node.knewEpoch = this.epochNow
    node.state = isKilled ? 'down' : 'held'
    if (isKilled) for (const link of node.links) link.down()
  }

  /**
   * A replica takes the place of a lost primary, with the data that it has. Data that was still in the primary's queue
   * never reaches a replica. A primary that was only cut off continues with its data, but without clients.
   */
  promote(lost: SimNode, offsetMs: number): SimNode {
    const shards = this.news.inherited(lost, this.crowd)
    const [extra] = lost.extraAtReplicas
    if (extra !== undefined) this.observer.violated(`A replica of ${lost.name} still has what is gone there: ${extra}`)
    this.epochNow = Math.max(this.epochNow, lost.kin.knownEpoch)
    const heir = this.make(lost.offsetMs + offsetMs, lost.leaveToHeir())
    this.nodes.push(heir)
    for (const shard of shards) heir.shards.add(shard)
    this.observer.rollBack(shards)
    for (let shard = 0; shard < SHARDS; shard += 1) heir.base.forgetMail(shard)
    heir.hasCommon = lost.hasCommon
    lost.heir = heir
    for (const move of this.moving.values()) {
      if (move.from === lost) Object.assign(move, { from: heir })
      if (move.to === lost) Object.assign(move, { to: heir })
    }
    this.hearOfHeir(lost, heir)
    return heir
  }

  /**
   * A lost primary learns of the events since. It owns what it claims with a newer epoch than all others. If two nodes
   * have the same epoch, the other one raises its own. (In Redis the node with the smaller id does. If that is the
   * node that was lost between its claim and the first node that learned of it, it takes back what its successor took
   * meanwhile. docs/understand/known-limits.md says that this loses mail.)
   */
  depose(node: SimNode): void {
    this.trouble()
    for (const other of this.nodes)
      if (other !== node && other.heir === null && other.epoch === node.epoch) this.collide(other)
    const isNewest = (shard: number): boolean =>
      this.nodes.every((other) => other.heir !== null || !other.shards.has(shard) || other.epoch < node.epoch)
    const kept = [...node.shards].filter(isNewest)
    for (const shard of [...node.shards]) if (!kept.includes(shard)) node.loseShard(shard)
    node.shards.clear()
    node.importing.clear()
    node.hasCommon = false
    node.state = 'deposed'
    if (kept.length > 0) this.comeBack(node, kept)
  }

  /** A slot changes hands at once, by `SETSLOT` at the one that takes it. */
  switchSlot(node: SimNode, shard: number): void {
    node.importing.delete(shard)
    if (node.shards.has(shard)) return
    const before = this.at(shard)
    node.shards.add(shard)
    this.trouble()
    // Its own epoch is the newest it knows, but no other node has learned of it yet.
    if (node.epoch < this.knownEpoch(node)) node.epoch = this.knownEpoch(node) + 1
    this.news.begin({ shard, by: node, before }, [...this.nodes.filter(({ heir }) => heir === null), this.crowd])
  }

  /** A node learns of a slot that has changed its owner. */
  hear(claim: Claim, ear: Ear): void {
    this.hearEpoch(claim.by)
    this.news.hear(claim, ear)
    this.watch.look()
  }

  /** A primary learns of another one with the same epoch. */
  private collide(node: SimNode): void {
    node.epoch = this.nextEpoch()
    node.heardEpoch = node.epoch
  }

  /** Two primaries with the same epoch receive each other's messages, and one of them raises its own. */
  endCollisions(): void {
    const standing = this.members.filter(({ heir, state }) => heir === null && state === 'primary')
    for (const one of standing)
      if (standing.some((other) => other !== one && other.epoch === one.epoch)) this.collide(one)
  }

  /** All nodes learn the epoch of a node and the knowledge of its replicas. */
  hearEpoch(node: SimNode): void {
    if (node.state === 'primary') node.heardEpoch = node.epoch
    if (node.heir === null) this.epochNow = Math.max(this.epochNow, node.heardEpoch, node.kin.knownEpoch)
  }

  /** The newest epoch that a replica of a node knows. */
  knownAtReplica({ kin, heir }: SimNode): number {
    return heir === null ? Math.max(kin.knownEpoch, this.epochNow) : this.knownEpoch(heir)
  }

  /** A replica raises the epoch that it knows, unless it has done that last. */
  bumpReplica(node: SimNode): void {
    if (node.heir !== null) {
      this.bumpEpoch(node.heir)
      return
    }
    const known = this.knownAtReplica(node)
    if (node.kin.ownEpoch !== known) node.kin = { knownEpoch: known + 1, ownEpoch: known + 1 }
  }

  /** The newest epoch that a node knows. */
  knownEpoch(node: SimNode): number {
    return Math.max(node.epoch, node.state === 'primary' ? this.epochNow : node.knewEpoch)
  }

  /** A node makes its epoch the newest, unless it already is. No other node has learned of it yet. */
  bumpEpoch(node: SimNode): void {
    const known = this.knownEpoch(node)
    if (node.epoch < known) node.epoch = known + 1
  }

  /** A primary or a shard is on its way. */
  trouble(): void {
    this.troubledAtMs = this.virtualMs()
  }

  /** Begins to move a shard. Until it has arrived, no node serves it. */
  beginMove(shard: number, to: SimNode): void {
    this.moves += 1
    this.trouble()
    this.moving.set(shard, { from: this.at(shard), to, isOver: false })
  }

  /** Continues the moves: all keys arrive, then the cluster reports the new owner. */
  goOn(): void {
    for (const [shard, move] of this.moving) {
      const { from, to } = move
      if (from.state !== 'primary' || to.state !== 'primary') continue
      if (!move.isOver) {
        const keys = from.base.copyOf(from.base.namesOf(shard))
        to.put(keys)
        from.put(new Map([...keys.keys()].map((name) => [name, undefined])))
        // A move waits for the replicas of both nodes.
        this.replicate(from)
        this.replicate(to)
        move.isOver = true
        continue
      }
      from.shards.delete(shard)
      to.shards.add(shard)
      to.epoch = this.nextEpoch()
      to.heardEpoch = to.epoch
      this.moving.delete(shard)
      this.trouble()
    }
  }

  /** Whether no key is moving and every primary is present, or was lost and has a successor. */
  get isCalm(): boolean {
    const isSettled = ({ heir, state }: SimNode): boolean => state !== 'held' && (state !== 'down' || heir !== null)
    return this.moving.size === 0 && this.nodes.every(isSettled)
  }

  /** All nodes learn of an elected node at once, except nodes that are cut off or have marked a slot as importing. */
  private hearOfHeir(lost: SimNode, heir: SimNode): void {
    for (const claim of this.news.all) {
      claim.unheard.delete(lost)
      if (claim.by === lost || claim.before === lost) this.news.end(claim.shard)
    }
    for (const node of this.nodes)
      if (node !== heir && node !== lost && node.state === 'primary')
        for (const shard of heir.shards) node.loseShard(shard)
    this.watch.look()
  }

  /**
   * Its claim was newer than that of the node that held the shards meanwhile. The followers of that node follow its
   * successor.
   */
  private comeBack(node: SimNode, shards: readonly number[]): void {
    node.heir = null
    node.state = 'primary'
    node.watched = this.observer.watch(node.base)
    node.hasReplicas = false
    this.hearEpoch(node)
    // A client that waits for replicas gives up long before any arrives.
    for (const link of node.links) link.down()
    for (const shard of shards) {
      for (const other of this.nodes) if (other.state === 'primary') other.loseShard(shard)
      node.shards.add(shard)
    }
    this.watch.look()
  }

  /** The reply of a node for a shard that it does not serve, or null if it serves it. */
  refusalOf(node: SimNode, shard: number, isAsking: boolean): string | null {
    const slot = SHARD_SLOTS[shard] ?? 0
    const move = this.moving.get(shard)
    if (move?.from === node) return move.isOver ? `ASK ${slot} ${move.to.name}` : 'TRYAGAIN Multiple keys request'
    if (move?.to === node && move.isOver && isAsking) return null
    if (node.shards.has(shard)) return null
    return `MOVED ${slot} ${this.at(shard).name}`
  }

  /** A commit at a node. */
  async commit(node: SimNode, commit: Commit, isAsking: boolean): Promise<Verdict> {
    if (node.state === 'down') return { kind: 'lost' }
    const refusal = this.refusalOf(node, commit.shard, isAsking)
    if (refusal !== null) return { kind: 'away', reason: refusal }
    const { told, ...silent } = commit
    const verdict = await node.watched.commit(silent)
    if (verdict.kind === 'ok') for (const [stream, text] of told ?? []) this.tell(node, stream, text)
    return verdict
  }

  /** A store whose messages and refusals are those of a node. */
  storeOf(node: SimNode): Store {
    const has = (shard: number): boolean => node.state !== 'down' && this.refusalOf(node, shard, false) === null
    const hasCommon = (): boolean => node.state !== 'down' && node.hasCommon
    const watched = (): Store => node.watched
    return changeStore(node.base, {
      commit: (commit) => this.commit(node, commit, false),
      read: async (shard, facts) => (has(shard) ? watched().read(shard, facts) : null),
      acquire: async (request) => (has(request.shard) ? watched().acquire(request) : { kind: 'failed' }),
      release: async (request) => has(request.shard) && watched().release(request),
      fenced: async (request) => (has(request.shard) ? watched().fenced(request) : null),
      metas: async (shards) => (shards.every(has) ? watched().metas(shards) : null),
      heartbeat: async (request) => (hasCommon() ? watched().heartbeat(request) : { kind: 'failed' }),
      retire: async (worker, seen) => (hasCommon() ? watched().retire(worker, seen) : undefined),
      look: async (clients) => (hasCommon() ? watched().look(clients) : null),
      enqueue: async (request) =>
        request.parcels.every(({ shard }) => has(shard))
          ? watched().enqueue(request)
          : request.parcels.map(() => 'unsent' as const),
      handIn: async (request) => has(request.shard) && watched().handIn(request),
      entries: async (request) => (has(request.shard) ? watched().entries(request) : null),
      waiting: async (cursors) => (cursors.every(({ shard }) => has(shard)) ? watched().waiting(cursors) : null),
      replies: async (parcels) =>
        parcels.every(({ shard }) => has(shard)) ? watched().replies(parcels) : parcels.map(() => null),
      listen: (worker, ears) => node.base.listen(worker, ears),
      signal: () => undefined,
    })
  }

  /** A stream in a slot of another node cannot be written, so its reader receives nothing. */
  private tell(node: SimNode, stream: string, text: string): void {
    const shard = Array.from({ length: SHARDS }, (_, n) => n).find((n) => stream.startsWith(shardTag(n)))
    if (shard === undefined || !node.shards.has(shard)) {
      // After a move its reader names another one with the next parcel.
      if (this.moves === 0) this.observer.violated(`Told in a slot of another node: ${stream} at ${node.name}`)
      return
    }
    for (const link of node.links) link.told(stream, text)
  }

  private nextEpoch(): number {
    this.epochNow += 1
    return this.epochNow
  }

  private make(offsetMs: number, base: SimStore): SimNode {
    const epoch = this.nextEpoch()
    const node = new SimNode(this.made, { offsetMs, epoch, base, watched: this.observer.watch(base) })
    base.nowMs = this.storeMs + offsetMs
    this.made += 1
    return node
  }
}
