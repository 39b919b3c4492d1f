/** clock-sync - what the system says of its clock, and what is made of silence. */

import t from 'tap'
import { readClockSync } from '../../src/health/clock-sync.ts'

const refuse = () => Promise.reject(new Error('System has not been booted with systemd'))
const says = (text: string) => () => Promise.resolve(text)

const CASES: readonly [title: string, ask: () => Promise<string>, hasFile: boolean, kept: boolean | null][] = [
  ['it is', says('yes\n'), false, true],
  ['it is not', says('no\n'), false, false],
  ['it is not any more', says('no\n'), true, false],
  ['nobody can be asked', refuse, false, null],
  ['nobody can be asked, but it was set', refuse, true, true],
  ['an answer that is none', says('NTPSynchronized=maybe\n'), false, null],
]
for (const [title, ask, hasFile, kept] of CASES)
  t.test(`health: clock synchronized: ${title} [operator.health]`, async (t) => {
    const exists = (path: string) => hasFile && path === '/run/systemd/timesync/synchronized'
    t.equal(await readClockSync({ ask, exists }), kept)
  })

t.test('health: the system itself is asked in bounded time', async (t) => {
  const startedAtMs = performance.now()
  t.ok([true, false, null].includes(await readClockSync()))
  t.ok(performance.now() - startedAtMs < 10_000)
})
