/**
 * slot-news - how nodes come to know that a slot has changed hands at once, by SETSLOT (Redis Cluster specification,
 * "hash slots configuration propagation", "replica election and promotion")
 *
 * The new holder's replicas hear of it first. Until then a holder that is lost takes its claim with it. Until the one
 * before hears of it both take themselves for the holder. Until most primaries have heard of it, a replica of the one
 * before that has not heard either can be elected with the slot.
 */
import type { SimNode } from './sim-node.ts'

/** Nodes, the replicas of the new holder (`kin`) or of the one before (`heirs`). */
export type Ear = SimNode | 'kin' | 'heirs'

/** A claim that somebody has not heard of. */
export interface Claim {
  readonly shard: number
  readonly by: SimNode
  readonly before: SimNode
  /** Who has not, and how likely each is to hear of it in one step. */
  readonly unheard: Map<Ear, number>
}

export class SlotNews {
  private readonly claims = new Map<number, Claim>()
  private readonly chanceOf: () => number

  /** `chanceOf` draws how likely somebody is to hear of a claim in one step. */
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

  /** Who could hear of it now. */
  earsOf({ by, unheard }: Claim): Ear[] {
    if (by.state !== 'primary') return []
    if (unheard.has('kin')) return ['kin']
    return [...unheard.keys()].filter((ear) => typeof ear === 'string' || ear.state === 'primary')
  }

  /** One hears of it. One that has marked the slot as coming does not listen. */
  hear(claim: Claim, ear: Ear): void {
    if (typeof ear !== 'string') {
      if (ear.importing.has(claim.shard)) return
      ear.loseShard(claim.shard)
    }
    claim.unheard.delete(ear)
    if (claim.unheard.size === 0) this.claims.delete(claim.shard)
  }

  /** It counts no more. */
  end(shard: number): void {
    this.claims.delete(shard)
  }

  /**
   * The shards with which a replica of a node is elected. `crowd` stands for most of the primaries: once it has heard
   * of a claim, it elects nobody who says otherwise.
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
