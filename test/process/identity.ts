/** identity - a living process, an ended one, and one of another boot. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { isProcessGone, processIdentity } from '../../src/process/identity.ts'

const self = processIdentity()

t.test('this process lives', (t) => {
  t.equal(isProcessGone(self, self), false)
  t.end()
})

t.test('an ended process is gone', async (t) => {
  const child = spawn('true')
  await once(child, 'exit')
  t.equal(isProcessGone({ ...self, pid: child.pid as number }, self), true)
})

t.test('a process id that was given out again is another process', (t) => {
  t.equal(isProcessGone({ ...self, startTime: '1' }, self), true)
  t.end()
})

t.test('nothing is told of another boot or another namespace', (t) => {
  const gone = { ...self, startTime: '1' }
  t.equal(isProcessGone({ ...gone, bootId: 'another' }, self), false)
  t.equal(isProcessGone({ ...gone, pidNamespace: 'another' }, self), false)
  t.end()
})
