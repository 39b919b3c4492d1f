/**
 * delivery - a request reaches the store or does not; its answer is sent or lost.
 *
 * A verdict is invented only if it is true. LATE, OOM and CONFLICT mean that nothing was written, so they are given
 * only to commits that the store has neither applied nor seen yet.
 */
import type { Beat, Meta, Verdict } from '../../cluster/store.ts'
import { checkStrangers } from './half-dead.ts'
import type { Request } from './network.ts'
import type { SimStore } from './sim-store.ts'
import type { Simulation } from './simulation.ts'

const HELD_COMMITS_MAX = 5
const HELD_MAX_MS = 1_500

/** Executes a request, with the faults that chance wants. */
export async function deliver(sim: Simulation, request: Request): Promise<void> {
  const { chance, faults } = sim
  const what = sim.describe(request)
  if (request.method === 'commit' && chance.hit(0.08 * faults)) {
    const verdict = await madeUpVerdict(sim, request)
    if (verdict !== null) {
      sim.note(`${what} ends as ${verdict.kind}`)
      return answer(sim, request, verdict)
    }
  }
  if (request.method === 'enqueue' && chance.hit(0.03 * faults)) return answer(sim, request, 'unsent')
  const isLost = chance.hit((WRITES.has(request.method) ? 0.04 : 0.01) * faults)
  if (isLost && request.method === 'heartbeat') doubt(sim, request)
  if (isLost && chance.hit(0.5)) {
    sim.note(`${what} lost on its way`)
    return answer(sim, request, request.lost)
  }
  const value = await sim.execute(request)
  if (request.method === 'heartbeat' && value !== request.lost) checkStrangers(sim, request.from, value as Beat)
  sim.note(`${what} ${isLost ? 'done, answer lost' : 'done'} ${verdictOf(request, value)}`)
  answer(sim, request, isLost ? request.lost : value)
}

const WRITES: ReadonlySet<string> = new Set(['commit', 'enqueue', 'handIn', 'acquire', 'release'])

function answer(sim: Simulation, request: Request, value: unknown): void {
  const { chance, observer, time, faults } = sim
  if (sim.process(request.from)?.state === 'dead') return
  const isHeld = request.method === 'read' && chance.hit(0.15 * faults)
  const heldUntilCommits = isHeld ? observer.commitsOf(request.shard) + 1 + chance.below(HELD_COMMITS_MAX) : 0
  const heldUntilMs = isHeld ? time.nowMs + HELD_MAX_MS : 0
  sim.network.answers.push({ request, value, heldUntilCommits, heldUntilMs })
  if (isHeld || chance.hit(0.6)) return
  const last = sim.network.answers[sim.network.answers.length - 1]!
  if (sim.process(request.from)?.isAwake === true && !sim.isHeld(request)) sim.network.complete(last)
}

/** Other processes may come to consider this one dead. */
function doubt(sim: Simulation, request: Request): void {
  const process = sim.process(request.from)
  if (process !== undefined) process.doubtedAtMs = sim.time.nowMs
}

/** A true verdict on a commit that was not applied, or null if it may have been applied. */
async function madeUpVerdict(sim: Simulation, { commit, node }: Request): Promise<Verdict | null> {
  if (commit === null) return null
  const store = node?.base ?? (sim.base as SimStore)
  const meta: Meta | null = (await store.metas([commit.shard]))?.[0] ?? null
  if (meta === null || meta.last === commit.commitId || meta.token !== commit.token || meta.seq !== commit.seq)
    return null
  const { chance } = sim
  const draw = chance.below(4)
  if (draw === 0) return { kind: 'unsent' }
  if (draw === 1 && !commit.frees) return { kind: 'refused', reason: 'OOM' }
  if (draw === 2 && commit.seq > 0) return { kind: 'conflict', seq: commit.seq - 1 }
  return { kind: 'late', nowMs: node?.base.nowMs ?? sim.storeMs() }
}

function verdictOf({ method }: Request, value: unknown): string {
  if (method === 'commit' || method === 'acquire') return (value as { kind: string }).kind
  return method === 'enqueue' ? String(value) : ''
}
