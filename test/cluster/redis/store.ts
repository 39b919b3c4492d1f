/** store - every verdict and request on a real Redis: a full store, forgotten scripts, refused settings. */
import { Redis } from 'ioredis'
import t from 'tap'
import type { Entry, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf, makeIds, sortableEntryId } from '../../../cluster/id.ts'
import {
  claimsKey,
  journalKey,
  mailboxKey,
  metaKey,
  repliesKey,
  stagedKey,
  topicName,
} from '../../../cluster/keyspace.ts'
import type { Bell, Parcel, Receivers } from '../../../cluster/store.ts'
import { until } from '../../support/machine/until.ts'
import { commitOf, held, openRedis, openStore, RECORD, set, TOKEN } from '../../support/store/redis-shard.ts'

const WAIT_MS = 60_000

t.test('redis store: verdicts', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)

  await t.test('a commit is done once: ok, then dup, then conflict', async (t) => {
    const shard = await held(store, 1)
    const first = commitOf(shard, 0, { cursor: '5-0', outcomesCursor: '6-0', note: 'works=1' })
    t.same(await store.commit(first), { kind: 'ok' })
    t.same(await store.commit(first), { kind: 'dup' })
    t.same(await store.commit(commitOf(shard, 1)), { kind: 'ok' })
    t.same(await store.commit(first), { kind: 'conflict', seq: 2 })
    t.same(await store.commit(commitOf(shard, 9)), { kind: 'conflict', seq: 2 })
    const journal = await store.views.xrange(journalKey(shard), '-', '+')
    t.same(journal, [
      ['1-0', ['c', `${TOKEN}:0`, 'n', 'works=1']],
      ['2-0', ['c', `${TOKEN}:1`, 'n', 'n']],
    ])
    t.match(await store.metas([shard, 99]), [
      { seq: 2, last: `${TOKEN}:1`, cursor: '5-0', outcomesCursor: '6-0', owner: 'w' },
      null,
    ])
  })

  await t.test('another token is fenced, and finds what the next owner found', async (t) => {
    const shard = await held(store, 2)
    await store.commit(commitOf(shard, 0))
    t.equal(await store.fenced({ shard, token: TOKEN }), null)
    const next = await store.acquire({ shard, sawToken: TOKEN, newToken: '2:b', worker: 'v' })
    t.match(next, { kind: 'ok', meta: { owner: 'v', token: '2:b', seq: 1, tries: 2 } })
    t.match(await store.acquire({ shard, sawToken: TOKEN, newToken: '2:c', worker: 'u' }), {
      kind: 'changed',
      meta: { token: '2:b' },
    })
    t.same(await store.commit(commitOf(shard, 1)), { kind: 'fenced' })
    t.same(await store.fenced({ shard, token: TOKEN }), { seq: 1, last: `${TOKEN}:0` })
    t.equal(await store.release({ shard, token: TOKEN }), false)
    t.equal(await store.release({ shard, token: '2:b' }), true)
    t.match(await store.metas([shard]), [{ owner: '', token: '2:b' }])
    const left = Number(await store.views.pttl(`{s002}:fenced:${TOKEN}`))
    t.ok(left > 3_500_000 && left <= 3_600_000)
  })

  await t.test('past its deadline a commit is late, off the clock it is not done', async (t) => {
    const shard = await held(store, 3)
    const nowMs = Date.now()
    const late = await store.commit(commitOf(shard, 0, { deadlineMs: nowMs - 1_000 }))
    t.ok(late.kind === 'late' && late.nowMs >= nowMs && late.nowMs <= Date.now())
    const clock = await store.commit(commitOf(shard, 0, { nowMs: nowMs - 6_000 }))
    t.ok(clock.kind === 'clock' && clock.nowMs >= nowMs)
    t.match(await store.commit(commitOf(shard, 0, { nowMs: nowMs + 60_000 })), { kind: 'clock' })
    t.equal(await store.views.exists(journalKey(shard), claimsKey(shard)), 0, 'nothing was written')
    const near = { deadlineMs: nowMs + 60_000, nowMs: Date.now() - 3_000 }
    t.same(await store.commit(commitOf(shard, 0, near)), { kind: 'ok' })
  })

  await t.test('a journal that contradicts meta is torn for the worker that takes the shard', async (t) => {
    const shard = await held(store, 4)
    await store.commit(commitOf(shard, 0))
    await store.views.hset(metaKey(shard), 'seq', '5')
    await store.acquire({ shard, sawToken: TOKEN, newToken: TOKEN, worker: 'w' })
    t.match(await store.commit(commitOf(shard, 5)), { kind: 'torn', reason: 'Journal ends at 1-0, meta at 5' })
    await store.views.hset(metaKey(shard), 'seq', '0')
    t.match(await store.commit(commitOf(shard, 0, { commitId: 'x' })), { kind: 'torn' })
    await store.views.unlink(journalKey(shard))
    await store.views.set(journalKey(shard), 'of another type')
    t.match(await store.commit(commitOf(shard, 0)), { kind: 'torn', reason: 'The store failed: WRONGTYPE' })
  })

  await t.test('one odd op and nothing is written', async (t) => {
    const shard = await held(store, 5)
    await store.views.rpush('{s005}:list', 'x')
    const big = Array.from({ length: 4_002 }, (_, index) => `a${index}`)
    const odd: [Op, string][] = [
      [{ key: '{s005}:list', write: 'HSET', args: ['a', 'b'] }, 'hash type'],
      [{ key: '{s005}:list', write: 'XADD', args: ['1-1', 'a', 'b'] }, 'stream type'],
      [{ key: '{s005}:list', write: 'ZREM', args: ['a'] }, 'sorted type'],
      [{ key: '{s005}:list', write: 'XTRIM', args: ['MINID', '1-0'] }, 'stream type'],
      [{ key: '{s005}:h', write: 'INCR' as 'HSET', args: ['a', 'b'] }, 'INCR write'],
      [{ key: '{s005}:h', write: 'HSET', args: ['a'] }, 'HSET pairs'],
      [{ key: '{s005}:h', write: 'HSET', args: big }, 'count'],
      [{ key: '{s005}:t', write: 'SET', args: ['a'] }, 'SET arguments'],
      [{ key: '{s005}:t', write: 'SET', args: ['a', 'PXAT', '-1'] }, 'SET arguments'],
      [{ key: '{s005}:x', write: 'XADD', args: ['*', 'a', 'b'] }, 'XADD id'],
      [{ key: '{s005}:x', write: 'XADD', args: ['0-0', 'a', 'b'] }, 'XADD order'],
      [{ key: '{s005}:x', write: 'XTRIM', args: ['MAXLEN', '5'] }, 'XTRIM arguments'],
      [{ key: '{s005}:x', write: 'XTRIM', args: ['MINID', ''] }, 'XTRIM id'],
      [{ key: '{s005}:z', write: 'ZADD', args: ['CH', '1', 'a'] }, 'ZADD pairs'],
      [{ key: '{s005}:z', write: 'ZADD', args: ['nan', 'a'] }, 'ZADD score'],
      [{ key: metaKey(shard), write: 'HSET', args: ['tok', 'mine'] }, 'key'],
      [{ key: '{s006}:h', write: 'HSET', args: ['a', 'b'] }, 'key'],
    ]
    for (const [op, reason] of odd)
      t.same(await store.commit(commitOf(shard, 0, { ops: [set(shard, 0), op] })), { kind: 'badop', reason }, reason)
    const gone: Op = { key: '{s005}:gone', write: 'PEXPIREAT', args: ['9999999999999'] }
    t.same(await store.commit(commitOf(shard, 0, { ops: [set(shard, 0), gone] })), {
      kind: 'missing',
      key: '{s005}:gone',
    })
    t.equal(await store.views.exists(claimsKey(shard), journalKey(shard)), 0)
  })

  await t.test('entry ids rise per key, even in a stream that was trimmed to nothing', async (t) => {
    const shard = await held(store, 6)
    const key = '{s006}:x'
    const add = (id: string): Op => ({ key, write: 'XADD', args: [id, 'a', 'b'] })
    const low = '18446744073709551614'
    t.same(await store.commit(commitOf(shard, 0, { ops: [add(`7-${low}`), add('7-18446744073709551615')] })), {
      kind: 'ok',
    })
    t.match(await store.commit(commitOf(shard, 1, { ops: [add(`7-${low}`)] })), { kind: 'badop', reason: 'XADD order' })
    t.match(await store.commit(commitOf(shard, 1, { ops: [add('9-1'), add('9-1')] })), { kind: 'badop' })
    t.same(await store.commit(commitOf(shard, 1, { ops: [{ key, write: 'XTRIM', args: ['MINID', '99-0'] }] })), {
      kind: 'ok',
    })
    t.equal(await store.views.xlen(key), 0)
    t.match(await store.commit(commitOf(shard, 2, { ops: [add('7-5')] })), { kind: 'badop', reason: 'XADD order' })
    t.same(
      await store.commit(commitOf(shard, 2, { ops: [{ key, write: 'UNLINK', args: [] }, add('*seq'), add('*seq')] })),
      { kind: 'ok' },
    )
    t.same(
      (await store.views.xrange(key, '-', '+')).map(([id]) => id),
      ['3-0', '3-1'],
    )
  })

  await t.test('a new id that is not above the last one given out is refused', async (t) => {
    const shard = await held(store, 7)
    const ids = makeIds({ shard, last: '', random: () => 0.5 })
    const [low, high] = [ids.next(Date.now()), ids.next(Date.now())]
    const entryOf = (id: string) => sortableEntryId(entryIdOf(id))
    t.same(await store.commit(commitOf(shard, 0, { lid: high, firstEntryId: entryOf(high) })), { kind: 'ok' })
    t.same(await store.commit(commitOf(shard, 1, { lid: low, firstEntryId: entryOf(low) })), {
      kind: 'badop',
      reason: 'lid',
    })
    t.same(await store.commit(commitOf(shard, 1, { lid: high, firstEntryId: entryOf(high) })), {
      kind: 'badop',
      reason: 'lid',
    })
    t.same(await store.commit(commitOf(shard, 1, { lid: 'no id' })), { kind: 'badop', reason: 'lid' })
    t.match(await store.metas([shard]), [{ lid: high, seq: 1 }])
  })

  await t.test('tries are counted, and cleared by the first commit after a minute', async (t) => {
    const shard = await held(store, 8)
    await store.commit(commitOf(shard, 0))
    t.match(await store.metas([shard]), [{ tries: 1 }])
    await store.views.hset(metaKey(shard), 'since', String(Date.now() - 60_001))
    await store.commit(commitOf(shard, 1))
    t.match(await store.metas([shard]), [{ tries: 0 }])
  })

  await t.test('heartbeat writes the record and reads the clock and all records; retire takes it away', async (t) => {
    await store.heartbeat({ worker: 'a', record: RECORD })
    const before = store.answeredAtMs
    const beat = await store.heartbeat({ worker: 'b', record: { ...RECORD, beats: 2 } })
    t.ok(beat.kind === 'ok' && Math.abs(beat.nowMs - Date.now()) < WAIT_MS)
    t.same(beat.kind === 'ok' && [...beat.workers.keys()].sort(), ['a', 'b'])
    t.ok(store.answeredAtMs >= before)
    await store.retire('a', 'what it was before')
    const kept = await store.heartbeat({ worker: 'b', record: RECORD })
    t.ok(kept.kind === 'ok' && kept.workers.has('a'), 'a record that has changed since it was seen is kept')
    await store.retire('a', JSON.stringify(RECORD))
    const last = await store.heartbeat({ worker: 'b', record: RECORD })
    t.same(last.kind === 'ok' && [...last.workers], [['b', JSON.stringify(RECORD)]])
  })

  await t.test('a mailbox refuses when it is full; replies come with the clock', async (t) => {
    const rung: Bell[] = []
    const ears = store.listen('owner', { ...DEAF, bells: (bells) => rung.push(...bells) })
    t.teardown(() => ears.close())
    await store.acquire({ shard: 9, sawToken: '', newToken: '1:a', worker: 'owner' })
    const parcelOf = (parcelId: string, said = 'ü1', shard = 9): Parcel => ({
      shard,
      parcelId,
      count: 2,
      said: Buffer.from(`${parcelId} ${said}`),
    })
    const enqueue = (...parcels: Parcel[]) => store.enqueue({ replyTo: 'w', commandsMax: 5, parcels })
    await until(async () => (await store.views.pubsub('NUMSUB', '{cl}:bell:owner'))[1] === 1, WAIT_MS)
    t.same(await enqueue(parcelOf('p1'), parcelOf('p2'), parcelOf('other', 'x', 14)), ['ok', 'ok', 'ok'])
    t.same(await enqueue(parcelOf('p3', 'x'.repeat(70_000)), parcelOf('p4')), ['ok', 'busy'])
    await until(() => rung.length === 3, WAIT_MS)
    const entries = (await store.entries({ shard: 9, of: 'mailbox', from: '(0-0', count: 9 })) ?? []
    t.same(rung.slice(0, 2), [
      { shard: 9, entry: entries[0], before: '0-0' },
      { shard: 9, entry: entries[1], before: entries[0]?.id },
    ])
    t.same(rung[2], { shard: 9, entry: null, before: '' }, 'a large one is read')
    const values = await store.read(9, [{ read: 'range', key: mailboxKey(9), from: '-', to: '+', count: 9 }])
    const fieldsOf = (parcelId: string, sum: string) => ['parcel', parcelId, 'to', 'w', 'n', '2', 'sum', sum]
    t.match(values, [
      [{ fields: fieldsOf('p1', '2') }, { fields: fieldsOf('p2', '4') }, { fields: fieldsOf('p3', '6') }],
    ])
    t.same(await enqueue(parcelOf('p5')), ['busy'])
    await store.views.xtrim(mailboxKey(9), 'MINID', entries[1]?.id ?? '')
    t.same(await enqueue(parcelOf('p5'), parcelOf('p6')), ['ok', 'busy'], 'what is done makes room')
    await store.views.hset(metaKey(14), 'owner', 'move:a:b')
    t.same(await enqueue(parcelOf('p7', 'x', 14)), ['busy'], 'so it does while its shard is moved')
    t.equal(await store.views.xlen(mailboxKey(14)), 1)
    t.equal(await store.handIn({ shard: 14, cmdId: 'c', body: Buffer.from('x') }), false)
    t.equal(String(entries[1]?.body), 'p2 ü1')
    t.ok((await store.views.pttl(stagedKey(9, 'p2'))) > 55_000)
    await store.views.hset(repliesKey(9, 4), 'p1/0', '2 [1,2]', 'p1/2', '1 [3]', 'p2/1', '1 [0]')
    const asked = ['p1', 'p2'].map((parcelId) => ({ shard: 9, parcelId, slice: 4 }))
    const found = await store.replies(asked)
    t.same(
      found.map((one) => one?.fields),
      [['2 [1,2]', '1 [3]'], []],
    )
    t.ok(Math.abs((found[0]?.nowMs ?? 0) - Date.now()) < WAIT_MS)
  })

  await t.test('an entry is above the cursor, whatever the clock and the stream contain', async (t) => {
    const far = Date.now() + 3_600_000
    const enqueue = async (parcelId: string): Promise<string> => {
      const parcels = [{ shard: 15, parcelId, count: 1, said: Buffer.from('x') }]
      t.same(await store.enqueue({ replyTo: 'w', commandsMax: 9, parcels }), ['ok'])
      return (await store.views.xrevrange(mailboxKey(15), '+', '-', 'COUNT', 1))[0]?.[0] ?? ''
    }
    await store.views.hset(metaKey(15), 'cur', `${far}-7/3`)
    t.equal(await enqueue('p1'), `${far}-8`, 'the cursor is ahead')
    t.equal(await enqueue('p2'), `${far}-9`, 'so is the last entry')
    await store.views.del(mailboxKey(15))
    await store.views.xadd(mailboxKey(15), '5-1', 'parcel', 'old')
    t.equal(await enqueue('p3'), `${far}-8`, 'a stream that came back older')
    await store.views.hset(metaKey(15), 'cur', 'odd')
    await store.views.xtrim(mailboxKey(15), 'MAXLEN', 0)
    t.equal(await enqueue('p4'), `${far}-9`, 'an empty one that has given out higher ids')
  })

  await t.test('who only looks reads a stream from its newest entry', async (t) => {
    for (const id of ['1-1', '2-1', '2-2', '3-1']) await store.views.xadd('{s013}:x', id, 'a', id)
    const cases: [from: string, to: string, count: number, ids: string[]][] = [
      ['-', '+', 9, ['3-1', '2-2', '2-1', '1-1']],
      ['-', '+', 2, ['3-1', '2-2']],
      ['2', '(2-2', 9, ['2-1']],
      ['-', '2', 9, ['2-2', '2-1', '1-1']],
      ['-', '+', 0, []],
      ['-', '0-1', 9, []],
    ]
    for (const [from, to, count, ids] of cases) {
      const [seen] = (await store.read(13, [{ read: 'newest', key: '{s013}:x', from, to, count }])) as [Entry[]]
      t.same(
        seen,
        ids.map((id) => ({ id, fields: ['a', id] })),
        `${from} ${to} ${count}`,
      )
    }
  })

  await t.test('a read of a key of another type answers null, and its errors name no arguments', async (t) => {
    const words: string[] = []
    const watching = await openStore(t, redis.socketPath, { onReadFailed: (word) => words.push(word) })
    await store.views.set('{s010}:t', 'x')
    t.equal(await watching.read(10, [{ read: 'hash', key: '{s010}:t' }]), null)
    t.same(words, ['WRONGTYPE'])
    const error = await watching.views.hget('{s010}:t', 'someone@example.com').catch((caught: Error) => caught)
    t.notMatch(JSON.stringify({ ...(error as Error) }) + (error as Error).stack, 'someone')
    const [[piped] = []] = (await watching.views.pipeline().hget('{s010}:t', 'someone@example.com').exec()) ?? []
    t.notMatch(JSON.stringify({ ...piped }), 'someone')
  })

  await t.test('scripts that Redis has forgotten are loaded again and the same bytes sent', async (t) => {
    const shard = await held(store, 11)
    await store.views.script('FLUSH')
    const verdicts = await Promise.all([store.commit(commitOf(shard, 0)), store.commit(commitOf(shard, 0))])
    t.same(verdicts.map(({ kind }) => kind).sort(), ['dup', 'ok'])
    await store.views.script('FLUSH')
    t.same(await store.read(11, [{ read: 'fields', key: claimsKey(11), fields: ['field', 'none'] }]), [['0', null]])
  })

  await t.test('a signal reaches the subscribers of its topic', async (t) => {
    const listener = new Redis({ path: redis.socketPath })
    t.teardown(() => listener.disconnect())
    const heard: string[][] = []
    listener.on('message', (...message: string[]) => heard.push(message))
    await listener.subscribe(topicName('a'))
    store.signal([
      { topic: 'b', text: 'not this' },
      { topic: 'a', text: 'this' },
    ])
    await until(() => heard.length > 0, WAIT_MS)
    t.same(heard, [[topicName('a'), 'this']])
  })

  await t.test('many fields are read in several commands', async (t) => {
    const fields = Array.from({ length: 9_000 }, (_, index) => `f${index}`)
    await store.views.hset('{s012}:h', 'f0', 'a', 'f8999', 'z')
    const [values] = (await store.read(12, [{ read: 'fields', key: '{s012}:h', fields }])) as [string[]]
    t.same([values.length, values[0], values[1], values[8_999]], [9_000, 'a', null, 'z'])
  })
})

