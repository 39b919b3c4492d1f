/** account-counts - the 20 accounts with the most attempts of an hour have labels, and the sums are exact. */
import t from 'tap'
import { AccountCounts, NAMED_MAX } from '../../src/process/attempts/account-counts.ts'

const PART_MS = 300_000

const shown = (counts: AccountCounts) => new Map([...counts.rows()].map(([labels, value]) => [labels.join(' '), value]))

t.test('account counts: the first 20 have labels, all others share one', async (t) => {
  const counts = new AccountCounts(() => 0)
  for (let n = 1; n <= 3_000; n += 1) counts.count(`account-${n}`, 'delivered')
  for (let n = 0; n < 25; n += 1)
    for (let times = 0; times < 10 + n; times += 1) counts.count(`account-${n + 1}`, 'bounced')
  const rows = shown(counts)
  const accounts = new Set([...rows.keys()].map((key) => key.split(' ')[0]))
  t.equal(accounts.size, NAMED_MAX + 1)
  t.equal(rows.get('account-25 bounced'), 34)
  t.notOk(accounts.has('account-1'))
  const sum = [...rows.values()].reduce((total, value) => total + value, 0)
  t.equal(sum, 3_000 + 25 * 10 + (24 * 25) / 2)
})

t.test('account counts: an hour, in parts of five minutes', async (t) => {
  let nowMs = 0
  const counts = new AccountCounts(() => nowMs)
  counts.count('a', 'delivered')
  nowMs = 6 * PART_MS
  counts.count('a', 'delivered')
  t.equal(shown(counts).get('a delivered'), 2)
  nowMs = 12 * PART_MS
  t.equal(shown(counts).get('a delivered'), 1)
  nowMs = 18 * PART_MS
  t.equal(shown(counts).size, 0)
})
