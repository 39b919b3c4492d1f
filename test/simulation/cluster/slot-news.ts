/**
 * slot-news - how nodes learn that a slot has changed its owner at once, by SETSLOT (Redis Cluster specification,
 * "hash slots configuration propagation", "replica election and promotion")
 *
 * The replicas of the new owner learn of it first. Until then the claim is lost if the owner is lost. Until the
 * previous owner learns of it, both consider themselves the owner. Until most primaries have learned of it, a replica
 * of the previous owner that has not learned of it can be elected with the slot.
 */
import type { SimNode } from './sim-node.ts'

/** Nodes, the replicas of the new holder (`kin`) or of the one before (`heirs`). */
export type Ear = SimNode | 'kin' | 'heirs'

/** A claim that at least one node has not learned of. */
export interface Claim {
  readonly shard: number
  readonly by: SimNode
  readonly before: SimNode
  /** The nodes that have not learned of it, each with its chance to do so in one step. */
  readonly unheard: Map<Ear, number>
}

export class SlotNews {
  private readonly claims = new Map<number, Claim>()
  private readonly chanceOf: () => number

  /** `chanceOf` draws the chance of a node to learn of a claim in one step. */
  constructor(chanceOf: () => number) {
    this.chanceOf = chanceOf
  }

  get size(): number {
    return this.claims.size
  }

  of(shard: number): Claim | undefined {
    return this.claims.get(shard)
  }

  get all(): Claim[] {
    return [...this.claims.values()]
  }

  /** Whom a replica of a node takes for the holder of a shard; null: for the one that has it. */
  seenByReplica(node: SimNode, shard: number): SimNode | null {
    const claim = this.of(shard)
    if (claim === undefined) return null
    const { before, by, unheard } = claim
    const ear = by === node ? 'kin' : before === node ? 'heirs' : node
    return unheard.has(ear) && !node.importing.has(shard) ? (before.heir ?? before) : null
  }

  begin(claim: Omit<Claim, 'unheard'>, nodes: readonly SimNode[]): void {
    const ears: Ear[] = ['kin', 'heirs', ...nodes.filter((node) => node !== claim.by)]
    this.claims.set(claim.shard, { ...claim, unheard: new Map(ears.map((ear) => [ear, this.chanceOf()])) })
  }

  /** The nodes that could learn of it now. */
  earsOf({ by, unheard }: Claim): Ear[] {
    if (by.state !== 'primary') return []
    if (unheard.has('kin')) return ['kin']
    return [...unheard.keys()].filter((ear) => typeof ear === 'string' || ear.state === 'primary')
  }

  /** A node learns of it. A node that has marked the slot as importing ignores it. */
  hear(claim: Claim, ear: Ear): void {
    if (typeof ear !== 'string') {
      if (ear.importing.has(claim.shard)) return
      ear.loseShard(claim.shard)
    }
    claim.unheard.delete(ear)
    if (claim.unheard.size === 0) this.claims.delete(claim.shard)
  }

  /** The claim is no longer valid. */
  end(shard: number): void {
    this.claims.delete(shard)
  }

  /**
   * The shards with which a replica of a node is elected. `crowd` stands for most primaries. Once it has learned of a
   * claim, it elects no node that contradicts it.
   */
  inherited(lost: SimNode, crowd: SimNode): Set<number> {
    const shards = new Set(lost.shards)
    for (const { by, before, shard, unheard } of this.all) {
      if (by === lost && unheard.has('kin')) shards.delete(shard)
      if (before !== lost) continue
      if (unheard.has('heirs') && unheard.has(crowd)) shards.add(shard)
      else shards.delete(shard)
    }
    return shards
  }
}
