/** unless-stopped - what a work ends with, and that a stop does not wait for it. */
import t from 'tap'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import { unlessStopped } from '../../src/reception/unless-stopped.ts'

t.test('unless-stopped: a work ends as it does', async (t) => {
  const { signal } = new AbortController()
  t.equal(await unlessStopped(signal, Promise.resolve(7)), 7)
  await t.rejects(unlessStopped(signal, Promise.reject(new Error('no'))), { message: 'no' })
})

t.test('unless-stopped: a stop ends endless work, and later results are ignored', async (t) => {
  const controller = new AbortController()
  let fail: (error: Error) => void = () => undefined
  const endless = new Promise<never>((_, reject) => {
    fail = reject
  })
  const waiting = unlessStopped(controller.signal, endless)
  controller.abort()
  await t.rejects(waiting, NotPerformed)
  fail(new Error('late'))
  await t.rejects(unlessStopped(controller.signal, new Promise(() => undefined)), NotPerformed, 'stopped before')
})
