/**
 * move-shards - shards go to another Redis of their cluster, one after the other, while the service runs
 *
 * Guarantees: nothing is begun while the cluster is not well, while another move is unfinished, or towards a Redis that
 * has no room or, where answers wait for replicas, no replica. What was cut off is gone on with by the same order.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import {
  type ClusterLook,
  goesOn,
  lookAtCluster,
  type NodeLook,
  nodeTimeoutMs,
  openMoves,
  replicasInStep,
} from '../../../cluster/slots/cluster-look.ts'
import { clusterFaults } from '../../../cluster/slots/cluster-rules.ts'
import { type MoveEnd, moveSlot, type SlotMove, settleSlot } from '../../../cluster/slots/move-slot.ts'
import { SHARD_SLOTS, withPlace } from '../../../cluster/slots/slot-map.ts'
import type { Config } from '../../process/config.ts'
import { FILLING_SHARE } from '../fill.ts'
import { type ClusterState, clusterState } from './cluster-state.ts'
import type { Holder } from './plan-moves.ts'

/** Nodes tell each other of a move within this; they are looked at again until they agree. */
const AGREED_MS_MAX = 20_000
const LOOK_AGAIN_MS = 250
const REPLICA_MS_MAX = 10_000
const COMMAND_MS_MAX = 60_000
/** As Redis has it where nobody has set it. */
const NODE_TIMEOUT_MS = 15_000

export interface ShardMoved {
  readonly shard: number
  readonly from: string
  readonly to: string
  readonly keys: number
  readonly ms: number
}

export interface MoveOrder {
  readonly shards: readonly number[]
  /** `host:port`, as the cluster names it. */
  readonly to: string
  /** Hears how far a shard is. */
  readonly progress: (shard: number, moved: number, keys: number) => void
  readonly done: (moved: ShardMoved) => void
}

type Settings = Pick<Config, 'redisUrls' | 'durability'>

/** The primaries that can hold shards, and what they hold. Throws Error where the cluster does not answer. */
export async function readHolders(settings: Settings): Promise<Holder[]> {
  const { nodes } = await lookAtAll(settings)
  return nodes.filter(({ isPrimary, answers }) => isPrimary && answers?.isWell === true)
}

/** All nodes. Throws Error where the cluster does not answer. */
export async function readState(settings: Settings): Promise<ClusterState> {
  return clusterState(await lookAtAll(settings), settings.durability)
}

/** Moves them. Throws Error, a sentence, where it must not begin or cannot go on. */
export async function moveShards(settings: Settings, order: MoveOrder): Promise<void> {
  for (const shard of order.shards) {
    const look = await lookUntilWell(settings, order)
    await moveOne(settings, look, { shard, order })
  }
}

async function lookAtAll({ redisUrls }: Settings): Promise<ClusterLook> {
  if (redisUrls.length === 0) throw new Error('The store is no Redis Cluster: set REDIS_URL to one of its nodes')
  const look = redisUrls.some((url) => url.startsWith('unix:')) ? null : await lookAtCluster(redisUrls)
  if (look === null) throw new Error('No node of a Redis Cluster answers: REDIS_URL names none that does')
  return look
}

/** After a move the nodes agree within a moment; what does not go away is told. */
async function lookUntilWell(settings: Settings, order: MoveOrder): Promise<ClusterLook> {
  const endMs = performance.now() + AGREED_MS_MAX
  for (;;) {
    const look = await lookAtAll(settings)
    const reason = whyNotNow(look, settings, order)
    if (reason === null) return look
    if (!reason.mayPass || performance.now() > endMs) throw new Error(reason.sentence)
    await pause(LOOK_AGAIN_MS)
  }
}

