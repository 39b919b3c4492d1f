/**
 * served-urls - where clients reach the API and operators reach theirs: at the process that serves HTTP, which may be
 * another one than this
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../process/config.ts'
import { readLivingUrls } from '../store/condition.ts'
import type { Nodes } from '../store/nodes.ts'

/** Processes that are started together find each other in this time. */
const FIND_MS_MAX = 5000
const FIND_AGAIN_MS = 100

export interface ServedUrls {
  readonly baseUrl: string
  readonly operatorUrl: string
}

/** The URLs that a process with these settings serves; undefined if it serves no HTTP. */
export function servedUrlsOf({ roles, baseUrl, operatorUrl }: Config): ServedUrls | undefined {
  return roles.includes('http') ? { baseUrl, operatorUrl } : undefined
}

/**
 * Finds the URLs. Takes the settings, the store, and the ids of live processes. Returns those of this process's own
 * settings if no other process serves HTTP within 5 s. Throws errors of the store.
 */
export async function findServedUrls(
  config: Config,
  { nodes, living }: { nodes: Nodes; living: () => readonly string[] },
): Promise<ServedUrls> {
  const startedAtMs = performance.now()
  let found = servedUrlsOf(config)
  while (found === undefined && performance.now() - startedAtMs < FIND_MS_MAX) {
    ;[found] = await readLivingUrls(nodes, living())
    if (found === undefined) await pause(FIND_AGAIN_MS)
  }
  return found ?? config
}
