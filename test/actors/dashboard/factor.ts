/** factor - codes and factors are used once, and recovery codes come and go with the factors, each in one turn. */
import t from 'tap'
import { PASSKEYS_MAX } from '../../../schemas/limits.ts'
import { changeFactors, type FactorChange, type Shown, takeStep } from '../../../src/actors/dashboard/factor.ts'
import { addUser, indexSession } from '../../../src/actors/dashboard/user.ts'
import { challengeKey, userKey } from '../../../src/state/dashboard/places.ts'
import { USER_FIELDS, userOfRow } from '../../../src/state/dashboard/user.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)
const PASSWORD = 'scrypt'

function makeUser() {
  const world = new World(NOW_MS)
  const made = world.run(addUser, { hmac: 'h', address: 'ada@a.example', name: 'Ada', password: PASSWORD })
  if (made.kind !== 'user') throw new Error('No user')
  const { userId } = made
  const step = (id: string, endsAtMs = NOW_MS + 600_000) => ({ id, endsAtMs })
  const asked = { expects: { password: PASSWORD }, sessionId: 'own', showsFactor: true, mayBeLast: true }
  const change = (of: FactorChange, id: string | null = null, as: Partial<typeof asked> = {}) =>
    world.run(changeFactors, { userId, step: id === null ? null : step(id), change: of, ...asked, ...as })
  const take = (shown: Shown, id: string | null, password: string | null = PASSWORD, endsAtMs?: number) =>
    world.run(takeStep, { userId, step: id === null ? null : step(id, endsAtMs), expects: { password }, shown })
  const read = () => {
    const row = world.hash(userKey(world.shard, userId))
    const user = userOfRow(
      userId,
      USER_FIELDS.map((field) => row.get(field) ?? null),
    )
    if (user === null) throw new Error('No user')
    return user
  }
  return { world, userId, change, take, read }
}

const totp = (step: number, codes = ['a', 'b']): FactorChange => ({ kind: 'totp', sealed: 'sealed', step, codes })
const passkey = (credentialId: string, counter = 0, codes = ['c']): FactorChange => ({
  kind: 'passkey',
  passkey: { credentialId, publicKey: 'key', counter, transports: [], name: credentialId },
  codes,
})

t.test(
  'factor: a time step of an authenticator is accepted once, and so is a step of a sign-in [session.factor]',
  (t) => {
    const { world, change, take } = makeUser()
    change(totp(100))
    t.match(take({ kind: 'totp', step: 100 }, 'one'), { code: 'sign_in_failed' }, 'it was shown when it was set up')
    t.match(take({ kind: 'totp', step: 101 }, 'one'), { kind: 'taken' })
    t.match(take({ kind: 'totp', step: 101 }, 'two'), { code: 'sign_in_failed' })
    t.match(take({ kind: 'totp', step: 102 }, 'one'), { code: 'sign_in_failed' }, 'the step was taken')
    t.match(take({ kind: 'totp', step: 102 }, 'three', 'another'), { code: 'sign_in_failed' }, 'another password')
    t.match(take({ kind: 'totp', step: 102 }, 'four', PASSWORD, NOW_MS), { code: 'sign_in_failed' }, 'too late')
    t.match(take({ kind: 'totp', step: 102 }, null), { kind: 'taken' })
    t.ok(world.hash(challengeKey(world.shard, 'one')).has('used'))
    world.nowMs += 600_000
    world.expire()
    t.equal(world.hash(challengeKey(world.shard, 'one')).size, 0)
    t.end()
  },
)

t.test(
  'factor: a recovery code is used up, and a copied passkey is refused [session.factor] [session.passkey]',
  (t) => {
    const { change, take, read } = makeUser()
    t.match(change(passkey('one', 5)), { kind: 'factors', takesCodes: true })
    t.match(take({ kind: 'code', hmac: 'c' }, null), { kind: 'taken' })
    t.match(take({ kind: 'code', hmac: 'c' }, null), { code: 'sign_in_failed' })
    const [{ passkeyId = '' } = {}] = read().passkeys
    t.match(take({ kind: 'passkey', passkeyId, counter: 5 }, null), { code: 'sign_in_failed' })
    t.match(take({ kind: 'passkey', passkeyId, counter: 6 }, null), { kind: 'taken' })
    t.match(read().passkeys, [{ counter: 6, usedAtMs: NOW_MS }])
    change(passkey('two', 0))
    const second = read().passkeys.at(-1)?.passkeyId ?? ''
    for (const _ of [1, 2]) t.match(take({ kind: 'passkey', passkeyId: second, counter: 0 }, null), { kind: 'taken' })
    t.end()
  },
)

