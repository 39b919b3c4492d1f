/**
 * walk - the walk over all values that are sealed: some keys in a turn, and the place in the store where it continues
 *
 * Values are read beside the actors, and sealed again by commands to their shards, which leave a value that has changed
 * since. After a restart of a Redis, or a move of shards between several, the walk begins again, because its place
 * means nothing there.
 *
 * Spec secret.rotate
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as rest } from 'node:timers/promises'
import type { Ask } from '../../../cluster/work.ts'
import type { ResealReply } from '../../actors/operator/reseal.ts'
import type { KeyWalk, RotationState } from '../../state/ring/rotation.ts'
import { NONCE_BYTES, type SealingRing } from '../../state/ring/sealing.ts'
import type { Nodes } from '../../store/nodes.ts'
import { countKeys, eachRedis, type FoundValues, readRun, scanSealed } from '../../store/sealed-scan.ts'

/** The longest turn, but for the page that it has begun. */
const TURN_MS = 2_000
/** The rest after values that were sealed again, so that acceptance does not feel it. */
const REST_MS = 5
/** The cursor at the end of the last Redis. */
export const END = 'end'
const BEGIN = '0'

export interface WalkDeps {
  readonly nodes: Nodes
  readonly ring: SealingRing
  readonly ask: Ask
  readonly newCmdId: () => string
  /** The store's clock, ms. */
  readonly nowMs: () => number
}

/** Walks for a while. Returns the state with the new place. Rejects if the store did not answer. */
export async function walkSome(deps: WalkDeps, state: RotationState): Promise<RotationState> {
  const { nodes } = deps
  const run = await readRun(nodes)
  const isSame = state.walk?.run === run
  const keys = isSame ? state.keys : await countKeys(nodes)
  let walk = isSame && state.walk !== null ? state.walk : beginning(run, deps.nowMs())
  let { resealed } = state
  const endMs = performance.now() + TURN_MS
  while (walk.cursor !== END && performance.now() < endMs) {
    const done = await walkPage(deps, walk)
    walk = done.walk
    resealed += done.resealed
  }
  // A restart in the meantime may have hidden keys from the cursor.
  const isStill = (await readRun(nodes)) === run
  return { ...state, walk: isStill ? walk : null, keys, resealed }
}

function beginning(run: string, beganMs: number): KeyWalk {
  return { run, node: 0, cursor: BEGIN, visited: 0, found: 0, unreadable: 0, beganMs }
}

async function walkPage(deps: WalkDeps, walk: KeyWalk): Promise<{ readonly walk: KeyWalk; readonly resealed: number }> {
  const all = eachRedis(deps.nodes)
  const redis = all[walk.node]
  if (redis === undefined) return { walk: { ...walk, cursor: END }, resealed: 0 }
  const page = await scanSealed(redis, walk.cursor, { ring: deps.ring, nonce: () => randomBytes(NONCE_BYTES) })
  let [found, unreadable, resealed] = [walk.found, walk.unreadable, 0]
  for await (const values of page.values) {
    if (values === 'unreadable') {
      unreadable += 1
      continue
    }
    found += 1
    resealed += await order(deps, values)
    await rest(REST_MS)
  }
  const isEnd = page.cursor === BEGIN
  const node = isEnd ? walk.node + 1 : walk.node
  const cursor = isEnd && node === all.length ? END : page.cursor
  return { walk: { ...walk, node, cursor, visited: walk.visited + page.visited, found, unreadable }, resealed }
}

/** Orders that values are sealed again; how many were. What was not is found by the next walk. */
async function order({ ask, newCmdId }: WalkDeps, values: FoundValues): Promise<number> {
  const cmdId = newCmdId()
  const { shard } = values
  const result = await ask(shard, { cmdId, ...commandOf(values) })
  if (result.kind !== 'answer') return 0
  return values.kind === 'segment' ? 1 : (result.reply as ResealReply).changed
}

function commandOf(values: FoundValues): { readonly name: string; readonly body: object } {
  switch (values.kind) {
    case 'segment':
      return { name: 'reseal-segment', body: { serverId: values.serverId, segment: values.segment } }
    case 'webhook':
      return { name: 'reseal-webhook', body: { webhookId: values.webhookId, secrets: values.secrets } }
    case 'fields':
      return { name: 'reseal', body: { key: values.key, of: values.of, fields: values.fields } }
  }
}
