/**
 * store-guard - what the service puts around the store: the fence that its mail threads read, and content over Redis
 *
 * A message may be finished only while this process can prove that it is still alive to the others: each answered
 * heartbeat marks the fence with the moment it was sent, a closed connection unmarks it.
 */

import type { Redis } from 'ioredis'
import { changeStore, type Store } from '../../cluster/store.ts'
import { type Fence, markHeartbeat, monotonicMs } from '../process/fence.ts'
import type { ContentStore } from './content.ts'

/** The same store, whose answered heartbeats mark the fence. */
export function fenceStore(store: Store, fence: Fence): Store {
  return changeStore(store, {
    async heartbeat(request) {
      const sentAtMs = monotonicMs()
      const beat = await store.heartbeat(request)
      if (beat.kind === 'ok') markHeartbeat(fence, sentAtMs)
      return beat
    },
  })
}

/** Content in Redis, over the client that `redis` answers at each call. A store that is away is a value, never thrown. */
export function makeContentStore(redis: () => Redis): ContentStore {
  return {
    async writeContent(values, lifeMs) {
      const pipeline = redis().pipeline()
      for (const { key, bytes } of values) pipeline.set(key, asBuffer(bytes), 'PX', lifeMs)
      const answers = await orNull(pipeline.exec())
      return answers?.every(([error]) => error === null) ?? false
    },
    readContent: (keys) => orNull(redis().mgetBuffer(...keys)),
    readField: ({ key, field }) =>
      redis()
        .hgetBuffer(key, field)
        .catch(() => undefined),
    async removeContent(keys) {
      await orNull(redis().unlink(...keys))
    },
  }
}

function orNull<Value>(answer: Promise<Value>): Promise<Value | null> {
  return answer.then(
    (value) => value,
    () => null,
  )
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
