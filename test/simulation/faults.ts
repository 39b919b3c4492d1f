/** faults - faults of processes, of the store and of its clock. One is drawn at random. */
import { failOver, moveShard } from './cluster/failovers.ts'
import { SimCluster } from './cluster/sim-cluster.ts'
import { fallIll } from './half-dead.ts'
import { LASTING } from './observer.ts'
import { SHARDS, type SimProcess } from './process.ts'
import { SimStore } from './sim-store.ts'
import { type Simulation, WORKERS } from './simulation.ts'

/** A store is set back by at most so many commits. */
const SET_BACK_COMMITS_MAX = 5
/** Kills and stops of one seed. */
const ENDED_MAX = 4

interface Mark {
  readonly store: unknown
  readonly seen: ReturnType<Simulation['observer']['mark']>
  readonly commits: number
}

const marks = new WeakMap<Simulation, Mark>()

/** One fault. Most draws are empty, so that work continues between them. */
export function faultStep(sim: Simulation): void {
  const draw = sim.chance.next()
  const isOfSeveral = sim.base instanceof SimCluster
  const running = sim.processes.filter(({ state }) => state === 'running')
  const paused = sim.processes.filter(({ state }) => state === 'paused')
  if (draw < 0.08 && running.length > 1) pause(sim, sim.chance.pick(running))
  else if (draw < 0.3 && paused.length > 0) resume(sim, sim.chance.pick(paused))
  else if (draw < 0.36 && running.length > 0 && sim.ended < ENDED_MAX) kill(sim, sim.chance.pick(running))
  else if (draw < 0.46 && running.length > 1 && sim.ended < ENDED_MAX) stop(sim, sim.chance.pick(running))
  else if (draw < 0.5) jump(sim)
  else if (draw < 0.54) fill(sim)
  else if (draw < 0.64 && sim.setsBack) mark(sim)
  else if (draw < 0.64 && isOfSeveral) moveShard(sim)
  else if (draw < 0.72 && sim.setsBack) setBack(sim)
  else if (draw < 0.72 && isOfSeveral) failOver(sim)
  else if (draw < 0.76) sim.throwTimers += 1
  else if (draw < 0.85) longWait(sim)
  else if (draw < 0.88) loseMail(sim)
  else if (draw < 0.93 && running.length > 1) cutOff(sim, busiest(sim, running))
  else if (draw < 0.96 && running.length > 1) freeze(sim, busiest(sim, running))
  else if (draw < 0.99 && running.length > 1) fallIll(sim, running)
}

export function resume(sim: Simulation, process: SimProcess): void {
  sim.note(`resume p${process.n}`)
  process.state = 'running'
  process.wakesAtMs = Number.POSITIVE_INFINITY
  process.doubtedAtMs = sim.time.nowMs
  process.soundSinceMs = sim.time.nowMs
}

function pause(sim: Simulation, process: SimProcess): void {
  sim.note(`pause p${process.n}`)
  process.state = 'paused'
  process.doubtedAtMs = sim.time.nowMs
  process.soundSinceMs = Number.POSITIVE_INFINITY
}

/**
 * For a while nothing passes between a process and the store. Nothing is lost, and the process continues with what it
 * has.
 */
function cutOff(sim: Simulation, process: SimProcess): void {
  const { time, chance } = sim
  if (time.nowMs < sim.hurryUntilMs) return
  process.cutOff = { sinceMs: time.nowMs, untilMs: time.nowMs + 3_000 + chance.below(15_000) }
  sim.hurryUntilMs = process.cutOff.untilMs
  process.doubtedAtMs = process.cutOff.untilMs
  process.soundSinceMs = process.cutOff.untilMs
  sim.note(`cut off p${process.n}`)
  // For as long as its last answered heartbeat is valid, without any further answer.
  if (chance.hit(0.3)) time.nowMs += 5_500
}

/** A process with an effect in flight that outlasts its claim, if there is one. */
function busiest(sim: Simulation, running: readonly SimProcess[]): SimProcess {
  const busy = running.filter(({ effects }) => effects.some(({ lane }) => lane.startsWith(LASTING)))
  return sim.chance.pick(busy.length > 0 ? busy : running)
}

