/**
 * crash-host - the service in its own process, for tests that end it. Argument: a crash point, or none.
 * `CONTENT_POINT` is the step of a write to the content store at which it ends, `ROTATION_POINT` that of a rotation of
 * the secret, which waits `SETTLING_MS` for commands.
 */

import { runUntilStopped } from '../../../src/cli/start.ts'
import { startService } from '../../../src/main.ts'
import { readConfig } from '../../../src/process/config.ts'
import { isQuickened, quickenScrypt } from '../machine/quick-scrypt.ts'
import { type ContentPoint, dieAtContent } from '../store/crash-content.ts'
import { dieAtRotation, type RotationPoint } from '../store/crash-rotation.ts'
import { type CrashPoint, CrashShard } from '../store/crash-shard.ts'

if (isQuickened()) quickenScrypt()
const point = (process.argv[2] ?? null) as CrashPoint | null
const contentPoint = process.env.CONTENT_POINT
if (contentPoint) dieAtContent(contentPoint as ContentPoint)
const rotationPoint = process.env.ROTATION_POINT
if (rotationPoint) dieAtRotation(rotationPoint as RotationPoint)
const settlingMs = Number(process.env.SETTLING_MS ?? 0)
const result = readConfig()
if (!result.ok) throw new Error(result.mistakes.join('; '))
const { config } = result

// Without await: in one file (`support/machine/one-file.ts`) a top-level await is not possible.
void runUntilStopped(() =>
  startService(config, {
    isWatched: true,
    ...(settlingMs > 0 && { settlingMs }),
    makeShard: (id, world) => new CrashShard(id, world, point),
  }),
).then((code) => process.exit(code))
