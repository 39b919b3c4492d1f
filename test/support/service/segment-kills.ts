/**
 * segment-kills - `npm run chaos -- --segments N`: kills the service and its Redis by turns while segments of the log
 * are sealed and erased, and while bodies are packed, by the programs of `deep/crash/`
 */
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { spawnNode } from '../machine/node.ts'
import { ROOT } from '../machine/root.ts'

/** Kills of one day of mail: while it is sealed, and one more while it is erased. */
const KILLS = 9
const TAIL_CHARS = 3_000

/** Kills half of the times in each program. Returns what did not hold. */
export async function runSegmentKills(kills: number, say: (line: string) => void): Promise<string[]> {
  const rounds = Math.ceil(kills / 2 / (KILLS + 1))
  const runs = [
    { name: 'sealed', env: { ROUNDS: String(rounds), KILLS: String(KILLS) }, count: rounds * (KILLS + 1) },
    { name: 'packs', env: { KILLS: String(Math.ceil(kills / 2)) }, count: Math.ceil(kills / 2) },
  ]
  const failures: string[] = []
  for (const { name, env, count } of runs) {
    const preload = join(ROOT, 'build/test/support/machine/preload.js')
    const program = join(ROOT, `build/test/deep/crash/${name}.js`)
    const child = spawnNode(['--import', preload, program], {
      env: { ...process.env, ...env, TAP: '1', TAP_TIMEOUT: String(60 + count * 60) },
    })
    const [out, , [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    say(`${name}: ${count} kills, ${code === 0 ? 'everything once, and every object named' : 'failed'}`)
    if (code !== 0) failures.push(`${name}: ${out.slice(-TAIL_CHARS)}`)
  }
  return failures
}
