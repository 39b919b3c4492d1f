/** chaos - one step of the simulation: draws by weight which of the possible events happens now. */

import type { Ask } from './client.ts'
import { goOn } from './cluster/failovers.ts'
import { deliver } from './delivery.ts'
import { faultStep, resume } from './faults.ts'
import { checkIll } from './half-dead.ts'
import type { Answer } from './network.ts'
import { LASTING } from './observer.ts'
import { type Effect, isHopeless, type SimProcess } from './process.ts'
import type { Simulation } from './simulation.ts'

/** How much time passes at once, while some shard runs and while none does. */
const SOON_MS = 30
const LATER_MS = 600
/** The weight while a process or node is unreachable, which lasts longer than most other states. */
const HURRY_MS = 1_200
const LATE_MS_MAX = 500
const FAULT_CHANCE = 0.025
/** The chance that a long effect has not ended yet. */
const SLOW_CHANCE = 0.8
const LOCAL_CHANCE = 0.6
/** A published message arrives or is lost. */
const LOST_CHANCE = 0.2
const AGAIN_CHANCE = 0.1
/** Commands sent by an order that has ended or is frozen may still arrive later. */
const STRAY = 0.03
/** Asks under way at once, and asks of one seed. */
const OPEN_MAX = 14
const ASKS_MAX = 400

type Action = readonly [weight: number, act: () => void | Promise<void>]

/** Draws one action and does it. */
export async function chaosStep(sim: Simulation): Promise<void> {
  const { chance } = sim
  for (const process of sim.processes)
    if (process.state === 'paused' && process.wakesAtMs <= sim.time.nowMs) resume(sim, process)
  goOn(sim)
  await checkIll(sim)
  if (chance.hit(FAULT_CHANCE)) return faultStep(sim)
  const actions: Action[] = [...workActions(sim), [1.2, () => passTime(sim)]]
  let draw = chance.next() * actions.reduce((sum, [weight]) => sum + weight, 0)
  for (const [weight, act] of actions) {
    draw -= weight
    if (draw < 0) return act()
  }
}

function workActions(sim: Simulation): Action[] {
  const { chance, network, time, clients } = sim
  const actions: Action[] = []
  const awake = sim.processes.filter(({ isAwake }) => isAwake)
  const passing = network.requests.filter((request) => !sim.isHeld(request) && !network.isBehind(request))
  if (passing.length > 0)
    actions.push([5, () => deliver(sim, network.takeRequest(network.requests.indexOf(chance.pick(passing))))])
  const answers = network.answers.filter((answer) => canHear(sim, answer))
  if (answers.length > 0) actions.push([5, () => hand(sim, chance.pick(answers))])
  if (network.said.length > 0) actions.push([4, () => hear(sim, chance.below(network.said.length))])
  const timers = time.dueTimers(sim.awakeClocks())
  if (timers.length > 0) actions.push([3, () => time.call(chance.pick(timers))])
  const busy = awake.filter(({ effects }) => effects.length > 0)
  if (busy.length > 0) actions.push([1, () => endEffect(sim, chance.pick(busy))])
  const open = awake.filter(({ state, worker }) => state === 'running' && worker.ready())
  if (open.length > 0 && clients.asks.length < ASKS_MAX && clients.open < OPEN_MAX)
    actions.push([1.2, () => askSome(sim, open)])
  const live = sim.orders.sending.filter(({ state }) => state === 'live')
  if (live.length > 0) actions.push([4, () => sim.orders.advance(chance.pick(live))])
  const stray = sim.orders.sending.filter(({ state }) => state !== 'live')
  if (stray.length > 0) actions.push([STRAY, () => sim.orders.advance(chance.pick(stray))])
  return actions
}

/** Delivers an answer to a process that can receive it. */
export function hand(sim: Simulation, answer: Answer): void {
  sim.note(`answer ${sim.describe(answer.request)}`)
  sim.network.complete(answer)
}

