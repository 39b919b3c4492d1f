/**
 * stream - a stream of a server, which every send uses.
 *
 * States: active, paused (`pausedAtMs`, by the complaint brake), archived (`archivedAtMs`, for good).
 *
 * Spec stream.read
 */

import type { EntityType, Ref, Staged } from '../../cluster/behaviour.ts'
import { msOf } from '../../cluster/id.ts'
import { namesKey, streamsKey } from './keys.ts'
import { memoize } from './memoize.ts'

export type StreamKind = 'transactional' | 'broadcast' | 'inbound'

export interface StreamState {
  readonly streamId: string
  readonly serverId: string
  readonly kind: StreamKind
  readonly name: string
  readonly isDefault: boolean
  readonly createdAtMs: number
  readonly archivedAtMs: number | null
  readonly pausedAtMs: number | null
  /** Of an inbound stream; null for the default. */
  readonly contentRetentionDays: number | null
  /** Of a stream that sends: days for which text and HTML are kept; null or absent: the server's. */
  readonly sentContentDays?: number | null
  /** Messages of broadcasts a minute, if an operator has set a pace; null or absent for the default. */
  readonly pacePerMinute?: number | null
  /** Whether any address was ever suppressed on it; until then no send reads the list. */
  readonly hasSuppressions?: true
}

/** Changes of a stream by a client. */
export interface StreamChanges {
  readonly name?: string
  readonly contentRetentionDays?: number | null
  readonly sentContentDays?: number | null
}

export type StreamEvent =
  | { readonly type: 'created'; readonly stream: StreamState }
  | { readonly type: 'suppressing' }
  | { readonly type: 'patched'; readonly changes: StreamChanges }
  | { readonly type: 'archived'; readonly archivedAtMs: number }
  | { readonly type: 'resumed' }
  | { readonly type: 'paced'; readonly pacePerMinute: number | null }
  | { readonly type: 'paused'; readonly pausedAtMs: number }

/** Name of the stream that every server begins with. */
const DEFAULT_STREAM_NAME = 'Transactional'

export const streamEntity: EntityType<StreamState | null, StreamEvent> = {
  kind: 'stream',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'created') return event.stream
    if (state === null) return null
    return { ...state, ...decideChanges(event) }
  },
}

export const streamRef = memoize((streamId): Ref => ({ kind: 'stream', id: streamId }))

/** A new stream. */
export function makeStream(
  of: Pick<StreamState, 'streamId' | 'serverId' | 'kind' | 'name' | 'createdAtMs'> & { readonly isDefault?: true },
): StreamState {
  const { streamId, serverId, kind, name, createdAtMs, isDefault = false } = of
  const unset = { archivedAtMs: null, pausedAtMs: null, contentRetentionDays: null }
  return { streamId, serverId, kind, name, isDefault, createdAtMs, ...unset }
}

/** The default stream of a new server. */
export function makeDefaultStream(streamId: string, serverId: string, createdAtMs: number): StreamState {
  const name = DEFAULT_STREAM_NAME
  return makeStream({ streamId, serverId, kind: 'transactional', name, createdAtMs, isDefault: true })
}

/** Everything that creates a stream: its state, its names, its place in the server's list. */
export function newStreamStaged(
  stream: StreamState,
  { shard, accountId }: { readonly shard: number; readonly accountId: string },
): Required<Pick<Staged, 'events' | 'ops'>> {
  const { streamId, serverId, kind, name } = stream
  const names = [streamName(serverId, name), streamId]
  if (kind === 'inbound') names.push(inboundName(serverId), streamId)
  return {
    events: [{ ref: streamRef(streamId), event: { type: 'created', stream } }],
    ops: [
      { key: namesKey(shard, accountId), write: 'HSET', args: names },
      { key: streamsKey(shard, serverId), write: 'ZADD', args: [String(msOf(streamId)), streamId] },
    ],
  }
}

/** Field of `names:<account>` under which a stream's name is taken. */
export function streamName(serverId: string, name: string): string {
  return `stream/${serverId}/${name}`
}

/** Field of `names:<account>` that holds a server's live inbound stream. */
export function inboundName(serverId: string): string {
  return `inbound/${serverId}`
}

function decideChanges(event: Exclude<StreamEvent, { type: 'created' }>): Partial<StreamState> {
  switch (event.type) {
    case 'suppressing':
      return { hasSuppressions: true }
    case 'patched':
      return event.changes
    case 'archived':
      return { archivedAtMs: event.archivedAtMs }
    case 'paused':
      return { pausedAtMs: event.pausedAtMs }
    case 'resumed':
      return { pausedAtMs: null }
    case 'paced':
      return { pacePerMinute: event.pacePerMinute }
  }
}
