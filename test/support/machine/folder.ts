/**
 * folder - runs the test files that `SHARED_FILES` names, a path on each line, one after another, in this one process.
 *
 * A file begins when the tests of the one before have ended and what it had opened is closed, as if that one's process
 * had ended.
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'

type Ending = () => unknown

const LOOK_STEP_MS = 2

const waiting = (process.env.SHARED_FILES ?? '').split('\n').filter(Boolean)
// A file that ends the process would take the others with it, unseen.
process.once('exit', () => {
  if (waiting.length > 0) process.exitCode = 1
})

for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
  const endings: Ending[] = []
  // The runner's own would wait for the end of the last file.
  Object.assign(t, { teardown: (ending: Ending) => void endings.unshift(ending) })
  const environment = { ...process.env }
  t.jobs = 1
  await import(path)
  // It does not begin to run what was just named before the next turn.
  await pause(0)
  while (!t.idle) await pause(LOOK_STEP_MS)
  for (const ending of endings) await ending()
  process.env = environment
}
