/**
 * sim-cluster - a Redis Cluster in memory: primaries that hold shards, each with a clock of its own and replicas that
 * are behind it; failovers, which lose what no replica has; shards that move.
 */
import { shardTag } from '../../../cluster/keyspace.ts'
import { COMMON_SLOT, SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { type Commit, changeStore, type Meta, type Store, type Verdict } from '../../../cluster/store.ts'
import type { Observer } from '../observer.ts'
import { SHARDS } from '../process.ts'
import { SimStore } from '../sim-store.ts'

const PORT = 7_001
/** Of what belongs to no shard, and of shards that nobody uses here. */
const COMMON_SLOTS: readonly number[] = [COMMON_SLOT, ...SHARD_SLOTS.slice(SHARDS)]

/** Where a shard lies that is on its way. */
interface Move {
  readonly from: SimNode
  readonly to: SimNode
  /** All of it has arrived. */
  isOver: boolean
}

/** One process's connections to a node. */
export interface NodeLink {
  /** They have ended. */
  down(): void
  /** Something is rung for a shard. */
  rung(shard: number, entry: string, said: Uint8Array | null): void
  /** A commit tells a stream. */
  told(stream: string, text: string): void
}

/**
 * One node. `held`: it takes writes that no replica gets, and hears nothing of the others. `deposed`: it says where
 * what it had is now.
 */
export class SimNode {
  readonly name: string
  readonly offsetMs: number
  epoch: number
  state: 'primary' | 'held' | 'down' | 'deposed' = 'primary'
  base: SimStore
  /** As the observer sees it. */
  watched: Store
  readonly shards = new Set<number>()
  hasCommon = false
  /** Who has taken its place. */
  heir: SimNode | null = null
  readonly links = new Set<NodeLink>()

  constructor(n: number, { offsetMs, epoch, base, watched }: Pick<SimNode, 'offsetMs' | 'epoch' | 'base' | 'watched'>) {
    this.name = `127.0.0.1:${PORT + n}`
    this.offsetMs = offsetMs
    this.epoch = epoch
    this.base = base
    this.watched = watched
    this.hear()
  }

  /** Its store rings whoever is connected. */
  hear(): void {
    this.base.stepsMax = Number.POSITIVE_INFINITY
    this.base.rings = (bells) => {
      for (const { shard, entry, before } of bells) {
        const named = entry === null ? '' : ` ${entry.id} ${before} ${entry.parcelId} ${entry.replyTo}`
        for (const link of this.links) link.rung(shard, `${shard}${named}`, entry?.body ?? null)
      }
    }
  }
}

export class SimCluster {
  readonly connected = new Set<number>()
  nodes: SimNode[] = []
  moves = 0
  /** Primaries that were killed or cut off. */
  failovers = 0
  private readonly observer: Observer
  private readonly virtualMs: () => number
  /** Virtual time at which a primary or a shard was on its way last. */
  troubledAtMs = Number.NEGATIVE_INFINITY
  private readonly moving = new Map<number, Move>()
  private made = 0
  private storeMs = 0

  /** `offsets`: how far the clock of each primary is from that of the world. Shards are dealt out. */
  constructor(offsets: readonly number[], { observer, virtualMs }: { observer: Observer; virtualMs: () => number }) {
    this.observer = observer
    this.virtualMs = virtualMs
    observer.withReplicas()
    for (const offsetMs of offsets) this.make(offsetMs, new SimStore(0, this.connected))
    for (let shard = 0; shard < SHARDS; shard += 1) this.nodes[shard % offsets.length]?.shards.add(shard)
    this.nodes[0]!.hasCommon = true
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
    return this.nodes.filter(({ state }) => state === 'primary')
  }

  node(name: string): SimNode | undefined {
    return this.nodes.find((node) => node.name === name)
  }

  /** The node that has a shard, as the cluster will say. */
  at(shard: number): SimNode {
    return this.nodes.find(({ heir, shards }) => heir === null && shards.has(shard)) ?? this.nodes[0]!
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

  /** Replicas of a primary get all that it has. False: it has none, or they hear nothing of it. */
  replicate(node: SimNode): boolean {
    if (node.state !== 'primary') return false
    node.base.settle()
    this.observer.replicated(node.shards)
    return true
  }

  /** A primary is killed, or its replicas and the others hear nothing of it any more. */
  lose(node: SimNode, isKilled: boolean): void {
    this.failovers += 1
    this.troubledAtMs = this.virtualMs()
    node.state = isKilled ? 'down' : 'held'
    if (isKilled) for (const link of node.links) link.down()
  }

  /**
   * A replica takes the place of a primary that is lost, with what it has; what was enqueued no replica ever gets. One
   * that was only cut off goes on with what it had, for nobody.
   */
  promote(lost: SimNode, offsetMs: number): SimNode {
    const { base } = lost
    lost.base = base.clone()
    lost.watched = lost.base
    lost.hear()
    base.rollBack(Number.POSITIVE_INFINITY)
    base.deafen()
    this.observer.rollBack(lost.shards)
    const heir = this.make(lost.offsetMs + offsetMs, base)
    for (const shard of lost.shards) {
      heir.shards.add(shard)
      base.forgetMail(shard)
    }
    heir.hasCommon = lost.hasCommon
    lost.heir = heir
    for (const move of this.moving.values()) {
      if (move.from === lost) Object.assign(move, { from: heir })
      if (move.to === lost) Object.assign(move, { to: heir })
    }
    return heir
  }

  /** One that was cut off hears what has become of it. */
  depose(node: SimNode): void {
    node.state = 'deposed'
    this.troubledAtMs = this.virtualMs()
    node.shards.clear()
    node.hasCommon = false
  }

  /** Begins to move a shard; until it has arrived it can be asked of nobody. */
  beginMove(shard: number, to: SimNode): void {
    this.moves += 1
    this.troubledAtMs = this.virtualMs()
    this.moving.set(shard, { from: this.at(shard), to, isOver: false })
  }

  /** Goes on with the moves: all keys arrive, then the cluster says so. */
  goOn(): void {
    for (const [shard, move] of this.moving) {
      const { from, to } = move
      if (from.state !== 'primary' || to.state !== 'primary') continue
      if (!move.isOver) {
        to.base.takeShard(from.base.giveShard(shard))
        // Who moves a shard waits for the replicas of both.
        this.replicate(from)
        this.replicate(to)
        move.isOver = true
        continue
      }
      from.shards.delete(shard)
      to.shards.add(shard)
      to.epoch = this.nextEpoch()
      this.moving.delete(shard)
      this.troubledAtMs = this.virtualMs()
    }
  }

  /** Whether nothing is on its way and every primary is there. */
  get isCalm(): boolean {
    return this.moving.size === 0 && this.nodes.every(({ state }) => state === 'primary' || state === 'deposed')
  }

  /** What `CLUSTER NODES` says at a node: one that was cut off takes its heir for a replica still. */
  nodesAt(asked: SimNode): string {
    return this.nodes
      .map((node) => {
        const { epoch, hasCommon, heir, name, shards } = node
        const isPrimary =
          node === asked
            ? node.state !== 'deposed'
            : heir === null && (asked.heir !== node || asked.state === 'deposed')
        const slots = [...[...shards].map((shard) => SHARD_SLOTS[shard] ?? 0), ...(hasCommon ? COMMON_SLOTS : [])]
        return `${name} ${name}@1 ${isPrimary ? 'master' : 'slave'} - 0 0 ${epoch} connected ${isPrimary ? slots.join(' ') : ''}`
      })
      .join('\n')
  }

  /** What a node says of a shard that it does not take; null: it does. */
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

  /** A store in which what is told and what is refused is that of a node. */
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
      retire: async (worker) => (hasCommon() ? watched().retire(worker) : undefined),
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

  /** A stream in a slot of another node cannot be written: whoever reads it hears nothing. */
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
    return Math.max(0, ...this.nodes.map(({ epoch }) => epoch)) + 1
  }

  private make(offsetMs: number, base: SimStore): SimNode {
    const epoch = this.nextEpoch()
    const node = new SimNode(this.made, { offsetMs, epoch, base, watched: this.observer.watch(base) })
    base.nowMs = this.storeMs + offsetMs
    this.made += 1
    this.nodes.push(node)
    return node
  }
}
