/** reply-stream - the messages of commits to a worker: when they arrive, which are lost, and what remains of them. */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Op } from '../../../cluster/behaviour.ts'
import { claimsKey, toldKey } from '../../../cluster/keyspace.ts'
import { TOLD_ENTRIES, TOLD_KEPT_MS } from '../../../cluster/redis/commit-script.ts'
import { ReplyStream } from '../../../cluster/redis/reply-stream.ts'
import type { RedisStore } from '../../../cluster/redis/store.ts'
import type { Commit } from '../../../cluster/store.ts'
import { until } from '../../support/machine/until.ts'
import type { TestRedis } from '../../support/store/redis.ts'
import { commitOf, held, openRedis, openStore, set, TOKEN } from '../../support/store/redis-shard.ts'

const WAIT_MS = 60_000
const KEY = toldKey('asker')
const OK = { kind: 'ok' }

/** The `seq`-th commit of a shard, which sends `text` to the asker. */
function telling(shard: number, seq: number, text: string, more: Partial<Commit> = {}): Commit {
  return commitOf(shard, seq, { told: new Map([['asker', text]]), ...more })
}

/** Receives the messages to the asker until the test ends. */
function listen(test: Test, redis: TestRedis, keepMs?: number): { told: ReplyStream; heard: string[] } {
  const heard: string[] = []
  const options = { address: redis.socketPath, key: () => KEY }
  const told = new ReplyStream(keepMs === undefined ? options : { ...options, keepMs }, (text) => heard.push(text))
  test.teardown(() => told.close())
  return { told, heard }
}

/** Commits `count` times from `first` on. Each sends its number. */
async function tellMany(store: RedisStore, shard: number, { first, count }: { first: number; count: number }) {
  for (let seq = first; seq < first + count; seq += 1) await store.commit(telling(shard, seq, `n${seq}`))
}

t.test('reply-stream: by a commit that succeeded, once and in order, and by no other', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  const { told, heard } = listen(t, redis)
  told.begin()
  told.begin()
  const both = new Map([
    ['other', 'x'],
    ['asker', 'p/0 ["ü"]\nq/0 [1]'],
  ])
  const large = {
    key: '{s001}:t',
    write: 'SET',
    args: [Buffer.alloc(300, 'l'), 'PXAT', String(Date.now() + 99_999)],
  } as const
  t.same(await store.commit(commitOf(shard, 0, { told: both, ops: [set(shard, 0), large] })), OK)
  // What the sender cannot check alone.
  const again: Op[] = [set(shard, 1), { key: claimsKey(shard), write: 'UNLINK', args: [] }]
  t.same(await store.commit(telling(shard, 1, 'looked at', { ops: again })), OK)
  t.match(await store.commit(telling(shard, 1, 'again')), { kind: 'dup' })
  t.match(await store.commit(telling(shard, 5, 'conflict')), { kind: 'conflict' })
  t.match(await store.commit(telling(shard, 2, 'fenced', { token: '9:z' })), { kind: 'fenced' })
  t.match(await store.commit(telling(shard, 2, 'late', { deadlineMs: 1 })), { kind: 'late' })
  t.match(await store.commit(telling(shard, 2, 'odd', { ops: [{ key: '{s002}:t', write: 'UNLINK', args: [] }] })), {
    kind: 'badop',
  })
  t.same(await store.commit(telling(shard, 2, 'last', { frees: true })), OK)
  await until(() => heard.includes('last'), WAIT_MS)
  t.same(heard, ['p/0 ["ü"]\nq/0 [1]', 'looked at', 'last'])
})

t.test(
  'reply-stream: messages sent before the subscription arrive, and a new connection reads them again',
  async (t) => {
    const redis = await openRedis(t)
    const store = await openStore(t, redis.socketPath)
    const shard = await held(store, 1)
    await tellMany(store, shard, { first: 0, count: 3 })
    const { told, heard } = listen(t, redis)
    told.begin()
    await until(() => heard.length === 3, WAIT_MS)
    t.same(heard, ['n0', 'n1', 'n2'])
    const own = /id=(\d+) .*name=told /.exec(String(await store.views.client('LIST')))?.[1]
    await store.views.client('KILL', 'ID', Number(own))
    await until(() => heard.length === 6, WAIT_MS)
    await tellMany(store, shard, { first: 3, count: 1 })
    await until(() => heard.includes('n3'), WAIT_MS)
    t.same(heard, ['n0', 'n1', 'n2', 'n0', 'n1', 'n2', 'n3'])
  },
)

t.test('reply-stream: read messages are removed, and ids that restart below them still arrive', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const { told, heard } = listen(t, redis, 50)
  await store.views.xadd(KEY, '99999999999999-5', 'r', 'far')
  told.begin()
  await until(() => heard.length > 0, WAIT_MS)
  await until(async () => (await store.views.xlen(KEY)) === 0, WAIT_MS)
  await store.views.del(KEY)
  await until(async () => {
    await store.views.xadd(KEY, '*', 'r', 'after')
    return heard.includes('after')
  }, WAIT_MS)
})

