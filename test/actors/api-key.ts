/** api-key - what stands under a key's hash, there and back. */

import t from 'tap'
import {
  firstKeyOps,
  holdsKey,
  OPERATOR_OWNER,
  packToken,
  unpackApiKey,
  unpackToken,
} from '../../src/actors/api-key.ts'
import { apiKeyKey, tokensKey } from '../../src/actors/keyspace.ts'

const SERVER_KEY = {
  kind: 'server',
  accountId: 'acc',
  serverId: 'srv',
  tokenId: 'tok',
  mode: 'test',
  streamId: 'str',
} as const

t.test('api-key: a first key is found by its hash and listed with its owner', async (t) => {
  const [record, token] = firstKeyOps(3, { hash: 'h', prefix: 'sk_1' }, { ...SERVER_KEY, createdAtMs: 5 })
  t.equal(record?.key, apiKeyKey(3, 'h'))
  t.same(unpackApiKey(mapOf(record?.args ?? [])), { ...SERVER_KEY, revokedAtMs: null })
  t.equal(token?.key, tokensKey(3, 'srv'))
  const listed = unpackToken(String(token?.args[1]))
  t.same(listed, { name: 'First key', prefix: 'sk_1', hash: 'h', createdAtMs: 5, revokedAtMs: null })
})

t.test('api-key: an operator’s key has no account, no server and no mode', async (t) => {
  const owner = {
    ...SERVER_KEY,
    kind: 'operator' as const,
    accountId: null,
    serverId: null,
    mode: null,
    streamId: null,
  }
  const [record, token] = firstKeyOps(0, { hash: 'h', prefix: 'ok_1' }, { ...owner, createdAtMs: 5 })
  t.same(unpackApiKey(mapOf(record?.args ?? [])), { ...owner, revokedAtMs: null })
  t.equal(token?.key, tokensKey(0, OPERATOR_OWNER))
})

t.test('api-key: nothing under a hash, revoked, live', async (t) => {
  t.equal(unpackApiKey(new Map()), null)
  const revoked = mapOf(['kind', 'account', 'accountId', 'a', 'tokenId', 't', 'revoked', '77'])
  t.equal(unpackApiKey(revoked)?.revokedAtMs, 77)
  const token = { name: 'n', prefix: 'p', hash: 'h', createdAtMs: 1, revokedAtMs: 9 }
  t.same(unpackToken(packToken(token)), token)
  t.ok(holdsKey([{ tokenId: 't', hash: 'h' }], 'h'))
  t.notOk(holdsKey([{ tokenId: 'h', hash: 't' }], 'h'))
  t.notOk(holdsKey([], 'h'))
})

function mapOf(args: readonly (string | Uint8Array)[]): Map<string, string> {
  const map = new Map<string, string>()
  for (let index = 0; index < args.length; index += 2) map.set(String(args[index]), String(args[index + 1]))
  return map
}
