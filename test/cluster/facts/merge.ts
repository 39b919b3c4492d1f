/** merge - which writes become one command, and which must not. */
import t from 'tap'
import type { Op, Write } from '../../../cluster/behaviour.ts'
import { mergeOps } from '../../../cluster/facts/merge.ts'

const LATER = '2000000'
const SOON = '1005000'
const op = (key: string, write: Write, ...args: string[]): Op => ({ key, write, args })

/** name, ops, commands as `place write args` */
const CASES: [string, Op[], string[]][] = [
  ['nothing', [], []],
  [
    'fields of one hash',
    [op('h', 'HSET', 'a', '1'), op('i', 'HSET', 'a', '1'), op('h', 'HSET', 'a', '2')],
    ['3 HSET a 1 a 2', '4 HSET a 1'],
  ],
  [
    'another write between',
    [op('h', 'HSET', 'a', '1'), op('h', 'HDEL', 'a'), op('h', 'HSET', 'b', '1')],
    ['3 HSET a 1', '3 HDEL a', '3 HSET b 1'],
  ],
  ['odd fields stay alone', [op('h', 'HSET', 'a'), op('h', 'HSET', 'b')], ['3 HSET a', '3 HSET b']],
  ['deletions', [op('h', 'HDEL', 'a'), op('h', 'HDEL', 'b', 'c')], ['3 HDEL a b c']],
  ['none to delete', [op('h', 'HDEL'), op('h', 'HDEL', 'b')], ['3 HDEL', '3 HDEL b']],
  [
    'members',
    [op('z', 'ZADD', '1', 'a'), op('z', 'ZADD', '2', 'b'), op('z', 'ZREM', 'a'), op('z', 'ZREM', 'c')],
    ['3 ZADD 1 a 2 b', '3 ZREM a c'],
  ],
  ['one flag', [op('z', 'ZADD', 'LT', '1', 'a'), op('z', 'ZADD', 'LT', '0', 'a')], ['3 ZADD LT 1 a 0 a']],
  [
    'two flags',
    [op('z', 'ZADD', 'LT', '1', 'a'), op('z', 'ZADD', '2', 'a'), op('z', 'ZADD', 'XX', '2', 'a')],
    ['3 ZADD LT 1 a', '3 ZADD 2 a', '3 ZADD XX 2 a'],
  ],
  [
    'entries stay, and are numbered per key',
    [op('x', 'XADD', '*seq', 'a', 'b'), op('y', 'XADD', '*seq', 'a', 'b'), op('x', 'XADD', '*seq', 'a', 'c')],
    ['3 XADD 8-0 a b', '4 XADD 8-0 a b', '3 XADD 8-1 a c'],
  ],
  [
    'a later expiry',
    [op('h', 'HSET', 'a', '1'), op('h', 'PEXPIREAT', LATER), op('h', 'HSET', 'b', '1'), op('h', 'PEXPIREAT', LATER)],
    ['3 HSET a 1 b 1', '3 PEXPIREAT 2000000'],
  ],
  [
    'an expiry that may be over',
    [op('h', 'HSET', 'a', '1'), op('h', 'PEXPIREAT', SOON), op('h', 'HSET', 'b', '1')],
    ['3 HSET a 1', '3 PEXPIREAT 1005000', '3 HSET b 1'],
  ],
  [
    'an expiry before any write',
    [op('h', 'PEXPIREAT', LATER), op('h', 'HSET', 'a', '1'), op('h', 'PEXPIREAT', LATER)],
    ['3 PEXPIREAT 2000000', '3 HSET a 1', '3 PEXPIREAT 2000000'],
  ],
  [
    'another expiry',
    [op('h', 'HSET', 'a', '1'), op('h', 'PEXPIREAT', LATER), op('h', 'PEXPIREAT', '3000000')],
    ['3 HSET a 1', '3 PEXPIREAT 2000000', '3 PEXPIREAT 3000000'],
  ],
  [
    'after an unlink',
    [op('h', 'HSET', 'a', '1'), op('h', 'UNLINK'), op('h', 'HSET', 'a', '1')],
    ['3 HSET a 1', '3 UNLINK', '3 HSET a 1'],
  ],
]

t.test('merge: consecutive writes of one kind to one key are one command', async (t) => {
  for (const [name, ops, commands] of CASES) {
    const merged = mergeOps(ops, { seq: 7, nowMs: 1_000_000 })
    const shown = merged.commands.map(({ place, write, parts }) => [place, write, ...parts.flat()].join(' '))
    t.same(shown, commands, name)
    for (const { parts, count } of merged.commands) t.equal(count, parts.flat().length)
  }
})

t.test('merge: a command never takes more arguments than a script can', async (t) => {
  const ops = Array.from({ length: 2_500 }, (_, index) => op('h', 'HSET', `f${index}`, 'v'))
  const { commands, keys } = mergeOps(ops, { seq: 0, nowMs: 0 })
  t.same(keys, ['h'])
  t.same(
    commands.map(({ count }) => count),
    [4_000, 1_000],
  )
})