t.test('redis store: a full store refuses what accepts, and does what frees', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  await store.views.config('SET', 'maxmemory', '1')
  t.same(await store.commit(commitOf(shard, 0)), { kind: 'refused', reason: 'OOM' })
  const parcels = ['p1', 'p2'].map((parcelId) => ({ shard, parcelId, count: 1, said: Buffer.from('') }))
  t.same(await store.enqueue({ replyTo: '', commandsMax: 9, parcels }), ['unsent', 'unsent'])
  t.equal(await store.handIn({ shard, cmdId: 'c', body: Buffer.from('x') }), true)
  t.same(
    await store.commit(
      commitOf(shard, 0, { frees: true, ops: [{ key: '{s001}:t', write: 'UNLINK', args: [] }, set(shard, 3)] }),
    ),
    { kind: 'ok' },
  )
  t.match(await store.acquire({ shard, sawToken: TOKEN, newToken: '2:b', worker: 'w' }), { kind: 'ok' })
  t.match(await store.heartbeat({ worker: 'w', record: RECORD }), { kind: 'ok' })
})

/** Hears nothing. */
const DEAF: Receivers = {
  bells: () => undefined,
  replies: () => undefined,
  released: () => undefined,
  joined: () => undefined,
}

t.test('redis store: a restart loses what was enqueued, and no outcome and no reply', async (t) => {
  const redis = await openRedis(t, { appendfsync: 'always' })
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  const parcels = [{ shard, parcelId: 'p', count: 1, said: Buffer.from('said') }]
  t.same(await store.enqueue({ replyTo: 'w', commandsMax: 9, parcels }), ['ok'])
  t.equal(await store.handIn({ shard, cmdId: 'c', body: Buffer.from('ended') }), true)
  const reply = { key: repliesKey(shard, 4), write: 'HSET', args: ['p/0', '1 [1]'] } as const
  t.same(await store.commit(commitOf(shard, 0, { ops: [reply], cursor: '5-1/2' })), { kind: 'ok' })
  await redis.restart()
  await until(() => store.connected && store.views.status === 'ready', WAIT_MS)
  t.same(await store.entries({ shard, of: 'mailbox', from: '-', count: 9 }), [])
  t.equal(await store.views.exists(stagedKey(shard, 'p')), 0)
  const outcomes = await store.entries({ shard, of: 'outcomes', from: '-', count: 9 })
  t.same(
    outcomes?.map(({ parcelId, body }) => [parcelId, String(body)]),
    [['c', 'ended']],
  )
  t.same((await store.replies([{ shard, parcelId: 'p', slice: 4 }]))[0]?.fields, ['1 [1]'])
  t.match(await store.metas([shard]), [{ cursor: '5-1/2' }])
})
