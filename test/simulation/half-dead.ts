/**
 * half-dead - processes with one blocked connection while the others work, and processes that cannot reach each other.
 *
 * A half-dead process does not keep a shard for long if another process could serve it, and does not report itself as
 * ready.
 */
import type { Beat, WorkerRecord } from '../../cluster/store.ts'
import { protocolOf, understandEachOther } from '../../cluster/worker/protocol.ts'
import { SimCluster } from './cluster/sim-cluster.ts'
import type { Connection } from './network.ts'
import { SHARDS, type SimProcess } from './process.ts'
import type { Simulation } from './simulation.ts'

const CONNECTIONS: readonly Connection[] = ['commit', 'read', 'read', 'enqueue']
/** By then others serve its shards. */
const KEPT_MS_MAX = 30_000
export const ILL_MS = KEPT_MS_MAX + 2_000
/**
 * A heartbeat reports the problems of its process, so others learn of them in time unless the heartbeat takes longer.
 */
const SLOW_MS = 6_000
/** A process that was impaired or unreachable is considered healthy by all others by then. */
const SETTLED_MS = 10_000
/** A process whose last heartbeat is almost as old as the others tolerate. */
const SILENT_MS = 9_000
/** It reports itself as not ready after two and a half seconds. Its clock has its own rate. */
const READY_MS_MAX = 3_000

/**
 * Nothing passes through one connection of a process, in either direction. A process that holds shards is chosen if
 * there is one.
 */
export function fallIll(sim: Simulation, running: readonly SimProcess[]): void {
  const { time, chance } = sim
  if (time.nowMs < sim.hurryUntilMs) return
  const owners = running.filter(({ worker }) => worker.owned.length > 0)
  const process = chance.pick(owners.length > 0 ? owners : running)
  const connection = chance.pick(CONNECTIONS)
  const untilMs = time.nowMs + ILL_MS
  process.ill = { connection, sinceMs: time.nowMs, untilMs, isJudged: true, isSlow: false }
  sim.hurryUntilMs = untilMs
  process.soundSinceMs = untilMs
  if (connection === 'commit') process.doubtedAtMs = untilMs
  sim.note(`p${process.n} has no ${connection}`)
}

/** Looks at those that are ill now. */
export async function checkIll(sim: Simulation): Promise<void> {
  const { nowMs } = sim.time
  if (sim.processes.every(({ illConnection }) => illConnection === null)) return
  for (const process of sim.processes) if (isSlow(sim, process)) process.slowAtMs = nowMs
  for (const process of sim.processes) {
    const { ill } = process
    if (ill === null || process.illConnection === null) continue
    // A process that was frozen starts to count again.
    if (process.state !== 'running') ill.isJudged = false
    ill.isSlow ||= process.slowAtMs === nowMs
    if (!ill.isJudged) continue
    if (nowMs - ill.sinceMs > READY_MS_MAX && process.worker.ready())
      sim.observer.violated(`Ready while nothing passes: p${process.n}, ${ill.connection}`)
    // A process that cannot commit is silent. A process that has been punctual for long enough takes its shards.
    const isToldOf = ill.connection !== 'commit' && !ill.isSlow
    if (isToldOf && nowMs - ill.sinceMs > KEPT_MS_MAX && isHelped(sim, ill.sinceMs)) await checkKept(sim, process)
  }
}

/**
 * Whether another one has been sound all the while and a time before, and the store as well. A process whose own
 * heartbeat is slow takes no shards.
 */
function isHelped(sim: Simulation, sinceMs: number): boolean {
  if (sim.observer.setBackAtMs.some((atMs) => atMs >= sinceMs)) return false
  if (sim.base instanceof SimCluster && sim.base.troubledAtMs >= sinceMs) return false
  const beforeMs = sinceMs - SETTLED_MS
  return sim.processes.some(
    ({ state, slowAtMs, soundSinceMs }) => state === 'running' && soundSinceMs <= beforeMs && slowAtMs < sinceMs,
  )
}

/** Whether a heartbeat has been in flight for too long, so that the process cannot report its problem in time. */
function isSlow({ network, time }: Simulation, { n }: SimProcess): boolean {
  return network.openOf(n).some(({ method, sentAtMs }) => method === 'heartbeat' && time.nowMs - sentAtMs > SLOW_MS)
}

/** A shard that it took meanwhile is judged from then on. */
async function checkKept(sim: Simulation, { n, worker }: SimProcess): Promise<void> {
  const sinceMs = sim.time.nowMs - KEPT_MS_MAX
  const metas = (await sim.base.metas(Array.from({ length: SHARDS }, (_, shard) => shard))) ?? []
  const kept = metas.flatMap((meta, shard) =>
    meta?.owner === worker.id && sim.observer.takenAtMs(shard) <= sinceMs ? [shard] : [],
  )
  if (kept.length > 0) sim.observer.violated(`Kept by p${n}, through which nothing passes: shards ${kept.join()}`)
}

/** A process that runs beats: it can talk to all that do, but those that others may have taken for dead. */
export function checkStrangers(sim: Simulation, from: number, beat: Beat): void {
  const records = beat.kind === 'ok' ? beat.workers : new Map<string, string>()
  const me = sim.process(from)
  const mine = me === undefined ? undefined : records.get(me.worker.id)
  if (me === undefined || mine === undefined || sim.observer.setBackAtMs.length > 0) return
  const record = JSON.parse(mine) as WorkerRecord
  const { nowMs } = sim.time
  me.wasSilent ||= nowMs - me.beatAtMs > SILENT_MS
  me.beatAtMs = nowMs
  if (me.state === 'dead' || record.isComing === true || record.isLeaving) return
  for (const other of sim.processes) {
    const text = records.get(other.worker.id)
    if (text === undefined || other === me || other.state === 'dead') continue
    const theirs = JSON.parse(text) as WorkerRecord
    other.wasSilent ||= nowMs - other.beatAtMs > SILENT_MS
    const werePunctual = !me.wasSilent && !other.wasSilent
    if (
      werePunctual &&
      theirs.isComing !== true &&
      !theirs.isLeaving &&
      !understandEachOther(protocolOf(record), protocolOf(theirs))
    )
      sim.observer.violated(`Strangers run together: p${me.n} and p${other.n}`)
  }
}
