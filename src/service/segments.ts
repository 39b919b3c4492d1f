/**
 * segments - what reads the message log and has its segments leave Redis, as far as this process has a content store
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import type { Contents } from '../content/contents.ts'
import { makeColdLane } from '../content/sealed/cold-lane.ts'
import { makeSealedReader } from '../content/sealed/reader.ts'
import { SealedSegments } from '../content/sealed/segment.ts'
import { makeUnlinkLane } from '../content/unlink-lane.ts'
import type { Config } from '../process/config.ts'
import { monotonicMs } from '../process/fence.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'
import type { Secrets } from '../process/secrets.ts'
import { BODY_PART } from '../state/message/content-part.ts'
import { type ContentStore, readChunks } from '../store/content.ts'
import type { OpenStore } from '../store/open-store.ts'
import { makeReader, type Reader } from '../views/key.ts'
import type { ReadKeys } from '../views/read-keys.ts'

export interface SegmentsInput {
  /** Null if all content is in Redis, and then so is the log. */
  readonly contents: Contents | null
  readonly secrets: Pick<Secrets, 'ring'>
  readonly store: OpenStore['store']
  /** The content store's side of Redis. */
  readonly redis: ContentStore
  readonly readKeys: ReadKeys
  readonly metrics: Metrics
  readonly log: Log
  readonly config: Pick<Config, 'hotDays'>
}

/** The message log, wherever its segments are. */
export interface LogStore {
  readonly read: Reader
  /** The lanes of the content store, for removals and for segments of the log. Takes the store's time. */
  lanes(clock: { nowMs(): number }, room?: (lane: string) => number): LaneType[]
}

/** Opens the log. */
export function openLog({ contents, secrets, store, redis, readKeys, metrics, log, config }: SegmentsInput): LogStore {
  const read = makeReader(store)
  if (contents === null) return { read, lanes: () => [makeUnlinkLane(null)] }
  const { ring } = secrets
  const segments = new SealedSegments({ contents, ring, nowMs: monotonicMs })
  const warn = (facts: object, text: string): void => log.warn(facts, text)
  return {
    read: makeSealedReader({ read, readKeys, segments, done: metrics.sealedRead, warn }),
    lanes: (clock, room) => [
      makeUnlinkLane(contents),
      makeColdLane({
        nowMs: () => clock.nowMs(),
        ...(room !== undefined && { room }),
        read,
        contents,
        ring,
        segments,
        readBody: (place) => readChunks(redis, { ...place, part: BODY_PART }),
        hotDays: config.hotDays,
        done: metrics.sealedActed,
        log,
      }),
    ],
  }
}
