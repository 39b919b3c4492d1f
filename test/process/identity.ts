/** identity - a living process, an ended one, and one of another boot. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
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

t.test('a process that /proc hides is not called gone', async (t) => {
  const path = fileURLToPath(new URL('../../src/process/identity.js', import.meta.url))
  const code = `
    const { existsSync } = await import('node:fs')
    const { isProcessGone } = await import(${JSON.stringify(path)})
    const isHidden = !existsSync('/proc/${self.pid}/stat')
    console.log(JSON.stringify({ isHidden, isGone: isProcessGone(${JSON.stringify(self)}) }))`
  // A root without capabilities may not look at one that has some, and is not in the group that may look at all.
  const reduced = ['--regid=65534', '--clear-groups', '--inh-caps=-all', '--bounding-set=-all']
  const without = ['setpriv', ...reduced, process.execPath, '--input-type=module', '-e']
  const mounted = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
  const args = ['--mount', '--propagation=private', 'sh', '-c', mounted, 'sh', ...without, code]
  const { NODE_OPTIONS: _loader, ...env } = process.env
  const { status, stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8', env })
  if (status !== 0) return t.pass('hidden', { skip: `no mount can be made here: ${stderr.slice(0, 200)}` })
  t.same(JSON.parse(stdout), { isHidden: true, isGone: false })
})
