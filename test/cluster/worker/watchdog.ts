/** Tests of cluster/watchdog.ts: a process that hangs is ended, one that was stopped and continues is not. */
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'tap'
import { spawnNode } from '../../support/machine/node.ts'
import { ROOT } from '../../support/machine/root.ts'

const URL_OF_IT = join(ROOT, 'build/cluster/worker/watchdog.js')
const HOST = `
  const { startWatchdog } = await import(${JSON.stringify(URL_OF_IT)})
  const end = startWatchdog({ tickMs: 50, ticksMax: 50 })
  setInterval(() => console.log('tick'), 20)
  process.stdin.resume()
  process.on('SIGUSR2', function hangs() { for (;;); })
  process.on('SIGTERM', async () => { await end(); process.exit(0) })
`

test('watchdog: a loop that hangs ends the process; a stop of the whole process does not', async (t) => {
  const child = spawnNode(['--input-type=module', '-e', HOST])
  const ended = once(child, 'close')
  let ticks = 0
  child.stdout.on('data', () => (ticks += 1))
  const tick = async (): Promise<void> => {
    const before = ticks
    while (ticks < before + 5) await once(child.stdout, 'data')
  }
  await tick()
  child.kill('SIGSTOP')
  // Eighty ticks pass meanwhile, and the process makes none of them.
  await new Promise((resolve) => setTimeout(resolve, 4_000))
  child.kill('SIGCONT')
  await tick()
  t.equal(child.exitCode ?? child.signalCode, null, 'goes on')
  let said = ''
  child.stderr.on('data', (piece) => (said += piece))
  child.kill('SIGUSR2')
  t.same(await ended, [null, 'SIGKILL'], 'is ended')
  t.match(said, /The loop has not turned .*\n {2}at hangs /, 'and says where it was')
})

test('watchdog: ended, it ends nothing', async (t) => {
  const child = spawnNode(['--input-type=module', '-e', HOST])
  const ended = once(child, 'close')
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  t.same(await ended, [0, null])
})
