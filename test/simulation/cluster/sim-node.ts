/**
 * sim-node - one primary of an in-memory cluster, and the data that its replicas would have in its place
 *
 * States: primary, held (it accepts writes that no replica receives, and is disconnected from the others), down,
 * deposed (it redirects to the current owners of its slots).
 */
import { metaKey, shardTag } from '../../../cluster/keyspace.ts'
import type { Store } from '../../../cluster/store.ts'
import { SHARDS } from '../process.ts'
import type { SimStore, Snapshot } from '../sim-store.ts'

const PORT = 7_001

/** One process's connections to a node. */
export interface NodeLink {
  /** They have ended. */
  down(): void
  /** Something is rung for a shard. */
  rung(shard: number, entry: string, said: Uint8Array | null): void
  /** A commit sends a message to a stream. */
  told(stream: string, text: string): void
}

export class SimNode {
  readonly id: string
  readonly name: string
  readonly offsetMs: number
  epoch: number
  /** The epoch of it that the other nodes know. */
  heardEpoch: number
  /** The newest epochs that its replicas generated themselves, and the last of its own. */
  kin = { knownEpoch: 0, ownEpoch: 0 }
  /** The newest epoch that it knew when it was lost. */
  knewEpoch = 0
  state: 'primary' | 'held' | 'down' | 'deposed' = 'primary'
  base: SimStore
  /** As the observer sees it. */
  watched: Store
  /** Shards that it takes itself to hold. */
  readonly shards = new Set<number>()
  /** Shards that it has marked as importing. It receives no news of them. */
  readonly importing = new Set<number>()
  hasCommon = false
  /** The node that has taken its place. */
  heir: SimNode | null = null
  /** Whether anybody follows it. */
  hasReplicas = true
  readonly links = new Set<NodeLink>()
  /** What it removed only locally when it lost a slot (Redis 7.0). Its replicas still have it. */
  private readonly ghosts: Snapshot = new Map()
  /** Names that were written past all checks since replicas had everything. */
  private readonly written = new Set<string>()

  constructor(n: number, { offsetMs, epoch, base, watched }: Pick<SimNode, 'offsetMs' | 'epoch' | 'base' | 'watched'>) {
    // In no order: ids decide between two.
    this.id = `node${10 + ((n * 37) % 89)}`
    this.name = `127.0.0.1:${PORT + n}`
    this.offsetMs = offsetMs
    this.epoch = epoch
    this.heardEpoch = epoch
    this.base = base
    this.watched = watched
    this.hear()
  }

  /** Its store notifies all connected clients. */
  hear(): void {
    this.base.stepsMax = Number.POSITIVE_INFINITY
    this.base.rings = (bells) => {
      for (const { shard, entry, before } of bells) {
        const named = entry === null ? '' : ` ${entry.id} ${before} ${entry.parcelId} ${entry.replyTo}`
        for (const link of this.links) link.rung(shard, `${shard}${named}`, entry?.body ?? null)
      }
    }
  }

  /** Writes keys as a move does; undefined removes a key. */
  put(keys: Snapshot): void {
    this.base.put(keys)
    for (const name of keys.keys()) this.written.add(name)
  }

  /** Fields of a shard's `meta`. */
  metaOf(shard: number): ReadonlyMap<string, string> {
    const value = this.base.copyOf([metaKey(shard)]).get(metaKey(shard))?.value
    return value?.kind === 'hash' ? value.fields : new Map()
  }

  /** It learns that another node now owns a shard. */
  loseShard(shard: number): void {
    if (!this.shards.delete(shard)) return
    for (const [name, kept] of this.base.takeAway(this.base.namesOf(shard))) {
      this.ghosts.set(name, kept)
      this.written.delete(name)
    }
  }

  /** For its shards, the keys that its replicas have and it does not, except keys that expire by themselves. */
  get extraAtReplicas(): string[] {
    const here = new Set([...this.shards].flatMap((shard) => this.base.namesOf(shard)))
    return [...this.ghosts].flatMap(([name, kept]) => {
      const isHeld = [...this.shards].some((shard) => name.startsWith(`${shardTag(shard)}:`))
      return isHeld && kept?.expiresAtMs === 0 && !name.endsWith(':mailbox') && !here.has(name) ? [name] : []
    })
  }

  /** Names of the keys of a shard at its replicas. */
  namesAtReplica(shard: number): string[] {
    if (this.heir !== null) return this.heir.base.namesOf(shard)
    const ghosts = [...this.ghosts.keys()].filter((name) => name.startsWith(`${shardTag(shard)}:`))
    return [...new Set([...this.base.namesOf(shard), ...ghosts])]
  }

  /** Replicas get all that it has. */
  settle(): void {
    this.base.settle()
    for (const name of this.written) this.ghosts.delete(name)
    this.written.clear()
  }

  /** Its replicas have nothing that it has removed. */
  forgetGhosts(): void {
    this.ghosts.clear()
    this.written.clear()
  }

  /** Leaves the store to a replica that takes its place, and continues with its own copy. */
  leaveToHeir(): SimStore {
    const { base } = this
    this.base = base.clone()
    this.watched = this.base
    this.hear()
    base.rollBack(Number.POSITIVE_INFINITY)
    const here = new Set(Array.from({ length: SHARDS }, (_, shard) => base.namesOf(shard)).flat())
    base.put(new Map([...this.ghosts].filter(([name]) => !here.has(name))))
    base.settle()
    base.deafen()
    this.forgetGhosts()
    return base
  }
}
