/** process-stats - the current figures of a process, from its parts */

import type { Worker } from '../../cluster/worker/worker.ts'
import type { Outbound } from '../outbound/open.ts'
import type { MailRoom } from '../outbound/threads.ts'
import type { Gauges } from '../process/gauges.ts'
import { countFeeds } from '../routes/events.ts'
import type { SearchWaits } from '../routes/wait/waits.ts'
import { backupAgeMs } from '../store/backup/ways.ts'
import type { StoreWatch } from '../store/store-watch.ts'

/** The parts that provide figures. */
export interface ProcessStatsDeps {
  readonly config: { readonly dataDir: string }
  readonly diskFree: () => number | null
  readonly store: { readonly connected: boolean }
  readonly watch: Pick<StoreWatch, 'fault' | 'share'>
  readonly outbound: Pick<Outbound, 'sites'>
  readonly mailRoom: Pick<MailRoom, 'connections'>
  readonly feeds: {
    readonly openFeeds: Map<string, number>
    readonly userFeeds: Map<string, number>
    readonly waits: Pick<SearchWaits, 'open'>
  }
}

/** Current figures. */
export function processStats(deps: ProcessStatsDeps, worker: Worker): Gauges {
  const { store, watch, outbound, mailRoom, feeds } = deps
  const ageMs = backupAgeMs(deps.config.dataDir, Date.now())
  const diskFree = deps.diskFree()
  const { underWay, waiting, paused } = outbound.sites.figures
  const sites = { attemptsUnderWay: underWay, attemptsWaiting: waiting, sitesPaused: paused }
  return {
    ...worker.stats(),
    owned: worker.owned.length,
    ...sites,
    connections: mailRoom.connections(),
    feedsOpen: countFeeds(feeds.openFeeds) + countFeeds(feeds.userFeeds),
    searchesWaiting: feeds.waits.open,
    storeUp: store.connected ? 1 : 0,
    storeSound: watch.fault === null ? 1 : 0,
    storeFill: watch.share,
    ...(diskFree === null ? {} : { diskFree }),
    ...(ageMs === null ? {} : { backupAge: Math.round(ageMs / 1000) }),
  }
}
