/** acquire-shard - makes a worker the owner of a shard, under a token that nobody had before. */
import { newCmdId } from './cmd-id.ts'
import type { ShardWorld } from './shard/world.ts'
import type { Meta } from './store.ts'

/** Takes `shard` from whoever has it under the token `saw` ('' for nobody yet). Null: another was quicker, or no answer. */
export async function acquireShard(
  { clock, random, store, worker }: Pick<ShardWorld, 'clock' | 'random' | 'store' | 'worker'>,
  { shard, saw }: { shard: number; saw: string },
): Promise<Meta | null> {
  const epoch = Number(saw.split(':')[0]) + 1
  const newToken = `${epoch}:${newCmdId(clock.nowMs(), random)}`
  const acquired = await store.acquire({ shard, sawToken: saw, newToken, worker })
  if (acquired.kind === 'failed' || (acquired.kind === 'changed' && acquired.meta.token !== newToken)) return null
  return { ...acquired.meta, token: newToken, owner: worker }
}
