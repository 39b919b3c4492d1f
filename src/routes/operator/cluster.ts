/**
 * cluster - GET /v1/operator/shards and GET /v1/operator/entities/{kind}/{id}
 *
 * Spec operator.shards, operator.entity
 */

import { BEHAVIOURS } from '../../actors/behaviours.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refuse } from '../../http/respond.ts'
import { readShards } from '../../views/operator/shards.ts'
import { readStates } from '../../views/operator/states.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** What the routes need beside. */
export interface ClusterDeps extends OperatorDeps {
  /** Ids of the processes that live, this one's among them. */
  readonly livingWorkers: () => readonly string[]
}

const KINDS: ReadonlySet<string> = new Set(BEHAVIOURS.entities.map(({ kind }) => kind))

/** GET /v1/operator/shards */
export function makeReadShards({ read, livingWorkers }: ClusterDeps): HandlerOf<'readShards'> {
  return asOperator(read, async () => {
    const seen = await readShards(read, livingWorkers())
    return seen === null ? refuse('unavailable') : { status: 200, json: seen }
  })
}

/** GET /v1/operator/entities/{kind}/{id} */
export function makeReadEntity({ read }: ClusterDeps): HandlerOf<'readEntity'> {
  return asOperator(read, async ({ params }) => {
    const { kind = '', id = '' } = params
    if (!KINDS.has(kind)) return refuse('not_found')
    const seen = await readStates(read, { kind, id: id.toLowerCase() })
    return typeof seen === 'string' ? refuse(seen) : { status: 200, json: seen }
  })
}
