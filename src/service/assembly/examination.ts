/** examination - the checks of `doctor` over the parts of a process, and the roles of all processes */

import type { Worker } from '../../../cluster/worker/worker.ts'
import { type ExamineDeps, examine } from '../../health/examine.ts'
import type { Metrics } from '../../process/metrics.ts'
import type { Secrets } from '../../process/secrets.ts'
import { readLivingRoles, type StoreCondition } from '../../store/condition.ts'
import type { Nodes } from '../../store/nodes.ts'
import { makeReader } from '../../views/key.ts'
import type { RouteDeps } from '../handlers.ts'

/** Parts of a process that are examined. */
type ExaminedParts = Omit<
  ExamineDeps,
  'livingRoles' | 'read' | 'ring' | 'store' | 'storeFault' | 'storeMs' | 'nowMs'
> & {
  readonly store: Parameters<typeof makeReader>[0]
  readonly secrets: Pick<Secrets, 'ring'>
  readonly watch: { readonly fault: string | null }
  readonly nodes: Nodes
  readonly metrics: Pick<Metrics, 'examined'>
}

/** Examines everything that the installation needs of the world around it. */
export function makeExamine(parts: ExaminedParts, worker: Worker, store: StoreCondition): RouteDeps['examine'] {
  const { secrets, watch } = parts
  const read = makeReader(parts.store)
  const clocks = { storeMs: () => worker.nowMs(), nowMs: Date.now }
  const around = { storeFault: () => watch.fault, livingRoles: makeLivingRoles(parts, worker), ring: secrets.ring }
  const deps = { ...parts, ...around, ...clocks, store, read }
  return async () => {
    const health = await examine(deps)
    parts.metrics.examined(health.findings)
    return health
  }
}

/** Reads the roles of the living processes. */
export function makeLivingRoles(
  { nodes }: Pick<ExaminedParts, 'nodes'>,
  worker: Worker,
): () => Promise<ReadonlySet<string>> {
  return () => readLivingRoles(nodes, worker.livingWorkers)
}
