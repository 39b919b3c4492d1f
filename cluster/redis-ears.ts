/**
 * redis-ears - one connection that hears what other processes publish.
 *
 * What is published while it is down is lost, and nobody learns of it: whoever listens must look now and then as well.
 * Guarantees: a connection that says nothing for ten seconds, though it is asked every second, is given up.
 */
import { Redis } from 'ioredis'
import { bellChannel, RELEASED_CHANNEL, repliesChannel } from './keyspace.ts'
import { LOADING_MS } from './redis-link.ts'
import type { Ears, Listening } from './store.ts'

const PING_MS = 1_000
const SILENT_MS_MAX = 10_000
const RETRY_MS_MAX = 500
const KEEP_ALIVE_MS = 10_000

/** Listens for `worker` over a connection of its own. */
export function listenToRedis(address: string, worker: string, ears: Ears): Listening {
  const client = new Redis(address, {
    connectionName: 'ears',
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    autoResubscribe: true,
    keepAlive: KEEP_ALIVE_MS,
    maxLoadingRetryTime: LOADING_MS,
    disableClientInfo: true,
    retryStrategy: (times: number) => Math.min(times * 50, RETRY_MS_MAX),
  })
  const shards = new Map<string, number>()
  let heardAtMs = performance.now()
  // The connection's own troubles are those of the other ones, which say so.
  client.on('error', () => undefined)
  client.on('ready', () => {
    heardAtMs = performance.now()
  })
  client.on('message', (channel: string, text: string) => {
    heardAtMs = performance.now()
    const shard = shards.get(channel)
    if (shard !== undefined) ears.bell(shard)
    else if (channel !== RELEASED_CHANNEL) ears.replies(text)
    else if (text === '') ears.joined()
    else ears.released(Number(text))
  })
  const subscribed = orNothing(client.subscribe(repliesChannel(worker), RELEASED_CHANNEL))
  const watch = setInterval(() => {
    if (client.status !== 'ready') return
    if (performance.now() - heardAtMs > SILENT_MS_MAX) return void client.stream?.destroy()
    void orNothing(
      subscribed
        .then(() => client.ping())
        .then(() => {
          heardAtMs = performance.now()
        }),
    )
  }, PING_MS)
  watch.unref()
  return {
    follow(shard, isMine) {
      const channel = bellChannel(shard)
      if (shards.has(channel) === isMine) return
      if (isMine) shards.set(channel, shard)
      else shards.delete(channel)
      void orNothing(isMine ? client.subscribe(channel) : client.unsubscribe(channel))
    },
    close() {
      clearInterval(watch)
      client.disconnect()
    },
  }
}

/** A connection that ends takes its subscriptions up again by itself. */
function orNothing(promise: Promise<unknown>): Promise<void> {
  return promise.then(
    () => undefined,
    () => undefined,
  )
}
