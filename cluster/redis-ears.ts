/**
 * redis-ears - one connection that hears what other processes publish. Replies come another way (`redis-told.ts`).
 *
 * What is published while it is down is lost, and nobody learns of it: whoever listens must look now and then as well.
 * Guarantees: a connection that says nothing for ten seconds, though it is asked every second, is given up.
 */

import { bellChannel, parcelChannel, RELEASED_CHANNEL } from './keyspace.ts'
import { BellReader } from './mailbox/bell.ts'
import { RedisSubscriber } from './redis/hear.ts'
import type { Ears, Listening } from './store.ts'

const PING_MS = 1_000
const SILENT_MS_MAX = 10_000

/** Listens for `worker` over a connection of its own. */
export function listenToRedis(address: string, worker: string, ears: Ears): Listening {
  const [bells, parcels] = [bellChannel(worker), parcelChannel(worker)]
  const reader = new BellReader()
  let heardAtMs = performance.now()
  const subscriber = new RedisSubscriber({
    address,
    name: 'ears',
    heard(channel, message) {
      heardAtMs = performance.now()
      if (channel === parcels) return reader.parcel(message)
      const text = message.toString()
      if (channel === bells) ears.bells(reader.bells(text))
      else if (text === '') ears.joined()
      else ears.released(Number(text))
    },
  })
  for (const channel of [parcels, bells, RELEASED_CHANNEL]) void subscriber.add(channel)
  let isUp = false
  const watch = setInterval(() => {
    if (subscriber.isReady && !isUp) heardAtMs = performance.now()
    isUp = subscriber.isReady
    if (!isUp) return
    if (performance.now() - heardAtMs > SILENT_MS_MAX) return subscriber.cut()
    void subscriber.ping().then((isAnswered) => {
      if (isAnswered) heardAtMs = performance.now()
    })
  }, PING_MS)
  watch.unref()
  return {
    close() {
      clearInterval(watch)
      subscriber.close()
    },
  }
}
