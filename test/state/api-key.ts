/** api-key - the row of a key's hash, packed and unpacked. */

import t from 'tap'
import { makeIds } from '../../cluster/id.ts'
import {
  applyKeyEvent,
  hasLiveKey,
  newKeyOps,
  OPERATOR_OWNER,
  packToken,
  unpackApiKey,
  unpackToken,
} from '../../src/state/api-key.ts'
import { apiKeyKey, tokenIdsKey, tokensKey } from '../../src/state/keys.ts'

const TOKEN_ID = makeIds({ shard: 3, last: '', random: () => 0 }).next(77)

const SERVER_KEY = {
  kind: 'server',
  accountId: 'acc',
  serverId: 'srv',
  tokenId: TOKEN_ID,
  name: 'Shop',
  mode: 'test',
  streamId: 'str',
  createdAtMs: 5,
} as const
const { name: _name, createdAtMs: _createdAtMs, ...OWNER } = SERVER_KEY

t.test('api-key: a new key is found by its hash and listed with its owner', async (t) => {
  const [record, token, listing] = newKeyOps(3, { hash: 'h', prefix: 'sk_1' }, SERVER_KEY)
  t.equal(record?.key, apiKeyKey(3, 'h'))
  t.same(unpackApiKey(mapOf(record?.args ?? [])), { ...OWNER, revokedAtMs: null, role: null })
  t.equal(token?.key, tokensKey(3, 'srv'))
  const listed = unpackToken(String(token?.args[1]))
  t.same(listed, { name: 'Shop', prefix: 'sk_1', hash: 'h', createdAtMs: 5, revokedAtMs: null })
  t.same(listing, { key: tokenIdsKey(3, 'srv'), write: 'ZADD', args: ['77', TOKEN_ID] })
})

t.test('api-key: an operator’s key has no account, no server and no mode', async (t) => {
  const owner = {
    ...OWNER,
    kind: 'operator' as const,
    accountId: null,
    serverId: null,
    mode: null,
    streamId: null,
  }
  const [record, token] = newKeyOps(0, { hash: 'h', prefix: 'ok_1' }, { ...owner, name: 'First key', createdAtMs: 5 })
  t.same(unpackApiKey(mapOf(record?.args ?? [])), { ...owner, revokedAtMs: null, role: 'admin' })
  t.equal(token?.key, tokensKey(0, OPERATOR_OWNER))
})

t.test('api-key: nothing under a hash, revoked, live', async (t) => {
  t.equal(unpackApiKey(new Map()), null)
  const revoked = mapOf(['kind', 'account', 'accountId', 'a', 'tokenId', 't', 'revoked', '77'])
  t.equal(unpackApiKey(revoked)?.revokedAtMs, 77)
  const token = { name: 'n', prefix: 'p', hash: 'h', createdAtMs: 1, revokedAtMs: 9 }
  t.same(unpackToken(packToken(token)), token)
  for (const one of [
    { ...token, role: 'support' as const },
    { ...token, revokedAtMs: null, role: 'readOnly' as const, usedAtMs: 7 },
  ])
    t.same(unpackToken(packToken(one)), one)
  t.ok(hasLiveKey([{ tokenId: 't', hash: 'h' }], 'h'))
  t.notOk(hasLiveKey([{ tokenId: 'h', hash: 't' }], 'h'))
  t.notOk(hasLiveKey([], 'h'))
})

function mapOf(args: readonly (string | Uint8Array)[]): Map<string, string> {
  const map = new Map<string, string>()
  for (let index = 0; index < args.length; index += 2) map.set(String(args[index]), String(args[index + 1]))
  return map
}

t.test('api-key: live keys after one is made and one revoked', async (t) => {
  const made = applyKeyEvent([{ tokenId: 'a', hash: '1' }], { type: 'key-made', key: { tokenId: 'b', hash: '2' } })
  t.same(
    made.map(({ tokenId }) => tokenId),
    ['a', 'b'],
  )
  t.same(applyKeyEvent(made, { type: 'key-revoked', tokenId: 'a' }), [{ tokenId: 'b', hash: '2' }])
  t.same(applyKeyEvent(made, { type: 'key-revoked', tokenId: 'c' }), made)
})
