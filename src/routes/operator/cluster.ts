/**
 * cluster - GET /v1/operator/shards and GET /v1/operator/entities/{kind}/{id}
 *
 * Spec operator.shards, operator.entity
 */

import type { ShardList } from '../../../schemas/operator/cluster.ts'
import { BEHAVIOURS } from '../../actors/behaviours.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import { redisRows } from '../../store/cluster/cluster-state.ts'
import type { StoreCondition } from '../../store/condition.ts'
import { readShards } from '../../views/operator/shards.ts'
import { readStates } from '../../views/operator/states.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** Further dependencies of the routes. */
export interface ClusterDeps extends OperatorDeps {
  /** Ids of the processes that live, this one's among them. */
  readonly livingWorkers: () => readonly string[]
  /** Examines every Redis of a cluster; null if there is a single Redis. */
  readonly cluster: StoreCondition['cluster']
}

const KINDS: ReadonlySet<string> = new Set(BEHAVIOURS.entities.map(({ kind }) => kind))

/** GET /v1/operator/shards */
export function makeReadShards({ read, livingWorkers, cluster }: ClusterDeps): HandlerOf<'readShards'> {
  return asOperator(read, async () => {
    const [seen, redis] = await Promise.all([readShards(read, livingWorkers()), readNodes(cluster)])
    return seen === null || redis === null ? refusalReply('unavailable') : { status: 200, json: { ...seen, redis } }
  })
}

/** Every Redis of a cluster; empty for a single Redis; null if none answers. */
async function readNodes(cluster: StoreCondition['cluster']): Promise<ShardList['redis'] | null> {
  if (cluster === null) return []
  const state = await cluster()
  return state === null ? null : redisRows(state)
}

/** GET /v1/operator/entities/{kind}/{id} */
export function makeReadEntity({ read }: ClusterDeps): HandlerOf<'readEntity'> {
  return asOperator(read, async ({ params }) => {
    const { kind = '', id = '' } = params
    if (!KINDS.has(kind)) return refusalReply('not_found')
    const seen = await readStates(read, { kind, id: id.toLowerCase() })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  })
}