t.test('reply-stream: unread messages are bounded, and end', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  await tellMany(store, shard, { first: 0, count: 1 })
  const toldAtMs = performance.now()
  await tellMany(store, shard, { first: 1, count: 3 * TOLD_ENTRIES })
  const kept = await store.views.xlen(KEY)
  t.ok(kept >= TOLD_ENTRIES && kept < 2 * TOLD_ENTRIES, `${kept} entries are kept`)
  const passedMs = Math.floor(performance.now() - toldAtMs)
  const leftMs = await store.views.pttl(KEY)
  t.ok(leftMs > 0 && leftMs <= TOLD_KEPT_MS - passedMs, 'it lives no longer for being told more')
  await store.views.pexpire(KEY, TOLD_KEPT_MS / 3)
  const { told, heard } = listen(t, redis)
  told.begin()
  await until(() => heard.length >= kept, WAIT_MS)
  t.ok((await store.views.pttl(KEY)) > TOLD_KEPT_MS / 3, 'who listens keeps it')
  t.match([heard[0], heard.at(-1)], [`n${3 * TOLD_ENTRIES + 1 - kept}`, `n${3 * TOLD_ENTRIES}`])
})

t.test('reply-stream: a worker receives messages from its first enqueue until it unsubscribes', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  const heard: string[] = []
  const nothing = (): void => undefined
  const replies = (text: string): number => heard.push(text)
  const listening = store.listen('asker', { bells: nothing, released: nothing, joined: nothing, replies })
  const listeners = async (): Promise<number> =>
    [...String(await store.views.client('LIST')).matchAll(/ name=told /g)].length
  await tellMany(store, shard, { first: 0, count: 1 })
  await store.enqueue({ replyTo: 'other', commandsMax: 9, parcels: [] })
  t.equal(await listeners(), 0)
  await store.enqueue({ replyTo: 'asker', commandsMax: 9, parcels: [] })
  await until(() => heard.includes('n0'), WAIT_MS)
  t.equal(await listeners(), 1)
  listening.close()
  await until(async () => (await listeners()) === 0, WAIT_MS)
})

t.test('reply-stream: a store that refuses is asked again', async (t) => {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const { told, heard } = listen(t, redis)
  await store.views.set(KEY, 'no stream')
  told.begin()
  await until(
    async () => /cmdstat_xread:[^\n]*failed_calls=[1-9]/.test(await store.views.info('commandstats')),
    WAIT_MS,
  )
  await store.views.del(KEY)
  await store.views.xadd(KEY, '*', 'r', 'x')
  await until(() => heard.includes('x'), WAIT_MS)
})

t.test('reply-stream: messages are not in the file of the store, and harm no commit', async (t) => {
  const redis = await openRedis(t, { appendfsync: 'always' })
  const store = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  t.same(await store.commit(telling(shard, 0, 'x')), OK)
  t.equal(await store.views.exists(KEY), 1)
  await redis.restart()
  await until(() => store.connected && store.views.status === 'ready', WAIT_MS)
  t.equal(await store.views.exists(KEY), 0)
  await store.views.set(KEY, 'no stream')
  t.same(await store.commit(telling(shard, 1, 'x')), OK, 'its key is of another type')
  t.match(await store.metas([shard]), [{ seq: 2 }])
})

/** Reads on in the append-only file of a store. */
class AppendFile {
  text = ''
  private readonly file: number

  constructor(redis: TestRedis) {
    const dir = join(redis.dir, 'appendonlydir')
    const name = readdirSync(dir).find((one) => one.endsWith('.incr.aof'))
    this.file = openSync(join(dir, name ?? ''), 'r')
  }

  /** Whether a text has been written to it. */
  holds(text: string): boolean {
    if (this.text.includes(text)) return true
    const bytes = Buffer.alloc(1_048_576)
    for (let read = -1; read !== 0; ) {
      read = readSync(this.file, bytes)
      this.text += bytes.toString('latin1', 0, read)
    }
    return this.text.includes(text)
  }

  close(): void {
    closeSync(this.file)
  }
}

t.test('reply-stream: once a message arrives, its commit is in the file of the store', async (t) => {
  const redis = await openRedis(t, { appendfsync: 'always' })
  const commits = 300
  const stores = await Promise.all(Array.from({ length: 4 }, () => openStore(t, redis.socketPath)))
  const file = new AppendFile(redis)
  t.teardown(() => file.close())
  const early: string[] = []
  const lasts = new Set<string>()
  let heard = 0
  const told = new ReplyStream({ address: redis.socketPath, key: () => KEY }, (text) => {
    heard += 1
    const commitId = text.slice(0, text.indexOf(' '))
    if (!file.holds(`${commitId}\r\n`)) early.push(commitId)
    if (commitId.endsWith(`:${commits - 1}`)) lasts.add(commitId)
  })
  t.teardown(() => told.close())
  told.begin()
  // A message that is sent too early is detected: with each commit the store gets other work before it writes its
  // file, and more messages than a socket buffer holds, so that the asker lags.
  const much = 'x'.repeat(300_000)
  let isOver = false
  const busy = stores.map(async ({ views }) => {
    while (!isOver) await views.eval(`for i = 1, ${Math.round(Math.random() * 500_000)} do end`, 0)
  })
  const verdicts = stores.map(async (store, place) => {
    const shard = await held(store, place)
    for (let seq = 0; seq < commits; seq += 1) {
      const commitId = `${TOKEN}:${place}:${seq}`
      const text = `${commitId} ${seq % 4 === 0 ? much : ''}`
      const verdict = await store.commit(telling(shard, seq, text, { commitId }))
      if (verdict.kind !== 'ok') throw new Error(`${commitId}: ${verdict.kind}`)
    }
  })
  try {
    await Promise.all(verdicts)
    await until(() => lasts.size === stores.length, WAIT_MS)
  } finally {
    isOver = true
    await Promise.all(busy)
  }
  t.ok(heard > commits, `${heard} were heard`)
  t.same(early, [])
})
