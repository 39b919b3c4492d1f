/** crash-host - the service in a process of its own, for tests that end it. Argument: a crash point, or none. */

import { runUntilStopped } from '../../../src/cli/start.ts'
import { startService } from '../../../src/main.ts'
import { readConfig } from '../../../src/process/config.ts'
import { type CrashPoint, CrashShard } from '../store/crash-shard.ts'

const point = (process.argv[2] ?? null) as CrashPoint | null
const result = readConfig()
if (!result.ok) throw new Error(result.mistakes.join('; '))
const { config } = result

process.exitCode = await runUntilStopped(() =>
  startService(config, {
    isWatched: true,
    makeShard: (id, world) => {
      const shard = new CrashShard(id, world)
      shard.point = point
      return shard
    },
  }),
)
process.exit()
