/**
 * redis-doubt - what becomes of a commit when its connection ends, is silent, or Redis goes: lost, never refused, done
 * once.
 */
import { createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { claimsKey, journalKey } from '../../cluster/keyspace.ts'
import { until } from '../support/machine/until.ts'
import type { TestRedis } from '../support/store/redis.ts'
import { commitOf, held, openRedis, openStore, RECORD } from '../support/store/redis-shard.ts'

const WAIT_MS = 60_000

interface Proxy {
  readonly path: string
  /** Whether Redis's answers are swallowed. */
  swallow: boolean
  /**
   * Cuts the store's side of every connection. For Redis they stay open, and it may still execute what it was sent.
   */
  cut(): void
}

/** A proxy between the store and Redis, on a socket of its own. */
async function startProxy(test: Test, redis: TestRedis): Promise<Proxy> {
  const nears = new Set<Socket>()
  const fars = new Set<Socket>()
  const path = join(redis.dir, 'proxy.sock')
  const destroy = (sockets: Set<Socket>): void => {
    for (const socket of sockets) socket.destroy()
  }
  const proxy: Proxy = { path, swallow: false, cut: () => destroy(nears) }
  const server = createServer((near) => {
    const far = createConnection(redis.socketPath)
    for (const [socket, set] of [
      [near, nears],
      [far, fars],
    ] as const) {
      set.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => set.delete(socket))
    }
    near.on('data', (bytes) => far.write(bytes))
    far.on('data', (bytes) => void (proxy.swallow || near.destroyed || near.write(bytes)))
    far.on('close', () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  test.teardown(() => {
    destroy(nears)
    destroy(fars)
    server.close()
  })
  return proxy
}

t.test('redis store: a commit whose connection ends is lost, and sent again it is done once', async (t) => {
  const redis = await openRedis(t)
  const proxy = await startProxy(t, redis)
  const events: string[] = []
  const store = await openStore(t, proxy.path, { onUp: () => events.push('up'), onDown: () => events.push('down') })
  const direct = await openStore(t, redis.socketPath)
  const shard = await held(store, 1)
  const before = store.identity

  // Done, and the answer swallowed.
  proxy.swallow = true
  const done = commitOf(shard, 0)
  const verdict = store.commit(done)
  const read = store.read(shard, [{ read: 'hash', key: claimsKey(shard) }])
  await until(async () => (await direct.views.xlen(journalKey(shard))) === 1, WAIT_MS)
  proxy.cut()
  t.same(await verdict, { kind: 'lost' })
  t.equal(await read, null)
  t.same(await store.commit(done), { kind: 'unsent' }, 'down: nothing is queued')
  proxy.swallow = false
  await until(() => store.connected, WAIT_MS)
  t.same(await store.commit(done), { kind: 'dup' })

  // Not done: Redis is stopped, the bytes wait in its socket, and the old connection is ended before they are read.
  await redis.kill('SIGSTOP')
  const waiting = commitOf(shard, 1)
  const second = store.commit(waiting)
  proxy.cut()
  t.same(await second, { kind: 'lost' })
  await redis.kill('SIGCONT')
  await until(() => store.connected, WAIT_MS)
  t.match(await store.commit(waiting), { kind: /^(ok|dup)$/ })
  t.same(await direct.views.xlen(journalKey(shard)), 2, 'never twice')

  t.not(store.identity.clientId, before.clientId)
  t.equal(store.identity.runId, before.runId)
  t.same(events, ['up', 'down', 'up', 'down', 'up'])
})

t.test('redis store: the old commit connection is ended before anything is sent on the new one', async (t) => {
  const redis = await openRedis(t)
  const proxy = await startProxy(t, redis)
  const store = await openStore(t, proxy.path)
  const direct = await openStore(t, redis.socketPath)
  const old = store.identity.clientId
  const listed = async (id: number): Promise<boolean> => String(await direct.views.client('LIST')).includes(`id=${id} `)
  t.ok(await listed(old))
  proxy.cut()
  await until(() => store.connected && store.identity.clientId !== old, WAIT_MS)
  t.notOk(await listed(old))
  t.ok(await listed(store.identity.clientId))
})

t.test(
  'redis store: a connection whose heartbeat is not answered is given up, and no timer decides a commit',
  async (t) => {
    const redis = await openRedis(t)
    const store = await openStore(t, redis.socketPath, { beatSilentMs: 1_000 })
    const shard = await held(store, 1)
    await redis.kill('SIGSTOP')
    const commit = commitOf(shard, 0)
    const flying = store.commit(commit)
    t.same(await store.heartbeat({ worker: 'w', record: RECORD }), { kind: 'failed' })
    t.same(await flying, { kind: 'lost' })
    await redis.kill('SIGCONT')
    await until(() => store.connected, WAIT_MS)
    t.match(await store.commit(commit), { kind: /^(ok|dup)$/ })
    t.match(await store.metas([shard]), [{ seq: 1 }])
  },
)

t.test('redis store: Redis is killed and comes back', async (t) => {
  const redis = await openRedis(t, { appendfsync: 'always' })
  const store = await openStore(t, redis.socketPath, { durability: 'fsync' })
  const shard = await held(store, 1)
  t.same(await store.commit(commitOf(shard, 0)), { kind: 'ok' })
  const { runId } = store.identity
  const flying = store.commit(commitOf(shard, 1))
  await redis.kill('SIGKILL')
  t.match(await flying, { kind: /^(ok|lost)$/ })
  await until(() => !store.connected, WAIT_MS)
  t.same(await store.commit(commitOf(shard, 1)), { kind: 'unsent' })
  t.same(await store.heartbeat({ worker: 'w', record: RECORD }), { kind: 'failed' })
  t.same(await store.metas([shard]), null)
  t.same(await store.read(shard, [{ read: 'hash', key: claimsKey(shard) }]), null)
  await redis.restart()
  await until(() => store.connected, WAIT_MS)
  t.not(store.identity.runId, runId)
  t.match(await store.commit(commitOf(shard, 1)), { kind: /^(ok|dup)$/ })
  t.match(await store.metas([shard]), [{ seq: 2 }])
})