t.test('factor: codes come with the first factor and go with the last [session.factor]', (t) => {
  const { change, take, read } = makeUser()
  t.match(change({ kind: 'codes', codes: ['x'] }), { code: 'second_factor_required' })
  t.match(change(totp(1)), { takesCodes: true })
  t.match(change(passkey('one')), { takesCodes: false })
  t.same(read().codes, ['a', 'b'])
  t.match(change({ kind: 'codes', codes: ['x'] }), { takesCodes: true })
  t.same(read().codes, ['x'])
  const [{ passkeyId = '' } = {}] = read().passkeys
  t.match(change({ kind: 'rename', passkeyId, name: 'Phone' }), { passkeys: [{ name: 'Phone' }] })
  t.match(change({ kind: 'remove-totp' }), { kind: 'factors' })
  t.match(change({ kind: 'remove-totp' }), { code: 'not_found' })
  t.same(read().codes, ['x'])
  change({ kind: 'remove-passkey', passkeyId })
  const { totp: none, codes, passkeys } = read()
  t.same([none, codes, passkeys], [null, [], []])
  t.match(change({ kind: 'rename', passkeyId, name: 'Gone' }), { code: 'not_found' })
  t.match(take({ kind: 'totp', step: 9 }, null), { code: 'sign_in_failed' })
  t.end()
})

t.test('factor: ten passkeys, each step of setting one up once [session.passkey]', (t) => {
  const { change, read } = makeUser()
  for (let n = 0; n < PASSKEYS_MAX; n += 1) t.match(change(passkey(`${n}`), `step ${n}`), { kind: 'factors' })
  t.match(change(passkey('more')), { code: 'passkey_limit', extra: { max: PASSKEYS_MAX } })
  change({ kind: 'remove-passkey', passkeyId: read().passkeys[0]?.passkeyId ?? '' })
  t.match(change(passkey('more'), 'step 0'), { code: 'sign_in_failed' })
  t.match(change(passkey('more'), 'step x'), { kind: 'factors' })
  t.equal(read().passkeys.length, PASSKEYS_MAX)
  t.end()
})

t.test(
  'factor: a user with a factor needs it to change factors, and an outdated password is refused [session.factor]',
  (t) => {
    const { change } = makeUser()
    t.match(change(totp(1), null, { expects: { password: 'another' } }), { code: 'sign_in_failed' })
    t.match(change(totp(1), null, { showsFactor: false }), { kind: 'factors' }, 'the first')
    for (const of of [totp(2), passkey('one'), { kind: 'codes', codes: ['x'] }, { kind: 'remove-totp' }] as const)
      t.match(change(of, null, { showsFactor: false }), { code: 'confirmation_required' }, of.kind)
    t.end()
  },
)

t.test(
  'factor: of two concurrent removals the second one keeps the last factor if one is required [session.factor]',
  (t) => {
    const { change, read } = makeUser()
    change(totp(1))
    change(passkey('one'))
    const passkeyId = read().passkeys[0]?.passkeyId ?? ''
    t.match(change({ kind: 'remove-totp' }, null, { mayBeLast: false }), { kind: 'factors' })
    const second = change({ kind: 'remove-passkey', passkeyId }, null, { mayBeLast: false })
    t.match(second, { code: 'second_factor_required' })
    t.equal(read().passkeys.length, 1)
    t.end()
  },
)

t.test('factor: the first factor ends the other sessions, a second one ends none [session.factor]', (t) => {
  const { world, userId, change } = makeUser()
  const named = { userId, accountId: 'a', userAgent: '', sinceMs: null, expects: { password: PASSWORD } }
  const own = world.run(indexSession, { ...named, hash: 'own', showsFactor: false })
  world.run(indexSession, { ...named, hash: 'other', showsFactor: false })
  if (own.kind !== 'indexed') throw new Error(own.code)
  t.match(change(totp(1), null, { sessionId: own.sessionId }), { ended: [{ hash: 'other' }] })
  const more = change(passkey('one'))
  t.same('ended' in more && more.ended, [])
  t.end()
})