/** Why nothing is moved now; null: it may be. */
function whyNotNow(
  look: ClusterLook,
  { durability }: Settings,
  { shards, to }: MoveOrder,
): { readonly sentence: string; readonly mayPass: boolean } | null {
  const never = (sentence: string) => ({ sentence, mayPass: false })
  const { nodes } = look
  const target = nodes.find(({ name }) => name === to)
  if (target === undefined)
    return never(`No ${to} in this cluster: there are ${nodes.map(({ name }) => name).join(', ')}`)
  if (!target.isPrimary) return never(`${to} is a replica: name the primary that is to have the shards`)
  const [fault] = clusterFaults(look, durability)
  if (fault !== undefined) return never(`Nothing is moved in a cluster that is not well: ${fault}`)
  const needed = nodes.filter(({ name, shards: held }) => held.length > 0 || name === to)
  const silent = needed.find(({ answers }) => answers === null)
  if (silent !== undefined)
    return never(`Nothing is moved in a cluster that is not well: ${silent.name} does not answer`)
  // One that has just come takes part a moment later.
  const apart = needed.find(({ answers }) => answers?.isWell !== true)
  if (apart !== undefined)
    return { sentence: `Nothing is moved in a cluster that is not well: ${apart.name} takes no part`, mayPass: true }
  const other = openMoves(look).find((open) => !shards.includes(open.shard) || !goesOn(look, open.to, to))
  if (other !== undefined)
    return never(`Another move is unfinished: first sendwright cluster move ${other.shard} ${other.to ?? '<node>'}`)
  if (durability === 'replica' && replicasInStep(look, to) === 0)
    return never(`${to} has no replica in step: what is moved there would not be answered`)
  const number = (key: string): number => Number(target.answers?.info.get(key) ?? 0)
  if (number('maxmemory') > 0 && number('used_memory') / number('maxmemory') >= FILLING_SHARE)
    return never(`${to} is ${FILLING_SHARE * 100} % full or more: give it memory first`)
  return haveAgreed(look)
    ? null
    : { sentence: 'The nodes do not agree who holds which shard: wait, and try again', mayPass: true }
}

/** Whether all that answer name the same primary for each shard. */
function haveAgreed({ nodes }: ClusterLook): boolean {
  const views = nodes.flatMap(({ answers }) => (answers === null ? [] : [answers.nodes]))
  return nodes.every(({ id, shards }) =>
    views.every((view) => {
      const ranges = view.find((line) => line.id === id)?.ranges ?? []
      return shards.every((shard) => {
        const slot = SHARD_SLOTS[shard] ?? 0
        return ranges.some(([first, last]) => slot >= first && slot <= last)
      })
    }),
  )
}

async function moveOne(
  settings: Settings,
  look: ClusterLook,
  { shard, order }: { shard: number; order: MoveOrder },
): Promise<void> {
  const startedAtMs = performance.now()
  const form = new URL(settings.redisUrls[0] ?? '')
  const primaries = look.nodes.filter(({ isPrimary, answers }) => isPrimary && answers !== null)
  const clients = primaries.map(({ name }) => makeClient(form, name))
  try {
    const ends = await Promise.all(primaries.map((node, place) => connect(node, clients[place] as Redis)))
    const source = ends[primaries.findIndex(({ shards }) => shards.includes(shard))]
    const target = ends[primaries.findIndex(({ name }) => name === order.to)]
    if (source === undefined || target === undefined) throw new Error(`Nobody holds shard ${shard}: look again`)
    const [user, password] = [form.username, form.password].map(decodeURIComponent) as [string, string]
    const giveMsMax = Math.max(1, Math.floor((nodeTimeoutMs(look) ?? NODE_TIMEOUT_MS) / 2))
    const move = { slot: SHARD_SLOTS[shard] ?? 0, source, target, primaries: ends, user, password, giveMsMax }
    await mustBeAlone(move, shard)
    let keys = 0
    if (source === target) await settleSlot(move)
    else keys = await moveSlot(move, (moved, all) => order.progress(shard, moved, all))
    if (settings.durability === 'replica') await reachReplica(target)
    order.done({ shard, from: source.name, to: target.name, keys, ms: Math.round(performance.now() - startedAtMs) })
  } finally {
    for (const client of clients) client.disconnect()
  }
}

/** A move that was cut off may have left keys at a third one: they would be lost there. */
async function mustBeAlone({ slot, source, target, primaries }: SlotMove, shard: number): Promise<void> {
  for (const { client, name } of primaries) {
    if (name === source.name || name === target.name) continue
    if (Number(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot)) === 0) continue
    throw new Error(`${name} has keys of shard ${shard} too: first sendwright cluster move ${shard} ${name}`)
  }
}

function makeClient(form: URL, name: string): Redis {
  const client = new Redis(withPlace(form, name), {
    connectionName: 'move',
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_MS_MAX,
    disableClientInfo: true,
  })
  client.on('error', () => undefined)
  return client
}

async function connect({ id, name }: NodeLook, client: Redis): Promise<MoveEnd> {
  await client.connect().catch((error: Error) => {
    throw new Error(`A node is not reached: ${name}, ${error.message}`)
  })
  return { id, name, client }
}

/** What has come is in a replica before more comes. */
async function reachReplica({ client, name }: MoveEnd): Promise<void> {
  await client.ping()
  const reached = Number(await client.wait(1, REPLICA_MS_MAX))
  if (reached < 1) throw new Error(`No replica of ${name} has what was moved there: look at them, then go on`)
}
