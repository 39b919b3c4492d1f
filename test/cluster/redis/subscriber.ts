/** Tests of cluster/redis-subscriber.ts and the ears and signals built on it: a refused subscriber receives again. */
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Test, test } from 'tap'
import { RedisSubscriber } from '../../../cluster/redis/subscriber.ts'
import { until } from '../../support/machine/until.ts'
import { openRedis, openStore } from '../../support/store/redis-shard.ts'

const WAIT_MS = 20_000

test('redis-subscriber: refused by an access list, it hears again once it may', async (t) => {
  const redis = await openRedis(t)
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  const store = await openStore(t, redis.socketPath)
  await client.call('ACL', 'SETUSER', 'default', 'resetchannels')
  let bells = 0
  const ears = store.listen('w', {
    bells: () => {
      bells += 1
    },
    replies: () => undefined,
    released: () => undefined,
    joined: () => undefined,
  })
  t.teardown(() => ears.close())
  const heard: string[] = []
  await store.hear('a', (text) => heard.push(text))
  const refusals = async (): Promise<number> =>
    Number(/errorstat_NOPERM:count=(\d+)/.exec(await client.info('errorstats'))?.[1] ?? 0)
  await until(async () => (await refusals()) >= 5, WAIT_MS)
  await client.call('ACL', 'SETUSER', 'default', 'allchannels')
  await until(async () => {
    await client.publish('{cl}:bell:w', '3')
    store.signal([{ topic: 'a', text: 'said' }])
    return bells > 0 && heard.length > 0
  }, WAIT_MS)
  t.equal(heard[0], 'said')
})

/** A subscriber that records what it receives, and a client, on a store whose user has these rules. */
async function openSubscriber(t: Test, rules: readonly string[] = []) {
  const redis = await openRedis(t)
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  if (rules.length > 0) await client.call('ACL', 'SETUSER', 'default', ...rules)
  const heard: string[] = []
  const subscriber = new RedisSubscriber({
    address: redis.socketPath,
    name: 'test',
    heard: (channel, message) => heard.push(`${channel} ${message}`),
  })
  t.teardown(() => subscriber.close())
  return { client, heard, subscriber }
}

test('redis-subscriber: a connection that ends is followed by one that hears the same', async (t) => {
  const { client, heard, subscriber } = await openSubscriber(t)
  await subscriber.add('a')
  await subscriber.add('b')
  subscriber.remove('b')
  t.equal(await subscriber.ping(), true)
  subscriber.cut()
  // Redis may count the ended connection for a while, so what is published then reaches no subscriber.
  await until(async () => {
    await client.publish('a', 'x')
    return heard.includes('a x')
  }, WAIT_MS)
  t.equal(await client.publish('b', 'x'), 0)
})

test('redis-subscriber: one channel that is refused for ever makes no other one deaf, on any connection', async (t) => {
  const { client, heard, subscriber } = await openSubscriber(t, ['resetchannels', '&a', '&b'])
  let ups = 0
  subscriber.client.on('ready', () => {
    ups += 1
  })
  for (const channel of ['a', 'no', 'b']) await subscriber.add(channel)
  await until(() => ups === 1, WAIT_MS)
  subscriber.cut()
  await until(() => ups === 2, WAIT_MS)
  const refusals = async (): Promise<number> =>
    Number(/errorstat_NOPERM:count=(\d+)/.exec(await client.info('errorstats'))?.[1] ?? 0)
  const before = await refusals()
  await until(async () => (await refusals()) >= before + 2, WAIT_MS)
  for (const channel of ['a', 'b']) t.equal(await client.publish(channel, 'x'), 1)
  await until(() => heard.length === 2, WAIT_MS)
  t.same(heard, ['a x', 'b x'])
  t.equal(ups, 2, 'asked for again on the same connection')
})

test('redis-subscriber: a client that gives up is begun anew, and stays ended once it is closed', async (t) => {
  const redis = await openRedis(t)
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  const subscriber = new RedisSubscriber({ address: redis.socketPath, name: 'test', heard: () => undefined })
  await subscriber.add('a')
  subscriber.client.disconnect()
  await until(() => subscriber.client.status === 'end', WAIT_MS)
  await until(async () => (await client.publish('a', 'x')) === 1, WAIT_MS)
  subscriber.client.disconnect()
  await until(() => subscriber.client.status === 'end', WAIT_MS)
  subscriber.close()
  await setTimeout(700)
  t.equal(subscriber.client.status, 'end')
})

test('redis-subscriber: ended while it subscribes again, it leaves no error that nobody hears', async (t) => {
  const redis = await openRedis(t)
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  for (let round = 0; round < 5; round += 1) {
    const subscriber = new RedisSubscriber({ address: redis.socketPath, name: 'test', heard: () => undefined })
    await subscriber.add('a')
    subscriber.cut()
    await until(() => !subscriber.isReady, WAIT_MS)
    await until(() => subscriber.isReady, WAIT_MS)
    // Before any answer to its last command, or soon after.
    subscriber.close()
    subscriber.cut()
    await until(() => !subscriber.isReady, WAIT_MS)
  }
  await until(async () => (await client.publish('a', 'x')) === 0, WAIT_MS)
})

test('redis-signals: a second listener of a topic is not ready before the first is subscribed', async (t) => {
  const redis = await openRedis(t)
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  const store = await openStore(t, redis.socketPath)
  // Opens the connection of the signals.
  await store.hear('other', () => undefined)
  const heard: string[] = []
  await client.call('CLIENT', 'PAUSE', '600', 'ALL')
  const ready = ['one', 'two'].map((name) => store.hear('a', (text) => void heard.push(`${name} ${text}`)))
  const isEarly = await Promise.race([ready[1]?.then(() => true), setTimeout(200, false)])
  t.equal(isEarly, false)
  const [end] = await Promise.all(ready)
  store.signal([{ topic: 'a', text: 'said' }])
  await until(() => heard.length === 2, WAIT_MS)
  end?.()
  store.signal([{ topic: 'a', text: 'again' }])
  await until(() => heard.includes('two again'), WAIT_MS)
  t.same(heard, ['one said', 'two said', 'two again'])
})
