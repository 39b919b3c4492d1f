/**
 * move-order - a process that moves a shard of a Redis Cluster and ends itself with SIGKILL once a step is done: its
 * lock, its marks and its connections are left as they are
 *
 * Arguments: addresses of nodes with commas, the shard, `host:port` of its target, the step.
 */
import { moveShards } from '../../../src/store/cluster/move-shards.ts'

const [seeds = '', shard = '', to = '', step = ''] = process.argv.slice(2)
await moveShards(
  { redisUrls: seeds.split(','), durability: 'replica' },
  {
    shards: [Number(shard)],
    to,
    progress: () => undefined,
    done: () => undefined,
    at: (done) => {
      if (done === step) process.kill(process.pid, 'SIGKILL')
    },
  },
)
