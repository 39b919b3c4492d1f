/**
 * folder - runs the test files that `SHARED_FILES` names, a path on each line, one after another, in this one process.
 *
 * A file begins when the tests of the previous one have ended and everything it opened is closed, as if that file's
 * process had ended.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'

type Ending = () => unknown

const LOOK_STEP_MS = 2

/** Thrown if a file ends its process before its first test: something it needs is missing, and it has printed so. */
class OverEarly extends Error {}

const waiting = (process.env.SHARED_FILES ?? '').split('\n').filter(Boolean)
const { exit } = process
// A file that ends the process would take the others with it, unseen.
process.once('exit', () => {
  if (waiting.length > 0) process.exitCode = 1
})
// The handles of many files, some of which have already ended.
setMaxListeners(0, process)

for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
  const endings: Ending[] = []
  // The runner's own would wait for the end of the last file.
  Object.assign(t, { teardown: (ending: Ending) => void endings.unshift(ending) })
  const environment = { ...process.env }
  t.jobs = 1
  await begin(path)
  // It does not begin to run what was just named before the next turn.
  await pause(0)
  while (!t.idle) await pause(LOOK_STEP_MS)
  for (const ending of endings) await ending()
  // Not replaced: native code reads the environment of the process itself.
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
  Object.assign(process.env, environment)
}

async function begin(path: string): Promise<void> {
  process.exit = (code) => {
    if (code === 0) throw new OverEarly(path)
    return exit(code)
  }
  try {
    await import(path)
  } catch (error) {
    if (!(error instanceof OverEarly)) throw error
  } finally {
    process.exit = exit
  }
}
