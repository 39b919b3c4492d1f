/** Tests of cluster/members.ts. */
import { test } from 'tap'
import { Members } from '../../../cluster/worker/members.ts'

const RECORD = '{"pid":1}'

const recordOf = (more: object) =>
  JSON.stringify({ pid: 1, clientId: 7, runId: 'run', takesShards: true, isLeaving: false, ...more })

/** Notes the same records every three seconds until `untilMs`. */
function beat(members: Members, records: Record<string, string>, untilMs: number): void {
  for (let atMs = 0; atMs <= untilMs; atMs += 3_000) members.note(new Map(Object.entries(records)), atMs)
}

test('members: who has no record is no more, except oneself', async (t) => {
  const members = new Members('me')
  members.note(new Map([['other', RECORD]]), 0)
  t.equal(members.isDead('gone', 0), true)
  t.equal(members.isDead('me', 0), false)
  t.equal(members.isDead('other', 0), false)
  t.same([members.knows('me'), members.knows('other'), members.knows('gone')], [true, true, false])
})

test('members: ten silent seconds are a death', async (t) => {
  const members = new Members('me')
  beat(members, { other: RECORD }, 9_000)
  t.equal(members.isDead('other', 9_999), false)
  t.equal(members.isDead('other', 10_000), true)
  t.same(members.gone(10_000), [], 'it may only be frozen, and know how its attempts ended')
  t.same(members.others(10_000), [])
})

test('members: claims of who is silent stand for a minute, and of who has no record not at all', async (t) => {
  const members = new Members('me')
  beat(members, { other: RECORD }, 60_000)
  t.same([members.isDead('other', 59_999), members.isGone('other', 59_999)], [true, false])
  t.same(members.performing(59_999), ['other'])
  t.same([members.isGone('other', 60_000), members.gone(60_000).map(({ worker }) => worker)], [true, ['other']])
  t.same([members.isGone('nobody', 0), members.isGone('me', 60_000)], [true, false])
})

test('members: a record that changes is a life', async (t) => {
  const members = new Members('me')
  for (let atMs = 0; atMs <= 30_000; atMs += 3_000) members.note(new Map([['other', `{"beats":${atMs}}`]]), atMs)
  t.equal(members.isDead('other', 30_000), false)
  t.same(members.others(30_000), ['other'])
})

test('members: whose own beats were late judges nobody', async (t) => {
  const members = new Members('me')
  beat(members, { other: RECORD }, 9_000)
  members.note(new Map([['other', RECORD]]), 60_000)
  t.equal(members.isDead('other', 60_001), false)
  for (let atMs = 63_000; atMs <= 69_000; atMs += 3_000) members.note(new Map([['other', RECORD]]), atMs)
  t.equal(members.isDead('other', 69_999), false)
  t.equal(members.isDead('other', 70_000), true)
})

test('members: who wakes from a long pause judges nobody before it has read the records', async (t) => {
  const members = new Members('me')
  beat(members, { other: RECORD }, 9_000)
  t.equal(members.isDead('other', 100_000), false)
})

test('members: a process that is known to be gone is dead at once', async (t) => {
  const members = new Members('me', { processGone: ({ pid }) => pid === 1 })
  members.note(new Map([['other', RECORD]]), 0)
  t.equal(members.isDead('other', 0), true)
  t.same(
    [members.isGone('other', 0), members.performing(0), members.gone(0).map(({ worker }) => worker)],
    [true, [], ['other']],
  )
})

test('members: who is silent for three and a half seconds and has no connection any more is dead', async (t) => {
  const members = new Members('me')
  const look = (records: Record<string, string>, connected: readonly number[], atMs: number): void => {
    const clients = members.suspects(atMs, 'run')
    members.note(new Map(Object.entries(records)), atMs)
    members.asked(clients, new Set(connected), { atMs, runId: 'run' })
  }
  const records = { gone: recordOf({}), stopped: recordOf({ clientId: 8 }), before: recordOf({ runId: 'earlier' }) }
  look(records, [], 0)
  look(records, [8], 3_400)
  t.same(members.suspects(3_499, 'run'), [], 'nobody is asked for too early')
  t.same(members.suspects(3_500, 'run'), [7, 8])
  look(records, [8], 3_500)
  t.equal(members.isDead('gone', 3_500), true)
  t.equal(members.isGone('gone', 3_500), false, 'only its connection is known to be gone')
  t.equal(members.isDead('stopped', 3_500), false, 'a process that is frozen keeps its connection')
  t.equal(members.isDead('before', 3_500), false, 'ids of an earlier run of the store say nothing')
  look({ ...records, gone: recordOf({ beats: 2 }) }, [8], 4_000)
  t.equal(members.isDead('gone', 4_000), false, 'it was not')
})

test('members: who takes shards, and since when nothing has changed', async (t) => {
  const members = new Members('me')
  const note = (records: Record<string, string>, atMs: number): void =>
    members.note(new Map(Object.entries(records)), atMs)
  note({ me: recordOf({}), b: recordOf({}), a: recordOf({}), http: recordOf({ takesShards: false }) }, 1_000)
  t.same(members.takers(1_000), ['a', 'b'])
  t.equal(members.calmMs(4_000), 3_000)
  note({ b: recordOf({ beats: 2 }), a: recordOf({}), http2: recordOf({ takesShards: false }) }, 4_000)
  t.equal(members.calmMs(5_000), 4_000, 'those without shards disturb nobody')
  note({ b: recordOf({ isLeaving: true }), a: recordOf({}) }, 6_000)
  t.same(members.takers(6_000), ['a'])
  t.equal(members.calmMs(6_500), 500)
  t.equal(members.sharers(6_500), 2, 'who is about to end still ends what it did')
  note({ a: recordOf({}), http: recordOf({ takesShards: false }) }, 7_000)
  t.equal(members.sharers(7_000), 1)
  note({ http: recordOf({ takesShards: false }) }, 8_000)
  t.equal(members.sharers(8_000), 0)
})
