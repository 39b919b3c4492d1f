/**
 * orders - faulty orders to move a shard. Each has one fault, in the commands it sends to nodes or in the use of their
 * answers.
 */
import { nodesAt } from '../cluster/nodes-text.ts'
import { SimClient } from '../cluster/sim-client.ts'

/** The token that an order believes it gave the shard, one per order and not per node. */
const CLAIMED = new WeakMap<object, string>()

/** Copies while the owner writes. */
export class UnfencedClient extends SimClient {
  protected override fence({ token }: { saw: string; token: string; owner: string }): number {
    CLAIMED.set(this.cluster, token)
    return 1
  }

  override async hmget(key: string, ...names: string[]): Promise<(string | null)[]> {
    const found = await super.hmget(key, ...names)
    const token = CLAIMED.get(this.cluster)
    return token === undefined ? found : [`move:${this.node.id}:`, token]
  }

  protected override free(): number {
    return 1
  }
}

/**
 * Names itself as the owner under the previous owner's token, so a process that knows the token can continue to write.
 */
export class TokenlessClient extends SimClient {
  private claimed: string | null = null

  protected override fence({ saw, token, owner }: { saw: string; token: string; owner: string }): number {
    this.claimed = token
    return super.fence({ saw, token: saw, owner })
  }

  override async hmget(key: string, ...names: string[]): Promise<(string | null)[]> {
    const [owner = null, token = null] = await super.hmget(key, ...names)
    return [owner, this.claimed ?? token]
  }
}

/** Believes that the source's replicas have the fence. */
export class TrustfulClient extends SimClient {
  override async wait(count: number, ms: number): Promise<number> {
    return this.node.shards.has(this.shard) ? count : super.wait(count, ms)
  }
}

/** Believes that the target's replicas have what it was given. */
export class HastyClient extends SimClient {
  override async wait(count: number, ms: number): Promise<number> {
    return this.node.shards.has(this.shard) ? super.wait(count, ms) : count
  }
}

/** Assumes that all nodes know what the new holder knows, and has nothing to remove. */
export class DeafClient extends SimClient {
  protected override clusterSays(words: readonly string[]): unknown {
    const { cluster, node, shard } = this
    if (words[1] === 'NODES') return nodesAt(cluster, cluster.at(shard))
    return words[1] === 'COUNTKEYSINSLOT' && node !== cluster.at(shard) ? 0 : super.clusterSays(words)
  }

  override async hmget(key: string, ...names: string[]): Promise<(string | null)[]> {
    const [owner = null, token = null] = await super.hmget(key, ...names)
    return [owner?.replace(/^move:\w+/, 'move:') ?? null, token]
  }
}

/** Takes the epochs that there are for new enough. */
export class HumbleClient extends SimClient {
  protected override clusterSays(words: readonly string[]): unknown {
    const said = super.clusterSays(words)
    return words[1] === 'INFO' ? String(said).replace(/epoch:\d+/, 'epoch:-9') : said
  }
}
