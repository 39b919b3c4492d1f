/**
 * preload - loaded by the runner into the process of each test file before the file itself.
 *
 * tap follows every promise of the process, including those of the service, to assign uncaught errors to the test that
 * caused them. That multiplies the run time of files with many promises. Without it such an error ends the process, as
 * it ends the service, and the file has failed.
 *
 * A test that fails during its set-up leaves handles open, which would keep the process until its time limit. It ends
 * some seconds after the last test instead.
 */
import hooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const { createHook } = hooks
const NO_HOOK = { enable: () => NO_HOOK, disable: () => NO_HOOK } as hooks.AsyncHook

replaceCreateHook(() => NO_HOOK)
const { default: t } = await import('tap')
replaceCreateHook(createHook)

/** A file may still get ready for its next test. */
const LEFT_OPEN_MS_MAX = 20_000
let leaving: NodeJS.Timeout | undefined
t.on('subtestAdd', () => clearTimeout(leaving))
t.on('idle', () => {
  clearTimeout(leaving)
  if (!t.passing()) leaving = setTimeout(leave, LEFT_OPEN_MS_MAX).unref()
})

function leave(): void {
  t.comment('A test has failed, and something that was opened keeps the process')
  t.end()
  setTimeout(() => process.exit(1), 1_000)
}

function replaceCreateHook(other: typeof createHook): void {
  Object.assign(hooks, { createHook: other })
  syncBuiltinESMExports()
}
