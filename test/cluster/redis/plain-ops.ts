/** plain-ops - the commits that the script need not check op by op, and its requests to the store for them. */
import { test } from 'tap'
import type { Op, Write } from '../../../cluster/behaviour.ts'
import { mergeOps } from '../../../cluster/facts/merge.ts'
import { journalKey, metaKey } from '../../../cluster/keyspace.ts'
import { collectLooks } from '../../../cluster/redis/plain-ops.ts'

const op = (name: string, write: Write, ...args: (string | Uint8Array)[]): Op => ({
  key: `{s001}:${name}`,
  write,
  args,
})

function looks(ops: readonly Op[], letters = ''): string[] | null {
  const found = collectLooks(mergeOps(ops, { seq: 7, nowMs: 0 }), { shard: 1, letters })
  return found === null ? null : found.map(({ kind, place, id }) => `${place} ${kind} ${id}`.trim())
}

test('plain-ops: what is asked of the store', async (t) => {
  const cases: [string, Op[], string, string[]][] = [
    ['nothing', [], '', []],
    [
      'each unknown key once',
      [op('h', 'HSET', 'a', '1'), op('z', 'ZADD', '1', 'm'), op('h', 'HDEL', 'a'), op('s', 'XADD', '*seq', 'f', 'v')],
      'j---',
      ['3 hash', '4 sorted', '5 stream 8-0'],
    ],
    ['no known key', [op('h', 'HSET', 'a', '1'), op('z', 'ZADD', 'LT', '1', 'm', '2', 'n')], 'jhz', []],
    ['a key known as another type', [op('h', 'HSET', 'a', '1')], 'jz', ['3 hash']],
    [
      'the first id of a stream',
      [op('s', 'XADD', '9-5', 'f', 'v'), op('s', 'XADD', '9-10', 'f', 'v')],
      'j-',
      ['3 stream 9-5'],
    ],
    ['a trimmed stream', [op('s', 'XTRIM', 'MINID', '5-0')], 'j-', ['3 stream']],
    ['texts and what is unlinked', [op('t', 'SET', new Uint8Array([1]), 'PXAT', '9'), op('u', 'UNLINK')], '', []],
    ['an expiry of what is there', [op('t', 'PEXPIREAT', '9')], '', ['3 there']],
    ['an expiry of what this commit makes', [op('h', 'HSET', 'a', '1'), op('h', 'PEXPIREAT', '9')], 'jh', []],
  ]
  for (const [name, ops, letters, expected] of cases) t.same(looks(ops, letters), expected, name)
})

test('plain-ops: what the script must look at itself', async (t) => {
  const cases: [string, Op[]][] = [
    ['another shard', [{ key: '{s002}:h', write: 'HSET', args: ['a', '1'] }]],
    ['the meta', [{ key: metaKey(1), write: 'HSET', args: ['tok', 'x'] }]],
    ['the journal', [{ key: journalKey(1), write: 'XADD', args: ['9-9', 'a', 'b'] }]],
    ['no command of ours', [op('h', 'INCR' as Write, 'a')]],
    ['odd fields', [op('h', 'HSET', 'a')]],
    ['nothing to delete', [op('h', 'HDEL')]],
    ['two types', [op('h', 'HSET', 'a', '1'), op('h', 'ZADD', '1', 'm')]],
    ['a text that becomes a hash', [op('h', 'SET', 'a', 'PXAT', '9'), op('h', 'HSET', 'a', '1')]],
    ['a key that comes again', [op('h', 'UNLINK'), op('h', 'HSET', 'a', '1')]],
    ['an expiry after a deletion', [op('h', 'HDEL', 'a'), op('h', 'PEXPIREAT', '9')]],
    ['an id without a number', [op('s', 'XADD', '*', 'f', 'v')]],
    ['the lowest id', [op('s', 'XADD', '0-0', 'f', 'v')]],
    ['an id of twenty digits', [op('s', 'XADD', '1-18446744073709551615', 'f', 'v')]],
    ['ids that do not rise', [op('s', 'XADD', '9-10', 'f', 'v'), op('s', 'XADD', '9-9', 'f', 'v')]],
    ['the same id', [op('s', 'XADD', '9-9', 'f', 'v'), op('s', 'XADD', '9-9', 'f', 'v')]],
    ['an entry without a value', [op('s', 'XADD', '9-9', 'f')]],
    ['another way to trim', [op('s', 'XTRIM', 'MAXLEN', '5')]],
    ['a score that is none', [op('z', 'ZADD', 'nan', 'm')]],
    ['a score with a fraction', [op('z', 'ZADD', '1.5', 'm')]],
    ['members without a score', [op('z', 'ZADD', 'XX')]],
    ['a text that stays for ever', [op('t', 'SET', 'a')]],
    ['an instant that is none', [op('t', 'SET', 'a', 'PXAT', '-1')]],
    ['arguments of an unlink', [op('t', 'UNLINK', 'a')]],
    ['too many arguments', [op('h', 'HDEL', ...Array.from({ length: 4_001 }, (_, n) => String(n)))]],
  ]
  for (const [name, ops] of cases) t.equal(looks(ops), null, name)
})
