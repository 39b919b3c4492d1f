/** The keys that the commit script need not check, because this process wrote them itself. */
import { test } from 'tap'
import type { Op } from '../../../cluster/behaviour.ts'
import { mergeOps } from '../../../cluster/facts/merge.ts'
import { entryIdOf, makeIds, sortableEntryId } from '../../../cluster/id.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { KeyTypeCache } from '../../../cluster/redis/key-type-cache.ts'
import type { Merged } from '../../../cluster/store.ts'
import { commitOf, held, openRedis, openStore, TOKEN } from '../../support/store/redis-shard.ts'

const hash: Op = { key: 'h', write: 'HSET', args: ['a', '1'] }
const sorted: Op = { key: 'z', write: 'ZADD', args: ['1', 'm'] }
const stream: Op = { key: 's', write: 'XADD', args: ['*seq', 'a', '1'] }
const KEYS = ['h', 'z', 's', 'other']

type Ids = Parameters<KeyTypeCache['look']>[2]
const NONE: Ids = { seq: 6, firstEntryId: '', lid: '' }
const made = makeIds({ shard: 1, last: '', random: () => 0.5 })
const [first, last] = [made.next(500), made.next(600)]
const FIRST_ENTRY = entryIdOf(first)
const LAST_ENTRY = entryIdOf(last)
const FRESH: Ids = { seq: 7, firstEntryId: sortableEntryId(FIRST_ENTRY), lid: last }

/** A write that does not determine the key's type. */
const touch = (key: string): Op => ({ key, write: 'ZREM', args: ['m'] })
const merged = (...ops: Op[]) => mergeOps(ops, { seq: 6, nowMs: 0 })
const letters = (known: KeyTypeCache, shard: number, ...keys: string[]): string =>
  known.look(shard, merged(...keys.map(touch)), NONE).letters
/** A commit is looked at, and confirmed. */
const note = (known: KeyTypeCache, commit: Merged, of: Ids): void => known.note(1, known.look(1, commit, of))

function lettersOf(known: KeyTypeCache, ops: readonly Op[] = [], of: Ids = { ...NONE, seq: 7 }): string {
  const { commands } = mergeOps([...KEYS.map(touch), ...ops], { seq: 7, nowMs: 0 })
  return known.look(1, { keys: KEYS, commands }, of).letters
}

test('known-keys: nothing is certain before the first confirmed commit, or after another verdict', async (t) => {
  const known = new KeyTypeCache()
  t.equal(lettersOf(known), '')
  note(known, merged(hash, sorted, stream), NONE)
  t.equal(lettersOf(known), 'jhzs-')
  t.equal(letters(known, 2, ...KEYS), '', 'nor of another shard')
  known.forget(1)
  t.equal(lettersOf(known), '')
})

test('known-keys: over a store, what a commit of before a take-over teaches is forgotten with it', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  const before = store.commit(commitOf(shard, 0))
  const taken = store.acquire({ shard, sawToken: TOKEN, newToken: '2:b', worker: 'w' })
  t.same(await before, { kind: 'ok' })
  t.match(await taken, { kind: 'ok', meta: { seq: 1 } })
  await store.views.del(claimsKey(shard))
  await store.views.set(claimsKey(shard), 'of another type')
  t.same(await store.commit(commitOf(shard, 1, { token: '2:b' })), { kind: 'badop', reason: 'hash type' })
})

test('known-keys: a key that goes, may go, or was only changed where it stands is not certain', async (t) => {
  const known = new KeyTypeCache()
  note(known, merged({ key: 'z', write: 'ZADD', args: ['XX', '1', 'm'] }), NONE)
  t.equal(lettersOf(known), 'j----')
  const gone: Op[] = [
    { key: 'h', write: 'UNLINK', args: [] },
    { key: 's', write: 'PEXPIREAT', args: ['9'] },
  ]
  note(known, merged(hash, stream, ...gone), NONE)
  t.equal(lettersOf(known), 'j----')
})

test('known-keys: an entry id that need not rise is left to the script', async (t) => {
  const adds = (id: string): readonly Op[] => [{ key: 's', write: 'XADD', args: [id, 'a', '1'] }]
  const known = new KeyTypeCache()
  const after = (of: Ids, id: string) => {
    note(known, mergeOps(adds(id), { seq: of.seq, nowMs: 0 }), of)
    return (next: string) => lettersOf(known, adds(next), { ...FRESH, seq: 7 })
  }
  const numbered = { ...FRESH, seq: 6 }
  t.equal(after(numbered, '7-0')('8-3'), 'j--s-', 'the number of the commit, after one')
  t.equal(after(numbered, '7-0')(FIRST_ENTRY), 'j----', 'a new id, after a number')
  t.equal(after(FRESH, FIRST_ENTRY)(LAST_ENTRY), 'j--s-', 'a new id, after one')
  t.equal(after(FRESH, FIRST_ENTRY)('8-3'), 'j----', 'a number, after a new id')
  t.equal(after(FRESH, FIRST_ENTRY)('499-9'), 'j----', 'one before the first')
  const [ms, low] = LAST_ENTRY.split('-') as [string, string]
  t.equal(after(FRESH, FIRST_ENTRY)(`${ms}-${low}1`), 'j----', 'one after the last')
  t.equal(after(FRESH, `${ms}-${low}1`)(LAST_ENTRY), 'j----', 'after what is above the last')
  t.equal(lettersOf(known, adds(FIRST_ENTRY)), 'j----', 'no new id at all')
})

test('known-keys: a bounded number of keys is remembered, and what is written again stays', async (t) => {
  const known = new KeyTypeCache()
  const fresh = (from: number): Op[] =>
    Array.from({ length: 1_000 }, (_, n): Op => ({ key: `k${from + n}`, write: 'HSET', args: ['a', '1'] }))
  note(known, merged(hash, sorted), NONE)
  for (let from = 0; from < 12_000; from += 1_000) note(known, merged(hash, ...fresh(from)), NONE)
  t.equal(lettersOf(known), 'jh---')
  t.equal(letters(known, 1, 'k0', 'k11999'), 'j-h')
})

test('known-keys: of a shard that was forgotten since its keys were looked up nothing is taken in', async (t) => {
  const known = new KeyTypeCache()
  note(known, merged(hash), NONE)
  const looked = known.look(1, merged(sorted), NONE)
  known.forget(1)
  known.note(1, looked)
  t.equal(lettersOf(known), '')
  note(known, merged(sorted), NONE)
  t.equal(lettersOf(known), 'j-z--')
})

test('known-keys: a key that was written as another type since is known by the last one', async (t) => {
  const known = new KeyTypeCache()
  note(known, merged(hash), NONE)
  note(known, merged({ key: 'h', write: 'SET', args: ['a', 'PXAT', '9'] }), NONE)
  t.equal(lettersOf(known), 'j----')
  note(
    known,
    merged({ key: 'h', write: 'UNLINK', args: [] }, sorted, { key: 'h', write: 'ZADD', args: ['1', 'm'] }),
    NONE,
  )
  t.equal(lettersOf(known), 'jzz--')
})
