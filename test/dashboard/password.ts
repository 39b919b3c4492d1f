/** password - what a hash costs, what is stored of it, and that a flood of tries is turned away. */
import t from 'tap'
import { hashPassword, isPassword } from '../../src/dashboard/password.ts'
import { quickScrypt, replaceScrypt, restoreScrypt, type Scrypt, scrypt } from '../support/machine/quick-scrypt.ts'

/** What scrypt was called with. */
const asked: Parameters<Scrypt>[] = []
const costs = (from: number) => asked.slice(from).map(([, , , options]) => options)
const REAL = { N: 32_768, r: 8, p: 3 }

replaceScrypt((...call) => {
  asked.push(call)
  scrypt(...call)
})
t.teardown(restoreScrypt)

t.test('password: 32 MiB and three passes; the right one is known again, no other is [session.password]', async (t) => {
  const stored = (await hashPassword('correct horse bättery')) ?? ''
  t.match(stored, /^\$scrypt\$ln=15,r=8,p=3\$[\w+/]{22}\$[\w+/]{43}$/)
  t.match(costs(0), [REAL])
  t.equal(await isPassword('correct horse bättery'.normalize('NFD'), stored), true, 'however it is composed')
  t.equal(await isPassword('correct horse battery', stored), false)
})

t.test("password: nobody's takes as much as anybody's, and is never right [session.password]", async (t) => {
  const before = asked.length
  t.equal(await isPassword('', null), false)
  t.match(costs(before), [REAL])
})

t.test('password: two at once; beyond twenty that wait nobody is let in [session.password]', async (t) => {
  const held: Parameters<Scrypt>[] = []
  replaceScrypt((...call) => held.push(call))
  const answers = Array.from({ length: 2 + 20 + 3 }, () => isPassword('a', null))
  t.same(await Promise.all(answers.slice(22)), [null, null, null])
  t.equal(held.length, 2)
  // Those that wait have their turn.
  replaceScrypt(quickScrypt)
  for (const call of held) quickScrypt(...call)
  t.same(new Set(await Promise.all(answers.slice(0, 22))), new Set([false]))
})
