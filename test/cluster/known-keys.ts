/** What the commit script need not look at, because this process wrote it itself. */
import { test } from 'tap'
import type { Op } from '../../cluster/behaviour.ts'
import { KnownKeys } from '../../cluster/known-keys.ts'
import { mergeOps } from '../../cluster/merge.ts'

const hash: Op = { key: 'h', write: 'HSET', args: ['a', '1'] }
const sorted: Op = { key: 'z', write: 'ZADD', args: ['1', 'm'] }
const stream: Op = { key: 's', write: 'XADD', args: ['*seq', 'a', '1'] }
const KEYS = ['h', 'z', 's', 'other']

/** A write that says nothing of the key's type. */
const touch = (key: string): Op => ({ key, write: 'ZREM', args: ['m'] })
const merged = (...ops: Op[]) => mergeOps(ops, { seq: 6, nowMs: 0 })
const letters = (known: KnownKeys, shard: number, ...keys: string[]): string =>
  known.lettersOf(shard, { keys, commands: [] }, { seq: 0, firstEntryId: '' })

function lettersOf(known: KnownKeys, ops: readonly Op[] = [], firstEntryId = ''): string {
  const { commands } = mergeOps([...KEYS.map(touch), ...ops], { seq: 7, nowMs: 0 })
  return known.lettersOf(1, { keys: KEYS, commands }, { seq: 7, firstEntryId })
}

test('known-keys: nothing is certain before the first confirmed commit, or after another verdict', async (t) => {
  const known = new KnownKeys()
  t.equal(lettersOf(known), '')
  known.note(1, merged(hash, sorted, stream))
  t.equal(lettersOf(known), 'jhzs-')
  t.equal(letters(known, 2, ...KEYS), '', 'nor of another shard')
  known.forget(1)
  t.equal(lettersOf(known), '')
})

test('known-keys: a key that goes, may go, or was only changed where it stands is not certain', async (t) => {
  const known = new KnownKeys()
  known.note(1, merged({ key: 'z', write: 'ZADD', args: ['XX', '1', 'm'] }))
  t.equal(lettersOf(known), 'j----')
  const gone: Op[] = [
    { key: 'h', write: 'UNLINK', args: [] },
    { key: 's', write: 'PEXPIREAT', args: ['9'] },
  ]
  known.note(1, merged(hash, stream, ...gone))
  t.equal(lettersOf(known), 'j----')
})

test('known-keys: an entry id that need not rise is left to the script', async (t) => {
  const known = new KnownKeys()
  const first = '000000000000500-00000000000000000007'
  const adds = (id: string): readonly Op[] => [{ key: 's', write: 'XADD', args: [id, 'a', '1'] }]
  known.note(1, merged(stream))
  t.equal(lettersOf(known, adds('8-3')), 'j--s-', 'the number of the commit')
  t.equal(lettersOf(known, adds('500-7'), first), 'j--s-', 'its first new id')
  t.equal(lettersOf(known, adds('499-9'), first), 'j----', 'one before it')
  known.note(1, merged(stream))
  t.equal(lettersOf(known, adds('500-7')), 'j----', 'no new id at all')
})

test('known-keys: a bounded number of keys is remembered, and what is written again stays', async (t) => {
  const known = new KnownKeys()
  const fresh = (from: number): Op[] =>
    Array.from({ length: 1_000 }, (_, n): Op => ({ key: `k${from + n}`, write: 'HSET', args: ['a', '1'] }))
  known.note(1, merged(hash, sorted))
  for (let from = 0; from < 4_000; from += 1_000) known.note(1, merged(hash, ...fresh(from)))
  t.equal(lettersOf(known), 'jh---')
  t.equal(letters(known, 1, 'k0', 'k3999'), 'j-h')
})