/** A process freezes for longer than the others consider it alive, and resumes by itself. */
function freeze(sim: Simulation, process: SimProcess): void {
  const { time, chance } = sim
  if (time.nowMs < sim.hurryUntilMs) return
  pause(sim, process)
  sim.hurryUntilMs = time.nowMs + 12_000 + chance.below(6_000)
  process.wakesAtMs = sim.hurryUntilMs
}

function kill(sim: Simulation, process: SimProcess): void {
  sim.ended += 1
  sim.kill(process)
  if (sim.processes.filter(({ state }) => state !== 'dead').length < WORKERS) sim.startProcess()
}

function stop(sim: Simulation, process: SimProcess): void {
  sim.note(`stop p${process.n}`)
  process.state = 'stopping'
  sim.ended += 1
  void process.worker.stop().then(() => {
    if (process.state !== 'dead') sim.kill(process)
  })
  sim.startProcess()
}

/** The store's clock jumps: far ahead, or a little back. */
function jump(sim: Simulation): void {
  const isBack = sim.chance.hit(0.4)
  const ms = isBack ? -(1 + sim.chance.below(800)) : 1 + sim.chance.below(sim.chance.pick([500, 500, 6_000, 20_000]))
  if (isBack) sim.backAtMs.push(sim.time.nowMs)
  sim.storeOffsetMs += ms
  sim.note(`clock ${ms}`)
}

function fill(sim: Simulation): void {
  sim.fullUntilMs = sim.time.nowMs + 50 + sim.chance.below(600)
  sim.note('full')
}

/** A stretch of time in which only timers run dry: heartbeats get old, claims lapse. */
function longWait(sim: Simulation): void {
  sim.time.nowMs += 200 + sim.chance.below(1_500)
  sim.note('time')
}

/** The store ends and comes back without what was enqueued: that is not in its file. */
function loseMail(sim: Simulation): void {
  sim.note('mail lost')
  for (let shard = 0; shard < SHARDS; shard += 1) sim.base.forgetMail(shard)
}

function mark(sim: Simulation): void {
  const { base, observer } = sim
  if (!(base instanceof SimStore)) return
  marks.set(sim, { store: base.snapshot(), seen: observer.mark(), commits: observer.commits })
}

/** The store loses its last commits, as after a failover. */
function setBack(sim: Simulation): void {
  const marked = marks.get(sim)
  marks.delete(sim)
  if (marked === undefined || !(sim.base instanceof SimStore)) return
  const lost = sim.observer.commits - marked.commits
  if (lost === 0 || lost > SET_BACK_COMMITS_MAX) return
  sim.note(`set back by ${lost}`)
  sim.base.restore(marked.store as never)
  const before = sim.observer.mark()
  sim.observer.setBack(marked.seen)
  for (const [shard, seq] of before.seqs) {
    const owner = sim.processes.find((process) => isHolding(process, shard, { seq, epoch: before.epochs.get(shard) }))
    // What was confirmed before a grant that is also lost may have been restored by others.
    const isGrantLost = (before.epochs.get(shard) ?? 0) > (marked.seen.epochs.get(shard) ?? 0)
    const lostFrom = isGrantLost
      ? (owner?.shardOf(shard)?.knownCommits.keptBy({ seq, token: '' }) ?? seq)
      : (marked.seen.seqs.get(shard) ?? 0)
    if (seq > lostFrom && owner !== undefined) sim.losses.push({ shard, owner, atMs: sim.time.nowMs })
  }
}

/** Whether a process holds a shard according to the store. False while it gives the shard back. */
function isHolding(process: SimProcess, shard: number, now: { seq: number; epoch: number | undefined }): boolean {
  const mine = process.shardOf(shard)
  const isOwn = mine?.accepts === true && Number(mine.token.split(':')[0]) === now.epoch
  return process.isAwake && isOwn && mine.seq === now.seq
}
