/** password - the cost of a hash, its stored form, and that a flood of tries is turned away. */
import t from 'tap'
import { hashPassword, isPassword } from '../../src/dashboard/password.ts'
import { quickScrypt, replaceScrypt, restoreScrypt, type Scrypt, scrypt } from '../support/machine/quick-scrypt.ts'

/** The arguments of scrypt. */
const asked: Parameters<Scrypt>[] = []
const costs = (from: number) => asked.slice(from).map(([, , , options]) => options)
/** Networks of clients. */
const [A, B] = ['192.0.2.1', '198.51.100.1'] as const
const REAL = { N: 32_768, r: 8, p: 3 }

replaceScrypt((...call) => {
  asked.push(call)
  scrypt(...call)
})
t.teardown(restoreScrypt)

t.test('password: 32 MiB and three passes; the right one is known again, no other is [session.password]', async (t) => {
  const stored = (await hashPassword('correct horse bättery', A)) ?? ''
  t.match(stored, /^\$scrypt\$ln=15,r=8,p=3\$[\w+/]{22}\$[\w+/]{43}$/)
  t.match(costs(0), [REAL])
  t.equal(await isPassword('correct horse bättery'.normalize('NFD'), stored, A), true, 'however it is composed')
  t.equal(await isPassword('correct horse battery', stored, A), false)
})

t.test("password: nobody's takes as much as anybody's, and is never right [session.password]", async (t) => {
  const before = asked.length
  t.equal(await isPassword('', null, A), false)
  t.match(costs(before), [REAL])
})

t.test('password: two at once; beyond twenty that wait all are refused [session.password]', async (t) => {
  const held: Parameters<Scrypt>[] = []
  replaceScrypt((...call) => held.push(call))
  const answers = Array.from({ length: 2 + 20 + 3 }, () => isPassword('a', null, A))
  t.same(await Promise.all(answers.slice(22)), [null, null, null])
  t.equal(held.length, 2)
  // Those that wait have their turn.
  replaceScrypt(quickScrypt)
  for (const call of held) quickScrypt(...call)
  t.same(new Set(await Promise.all(answers.slice(0, 22))), new Set([false]))
})

t.test(
  'password: a network with fewer waiting takes a place of the one with the most [session.password]',
  async (t) => {
    const held: Parameters<Scrypt>[] = []
    replaceScrypt((...call) => held.push(call))
    const flood = Array.from({ length: 2 + 20 }, () => isPassword('a', null, A))
    const other = isPassword('b', null, B)
    t.equal(await flood[21], null, 'the last of the flood gave its place')
    const served: unknown[] = []
    replaceScrypt((...call) => {
      served.push(call[0])
      quickScrypt(...call)
    })
    for (const call of held) quickScrypt(...call)
    t.equal(await other, false)
    t.equal(served[0], 'b', 'it has cost nothing yet')
    t.same(new Set(await Promise.all(flood.slice(0, 21))), new Set([false]))
  },
)