/** A published message or a reply arrives or is lost. A reply may arrive a second time. */
export function hear(sim: Simulation, at: number): void {
  const { chance, faults, network } = sim
  const [said] = network.said.splice(at, 1)
  if (
    said === undefined ||
    sim.process(said.to)?.isAwake !== true ||
    sim.isCutOff(said.to) ||
    chance.hit(LOST_CHANCE * faults)
  )
    return
  if (said.what === 'replies' && chance.hit(AGAIN_CHANCE * faults)) network.said.push(said)
  sim.note(`hear p${said.to} ${said.what}`)
  said.call()
}

/** Whether an answer may be handed over now. */
function canHear(sim: Simulation, { request, heldUntilCommits, heldUntilMs }: Answer): boolean {
  if (sim.process(request.from)?.isAwake !== true || sim.isHeld(request)) return false
  return heldUntilMs <= sim.time.nowMs || sim.observer.commitsOf(request.shard) >= heldUntilCommits
}

/** A little time, or all until the next timer when nothing is under way. */
function passTime(sim: Simulation): void {
  const { chance, network, time } = sim
  const isQuiet = network.requests.length === 0 && network.answers.length === 0 && sim.orders.sending.length === 0
  const nextMs = time.nextMs(sim.awakeClocks())
  const isWorking = sim.processes.some((process) => process.isAwake && process.worker.stats().running > 0)
  const stepMs = time.nowMs < sim.hurryUntilMs ? HURRY_MS : isWorking ? SOON_MS : LATER_MS
  // However quickly time passes, a process that runs is not much behind with its timers.
  if (stepMs === HURRY_MS)
    for (const timer of time.dueTimers(sim.awakeClocks()))
      if (time.nowMs - timer.atMs > LATE_MS_MAX && time.timers.has(timer)) time.call(timer)
  time.nowMs += chance.next() * stepMs
  if (isQuiet && nextMs > time.nowMs && nextMs !== Number.POSITIVE_INFINITY) time.nowMs = nextMs
}

function endEffect(sim: Simulation, process: SimProcess): void {
  const { chance } = sim
  const effect = chance.pick(process.effects)
  if (effect.lane.startsWith(LASTING) && chance.hit(SLOW_CHANCE)) return
  const draw = isHopeless(effect.performance) ? 1 : chance.next()
  const { item, attempt } = effect.performance
  sim.note(
    `effect p${process.n} ${item} ${attempt} ${draw < 0.55 ? 'delivered' : draw < 0.85 ? 'later' : draw < 0.93 ? 'odd' : 'fails'}`,
  )
  if (draw < 0.55) deliverEffect(sim, process, effect)
  else if (draw < 0.85) effect.end({ kind: 'later', afterMs: 200 + chance.below(3_000) })
  else if (draw < 0.93) effect.end({ kind: 'odd' })
  else effect.fail(new Error('The effect failed on purpose'))
}

/** The step that the world cannot undo, if the fence allows it. While it does not, the step waits. */
export function deliverEffect(sim: Simulation, process: SimProcess, effect: Effect): void {
  const state = process.fence.look(effect.pass)
  if (state === 'shut') effect.end({ kind: 'later', afterMs: 0 })
  if (state !== 'open') return
  sim.takes(process, effect)
  effect.end({ kind: 'delivered' })
}

/** One ask or a burst. Sometimes all asks of a burst are equal. */
function askSome(sim: Simulation, processes: readonly SimProcess[]): void {
  const { chance, clients } = sim
  const count = chance.hit(0.35) ? 2 + chance.below(3) : 1
  const isLocal = chance.hit(LOCAL_CHANCE)
  const isSame = chance.hit(0.6)
  let first: Ask | null = null
  for (let i = 0; i < count; i += 1) {
    const ask: Ask = clients.ask(processes, { isLocal, nowMs: sim.time.nowMs, same: isSame ? first : null })
    first ??= ask
    sim.note(`ask ${ask.n} p${ask.process.n} ${ask.name} ${ask.body.account}`)
  }
}
