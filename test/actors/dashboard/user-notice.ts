/** user-notice - each change of a user's sign-in sends a notice in its own commit, and other changes send none. */
import t from 'tap'
import { changeFactors, type FactorChange } from '../../../src/actors/dashboard/factor.ts'
import { addUser, changeUser } from '../../../src/actors/dashboard/user.ts'
import { userNoticeOfItem } from '../../../src/actors/dashboard/user-notice.ts'
import { prepareNotice } from '../../../src/actors/domain/notice.ts'
import { userKey } from '../../../src/state/dashboard/places.ts'
import { NO_FACTORS, type User } from '../../../src/state/dashboard/user.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)

function makeUser() {
  const world = new World(NOW_MS)
  const made = world.run(addUser, { hmac: 'h', address: 'ada@a.example', name: 'Ada', password: 'old' })
  if (made.kind !== 'user') throw new Error('No user')
  const { userId } = made
  const told = () => [...world.items.values()].filter(({ lane }) => lane === 'notice').map(({ item }) => item)
  const asked = { userId, step: null, expects: { password: 'old' }, sessionId: 's', showsFactor: true, mayBeLast: true }
  const change = (one: FactorChange) => world.run(changeFactors, { ...asked, change: one })
  return { world, userId, told, change }
}

t.test(
  'user-notice: each change of a factor sends a notice, a new name of a passkey does not [session.notice]',
  async (t) => {
    const { userId, told, change } = makeUser()
    change({ kind: 'totp', sealed: 'sealed', step: 1, codes: ['x'] })
    const passkey = { credentialId: 'c', publicKey: 'p', counter: 0, transports: [], name: 'Phone' }
    const added = change({ kind: 'passkey', passkey, codes: [] })
    if (added.kind !== 'factors') throw new Error(added.code)
    const passkeyId = added.passkeys[0]?.passkeyId ?? ''
    change({ kind: 'rename', passkeyId, name: 'Old phone' })
    change({ kind: 'codes', codes: ['y'] })
    change({ kind: 'remove-passkey', passkeyId })
    change({ kind: 'remove-totp' })
    const whats = ['totp', 'passkey', 'codes', 'remove-passkey', 'remove-totp']
    t.same(
      told().map((item) => userNoticeOfItem(item)),
      whats.map((what) => ({ what, userId, atMs: NOW_MS })),
    )
  },
)

t.test('user-notice: a link of the operator names the factors that it removed [session.notice]', async (t) => {
  const { world, userId, told, change } = makeUser()
  const use = (changes: Partial<User>) => {
    world.items.clear()
    world.run(changeUser, { userId, changes: { password: 'new', ...changes }, tells: 'operator-link' })
    return told().map((item) => userNoticeOfItem(item)?.what)
  }
  change({ kind: 'totp', sealed: 'sealed', step: 1, codes: ['x'] })
  t.same(use({}), ['operator-link'], 'they stay where the link does not say so')
  t.same(use(NO_FACTORS), ['operator-link-factors'])
  const [item = ''] = told()
  const job = world.run(prepareNotice, { lane: 'notice', item })
  t.match(job, { kind: 'me', what: 'operator-link-factors', address: 'ada@a.example' })
  t.same(use(NO_FACTORS), ['operator-link'], 'who had none has lost none')
})

t.test(
  'user-notice: a new password sends a notice, a name does not, and a deleted user gets none [session.notice]',
  async (t) => {
    const { world, userId, told } = makeUser()
    world.run(changeUser, { userId, changes: { name: 'Ada L.' } })
    t.same(told(), [])
    world.run(changeUser, { userId, changes: { password: 'new' } })
    const [item = ''] = told()
    t.match(world.run(prepareNotice, { lane: 'notice', item }), {
      kind: 'me',
      what: 'password',
      address: 'ada@a.example',
    })
    world.apply({ key: userKey(world.shard, userId), write: 'UNLINK', args: [] })
    t.equal(world.run(prepareNotice, { lane: 'notice', item }), null)
  },
)
