/** Tests of cluster/members.ts. */
import { test } from 'tap'
import { Members } from '../../cluster/members.ts'

const RECORD = '{"pid":1}'

/** Notes the same records every three seconds until `untilMs`. */
function beat(members: Members, records: Record<string, string>, untilMs: number): void {
  for (let atMs = 0; atMs <= untilMs; atMs += 3_000) members.note(new Map(Object.entries(records)), atMs)
}

test('members: who has no record is no more, except oneself', async (t) => {
  const members = new Members('me', () => false)
  members.note(new Map([['other', RECORD]]), 0)
  t.equal(members.isDead('gone', 0), true)
  t.equal(members.isDead('me', 0), false)
  t.equal(members.isDead('other', 0), false)
  t.same([members.knows('me'), members.knows('other'), members.knows('gone')], [true, true, false])
})

test('members: ten silent seconds are a death', async (t) => {
  const members = new Members('me', () => false)
  beat(members, { other: RECORD }, 9_000)
  t.equal(members.isDead('other', 9_999), false)
  t.equal(members.isDead('other', 10_000), true)
  t.same(members.dead(10_000), ['other'])
  t.same(members.others(10_000), [])
})

test('members: a record that changes is a life', async (t) => {
  const members = new Members('me', () => false)
  for (let atMs = 0; atMs <= 30_000; atMs += 3_000) members.note(new Map([['other', `{"beats":${atMs}}`]]), atMs)
  t.equal(members.isDead('other', 30_000), false)
  t.same(members.others(30_000), ['other'])
})

test('members: whose own beats were late judges nobody', async (t) => {
  const members = new Members('me', () => false)
  beat(members, { other: RECORD }, 9_000)
  members.note(new Map([['other', RECORD]]), 60_000)
  t.equal(members.isDead('other', 60_001), false)
  for (let atMs = 63_000; atMs <= 69_000; atMs += 3_000) members.note(new Map([['other', RECORD]]), atMs)
  t.equal(members.isDead('other', 69_999), false)
  t.equal(members.isDead('other', 70_000), true)
})

test('members: who wakes from a long pause judges nobody before it has read the records', async (t) => {
  const members = new Members('me', () => false)
  beat(members, { other: RECORD }, 9_000)
  t.equal(members.isDead('other', 100_000), false)
})

test('members: a process that is known to be gone is dead at once', async (t) => {
  const members = new Members('me', ({ pid }) => pid === 1)
  members.note(new Map([['other', RECORD]]), 0)
  t.equal(members.isDead('other', 0), true)
})
