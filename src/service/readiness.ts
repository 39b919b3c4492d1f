/**
 * readiness - why a process should get no requests, and the resource that new mail lacks
 *
 * Spec send.room
 */

import type { Role } from '../../schemas/config.ts'
import type { CapacityShortage } from '../store/memory-pressure.ts'

/** Current state to check. */
export interface ReadinessDeps {
  readonly config: { readonly roles: readonly Role[] }
  readonly store: { readonly connected: boolean }
  readonly watch: { readonly fault: string | null; readonly lack: CapacityShortage | null; readonly share: number }
  /** Null if all content is in Redis. */
  readonly contents: { readonly hasRoom: boolean } | null
  readonly first: { readonly isDone: boolean }
}

/** The resource that new mail lacks, or null. */
export function findCapacityShortage({
  watch,
  contents,
}: Pick<ReadinessDeps, 'watch' | 'contents'>): CapacityShortage | null {
  return watch.lack ?? (contents?.hasRoom === false ? 'disk' : null)
}

/**
 * The first reason, for people; null if the process is ready. Only processes that accept sends need free space:
 * receiving bounces and delivering continue in a full store.
 */
export function whyNotReady(deps: ReadinessDeps, worker: { ready(): boolean }): string | null {
  const { config, store, watch, first } = deps
  if (!store.connected) return 'the store does not answer'
  if (watch.fault !== null) return watch.fault
  if (!first.isDone) return 'the first account is being created'
  if (!worker.ready()) return 'shards are without an owner, or do not answer'
  const takesSends = config.roles.includes('http') || config.roles.includes('submission')
  const lack = takesSends ? findCapacityShortage(deps) : null
  if (lack === null) return null
  const percent = Math.round(watch.share * 100)
  const what = lack === 'disk' ? 'the disk is nearly full' : `the store is nearly full (${percent} % of its maxmemory)`
  return `${what}: new mail is refused`
}
