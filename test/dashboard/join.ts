/** join - who leaves an account while he joins it again: the moments between two steps, one after the other */
import t from 'tap'
import { makeIds } from '../../cluster/id.ts'
import type { DashboardDeps } from '../../src/dashboard/deps.ts'
import { leave } from '../../src/dashboard/join.ts'
import { fieldsOfUser, USER_FIELDS } from '../../src/state/dashboard/user.ts'

const ids = makeIds({ shard: 7, last: '', random: Math.random })
const [userId, accountId] = [ids.next(1_000), ids.next(1_000)]
const user = { address: 'ada@example.com', name: 'Ada', password: null, createdAtMs: 1, linkRound: 0, joins: 3 }
const row = fieldsOfUser({ ...user, accounts: [accountId] })
const fields = USER_FIELDS.map((name) => (row.includes(name) ? String(row[row.indexOf(name) + 1]) : null))

/** Leaves while the account says of him, look by look, whether he is a member. Out: what his list was told. */
async function leaveWhile(...isMember: readonly boolean[]): Promise<object[]> {
  const told: object[] = []
  const looks = [...isMember]
  const deps = {
    read: async (_shard: number, [fact]: readonly { readonly read: string }[]) =>
      fact?.read === 'fields' ? [fields] : [new Map(looks.shift() ? [[userId, '["r",1]']] : [])],
    ask: async (_shard: number, { name, body }: { readonly name: string; readonly body: object }) => {
      const { isMember: joins } = body as { isMember: boolean }
      told.push({ name, isMember: joins })
      return { kind: 'answer', reply: { kind: 'joined', isDone: true } }
    },
    newCmdId: () => 'c',
    nowMs: () => 2_000,
    secrets: { loginHmac: () => 'h' },
  }
  t.equal(await leave(deps as unknown as DashboardDeps, { userId, address: user.address }, accountId), null)
  t.equal(looks.length, 0, 'the account was asked as often')
  return told
}

t.test('join: the list follows what the account says [member.index]', async (t) => {
  t.same(await leaveWhile(true), [], 'a member stays')
  t.same(await leaveWhile(false, false), [{ name: 'join-account', isMember: false }])
})

t.test('join: who joins in the midst of a leave is put back by it, too [member.index]', async (t) => {
  t.same(await leaveWhile(false, true), [
    { name: 'join-account', isMember: false },
    { name: 'join-account', isMember: true },
  ])
})
