/**
 * mistakes - mistakes of operators on a running store, again and again under load, with each 200 on disk before its
 * client continues: two ways to start on one directory, a deleted directory, files that are removed or cut, settings
 * changed by hand.
 */
import { readdirSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/machine/until.ts'
import { Scene } from '../support/mistakes/scene.ts'
import { playTwoWays, type TwoWays } from '../support/mistakes/two-ways.ts'

const MESSAGES_BETWEEN = 50

export interface MistakesOptions {
  /** Rounds of two ways to start. */
  readonly ways: number
  /** Mistakes while the service runs. */
  readonly mistakes: number
  readonly random: () => number
  readonly say: (line: string) => void
}

export interface MistakesReport {
  readonly ways: TwoWays
  readonly made: number
  readonly acknowledged: number
  readonly lost: number
}

/** How long the store may take to be sound again. */
const SOUND_MS_MAX = 60_000

type Mistake = readonly [name: string, make: (scene: Scene) => unknown]

const folderOf = ({ dataDir }: Scene): string => join(dataDir, 'appendonlydir')

const MISTAKES: readonly Mistake[] = [
  ['rm -rf of the data directory', ({ dataDir }) => rmSync(dataDir, { recursive: true })],
  ['rm -rf of appendonlydir', (scene) => rmSync(folderOf(scene), { recursive: true })],
  ['a cut file', (scene) => truncateSync(join(folderOf(scene), incrOf(scene)), 10)],
  ['appendonly no', (scene) => change(scene, 'appendonly', 'no')],
  ['appendfsync everysec', (scene) => change(scene, 'appendfsync', 'everysec')],
  ['maxmemory-policy allkeys-lru', (scene) => change(scene, 'maxmemory-policy', 'allkeys-lru')],
]

/** Makes all of them. Nothing acknowledged may be lost, and the report contains the amount. */
export async function runMistakes({ ways, mistakes, random, say }: MistakesOptions): Promise<MistakesReport> {
  const clear: (() => unknown)[] = []
  const owner = { teardown: (act: () => unknown) => void clear.push(act) }
  try {
    const played = await playTwoWays(await Scene.make(owner), { rounds: ways, random })
    say(`two ways: ${JSON.stringify(played)}`)
    const scene = await Scene.make(owner)
    const service = await scene.start()
    const load = await scene.load(service, 0)
    for (let made = 0; made < mistakes; made += 1) {
      const [name, make] = MISTAKES[made % MISTAKES.length] as Mistake
      await load.passes(MESSAGES_BETWEEN)
      await make(scene)
      // So many times it has been sound again.
      await until(() => service.said().split('is durable again').length > made + 1, SOUND_MS_MAX)
      say(`${name}: taken again`)
    }
    await load.passes(MESSAGES_BETWEEN)
    await load.end()
    await service.kill('SIGTERM')
    const again = await scene.start()
    const left = await scene.lost()
    await again.kill('SIGTERM')
    return { ways: played, made: mistakes, ...left }
  } finally {
    for (const act of clear) await act()
  }
}

/** The forbidden contents of a run's report. */
export function failuresOfMistakes({ ways, lost }: MistakesReport): string[] {
  const found: string[] = []
  if (ways.mostAtOnce > 1) found.push(`${ways.mostAtOnce} redis processes were in one directory at once`)
  if (ways.lost > 0) found.push(`${ways.lost} of ${ways.acknowledged} were lost by two ways to start`)
  if (ways.refused < ways.strangers) found.push('a start with another secret was not refused')
  if (lost > 0) found.push(`${lost} were lost by mistakes`)
  return found
}

function incrOf(scene: Scene): string {
  return (
    readdirSync(folderOf(scene))
      .filter((name) => name.endsWith('.incr.aof'))
      .at(-1) ?? ''
  )
}

async function change(scene: Scene, name: string, value: string): Promise<void> {
  const redis = scene.store()
  await redis.config('SET', name, value)
  redis.disconnect()
}
