/**
 * stream - a stream of a server: what a send goes on.
 *
 * States: active, paused (`pausedAtMs`, by the complaint brake), archived (`archivedAtMs`, for good).
 *
 * Spec stream.read
 */

import type { EntityType, Ref } from '../../cluster/behaviour.ts'

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
  /** Of an inbound stream; null = the default. */
  readonly contentRetentionDays: number | null
  /** Whether anybody was ever suppressed on it; until then no send looks. */
  readonly hasSuppressions?: true
}

export type StreamEvent =
  | { readonly type: 'created'; readonly stream: StreamState }
  | { readonly type: 'suppressing' }
  | { readonly type: 'paused'; readonly pausedAtMs: number }

/** Name of the stream that every server begins with. */
export const DEFAULT_STREAM_NAME = 'Transactional'

export const streamEntity: EntityType<StreamState | null, StreamEvent> = {
  kind: 'stream',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'created') return event.stream
    if (state === null) return null
    return event.type === 'paused' ? { ...state, pausedAtMs: event.pausedAtMs } : { ...state, hasSuppressions: true }
  },
}

export function streamRef(streamId: string): Ref {
  return { kind: 'stream', id: streamId }
}

/** The default stream of a new server. */
export function makeDefaultStream(streamId: string, serverId: string, createdAtMs: number): StreamState {
  return {
    streamId,
    serverId,
    kind: 'transactional',
    name: DEFAULT_STREAM_NAME,
    isDefault: true,
    createdAtMs,
    archivedAtMs: null,
    pausedAtMs: null,
    contentRetentionDays: null,
  }
}
