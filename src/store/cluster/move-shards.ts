/**
 * move-shards - shards go to another Redis of their cluster, one after the other, while the service runs
 *
 * Guarantees: no move begins while the cluster is unhealthy, another move is unfinished or another order is running,
 * nor to a Redis that is full or lacks a replica if answers wait for one. The same order resumes an interrupted move;
 * an order that moves the shard to its holder undoes it (`move-slot.ts`).
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { makeClock } from '../../../cluster/clock.ts'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { clearOthers, type Follower } from '../../../cluster/slots/clear-slot.ts'
import {
  type ClusterLook,
  explainAway,
  findDissent,
  lookAtCluster,
  type NodeLook,
  nodeTimeoutMs,
  type OpenMove,
  openMoves,
  replicasInStep,
} from '../../../cluster/slots/cluster-look.ts'
import { clusterFaults } from '../../../cluster/slots/cluster-rules.ts'
import { type MoveEnd, measureBytes } from '../../../cluster/slots/copy-keys.ts'
import { finishSlot } from '../../../cluster/slots/finish-slot.ts'
import { type KeyWatch, watchKeys } from '../../../cluster/slots/key-watch.ts'
import { readHolder } from '../../../cluster/slots/move-fence.ts'
import { endHere, type MoveStep, moveSlot, type SlotMove } from '../../../cluster/slots/move-slot.ts'
import { parseNodes, SHARD_SLOTS, SlotMap, withPlace } from '../../../cluster/slots/slot-map.ts'
import type { Config } from '../../process/config.ts'
import { FILLING_SHARE, FULL_SHARE } from '../memory-pressure.ts'
import { type ClusterState, clusterState } from './cluster-state.ts'
import { MoveLock, OtherOrder } from './move-lock.ts'
import type { Holder } from './plan-moves.ts'

/** Nodes learn of a move from each other within this time; they are checked again until they agree. */
const AGREED_MS_MAX = 20_000
/** A node that is lost while one of its shards moves is replaced within this time, if any node can take its place. */
const FAILOVER_MS_MAX = 30_000
const LOOK_AGAIN_MS = 250
const TRIES_MAX = 6
const TRY_AGAIN_MS = 1_000
/** Name of the connections that move shards. */
const CONNECTION = 'move'
/** One that is frozen is noticed by then; a large key takes a second. */
const COMMAND_MS_MAX = 10_000
const CONNECT_MS_MAX = 3_000
/** The default of Redis. */
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
  /** Receives the progress of a shard. */
  readonly progress: (shard: number, moved: number, keys: number) => void
  readonly done: (moved: ShardMoved) => void
  /** Receives each step of each shard. */
  readonly at?: (step: MoveStep) => void | Promise<void>
}

/** The target cannot hold the shard: to try again changes nothing. */
class NoRoom extends Error {}

type Settings = Pick<Config, 'redisUrls' | 'durability'>

/** The primaries that can hold shards, and their shards. Throws Error if the cluster does not answer. */
export async function readHolders(settings: Settings): Promise<Holder[]> {
  const { nodes } = await lookAtAll(settings)
  return nodes.filter(({ isPrimary, answers }) => isPrimary && answers?.isWell === true)
}

/** All nodes. Throws Error if the cluster does not answer. */
export async function readState(settings: Settings): Promise<ClusterState> {
  return clusterState(await lookAtAll(settings), settings.durability)
}

/** Moves them. Throws Error, a sentence, if it must not begin or cannot continue. */
export async function moveShards(settings: Settings, order: MoveOrder): Promise<void> {
  const nonce = newCmdId(Date.now(), Math.random)
  const form = new URL(settings.redisUrls[0] ?? '')
  const lock = new MoveLock(nonce, (name) => makeClient(form, name, 'move-lock'))
  let { to } = order
  try {
    for (const shard of order.shards) to = await moveThrough(settings, { shard, to, nonce, lock, order })
  } finally {
    await lock.end()
  }
}

/** One shard of an order. */
interface ShardOrder {
  readonly shard: number
  readonly to: string
  readonly nonce: string
  readonly lock: MoveLock
  readonly order: MoveOrder
}

/**
 * Moves one shard. If a node is lost, the move continues with its successor. Returns the primary that then has the
 * shard.
 */
async function moveThrough(settings: Settings, one: ShardOrder): Promise<string> {
  let { to } = one
  let heirs: readonly string[] = []
  for (let tries = 1; ; tries += 1) {
    const wanted = { shard: one.shard, to, shards: one.order.shards, heirs, mayWait: tries > 1 }
    const look = await lookUntilWell(settings, wanted)
    to = heirIn(look, to, heirs)
    heirs = look.nodes.filter(({ primary }) => primary === to).map(({ name }) => name)
    try {
      await moveOne(settings, look, { ...one, to })
      return to
    } catch (error) {
      if (error instanceof OtherOrder || error instanceof NoRoom) throw error
      if (tries === TRIES_MAX) throw inWords(error as Error, one.shard)
      await pause(TRY_AGAIN_MS)
    }
  }
}

/** Turns an error of Redis, or of a connection to it, into a sentence. */
function inWords(error: Error, shard: number): Error {
  const isOurs = !/^(?:[A-Z]+ |Connection is closed|Command timed out|You can )/.test(error.message)
  return isOurs ? error : new Error(`A step of moving shard ${shard} failed: ${error.message}; run the command again`)
}

/** The successor of a primary, or the primary itself if there is none. Takes names of its replicas. */
function heirIn({ nodes }: ClusterLook, name: string, heirs: readonly string[]): string {
  const node = nodes.find((one) => one.name === name)
  if (node?.isPrimary === true && !node.hasFailed) return name
  return nodes.find((one) => one.isPrimary && heirs.includes(one.name))?.name ?? name
}

async function lookAtAll({ redisUrls }: Settings): Promise<ClusterLook> {
  if (redisUrls.length === 0) throw new Error('The store is not a Redis Cluster: set REDIS_URL to one of its nodes')
  const look = redisUrls.some((url) => url.startsWith('unix:')) ? null : await lookAtCluster(redisUrls)
  if (look === null) throw new Error('No node of a Redis Cluster answers: check REDIS_URL')
  return look
}

/** One shard, its target, and all shards of the order. */
interface Wanted {
  readonly shard: number
  readonly to: string
  readonly shards: readonly number[]
  /** Possible successors of `to`. */
  readonly heirs: readonly string[]
}

/**
 * After a move the nodes agree within a moment; lasting faults are reported. With `mayWait`, no fault is reported at
 * once.
 */
async function lookUntilWell(settings: Settings, wanted: Wanted & { mayWait: boolean }): Promise<ClusterLook> {
  const endMs = performance.now() + (wanted.mayWait ? FAILOVER_MS_MAX : AGREED_MS_MAX)
  for (;;) {
    const look = await lookAtAll(settings)
    const to = heirIn(look, wanted.to, wanted.heirs)
    const reason = whyNotNow(look, settings, { ...wanted, to })
    if (reason === null) return look
    if (!(reason.mayPass || wanted.mayWait) || performance.now() > endMs) throw new Error(reason.sentence)
    await pause(LOOK_AGAIN_MS)
  }
}

interface Reason {
  readonly sentence: string
  readonly mayPass: boolean
}

const never = (sentence: string): Reason => ({ sentence, mayPass: false })
const notYet = (sentence: string): Reason => ({ sentence, mayPass: true })

/** Why nothing can be moved now, or null. Ending a move at the shard's holder requires less of the other nodes. */
function whyNotNow(look: ClusterLook, { durability }: Settings, { shard, to, shards }: Wanted): Reason | null {
  const { nodes } = look
  const target = nodes.find(({ name }) => name === to)
  if (target === undefined)
    return never(`This cluster has no node ${to}: its nodes are ${nodes.map(({ name }) => name).join(', ')}`)
  if (!target.isPrimary) return never(`${to} is a replica: name a primary as the target`)
  const isHere = target.shards.includes(shard)
  const [fault] = isHere ? [] : clusterFaults(look, durability)
  if (fault !== undefined) return never(`No shard is moved while the cluster is unhealthy: ${fault}`)
  const needed = nodes.filter(({ name, shards: held }) => name === to || (held.length > 0 && !isHere))
  const silent = needed.find(({ answers }) => answers === null)
  const moves = openMoves(look)
  if (silent !== undefined)
    return never(`No shard is moved while the cluster is unhealthy: ${silent.name} does not answer`)
  const open = moves.find((one) => one.shard === shard)
  // A node that misses a move may later claim the shard for its supposed holder (Redis before 7.2).
  const missing = isHere || open?.from != null ? undefined : nodes.find(({ answers }) => answers === null)
  if (missing !== undefined)
    return never(`No shard is moved while the cluster is unhealthy: ${missing.name} does not answer`)
  // One that has just come takes part a moment later.
  const apart = needed.find(({ answers }) => answers?.isWell !== true)
  if (apart !== undefined)
    return notYet(`No shard is moved while the cluster is unhealthy: ${apart.name} has not joined`)
  // Leftovers in files, or marks at nodes that do not hold the shard, block nothing.
  const other = moves.find((one) => !shards.includes(one.shard) && (one.from !== null || one.to !== one.at))
  if (other !== undefined)
    return never(`Another move is unfinished: first run sendwright cluster move ${other.shard} ${goalOf(look, other)}`)
  const lost = open === undefined ? null : explainAway(look, open, to)
  if (lost !== null)
    return notYet(`Shard ${shard} is being moved, and ${lost} does not answer: start it, or wait for its replica`)
  if (!isHere && durability === 'replica' && replicasInStep(look, to) === 0)
    return never(`${to} has no replica in sync: writes to moved shards would get no answer`)
  const number = (key: string): number => Number(target.answers?.info.get(key) ?? 0)
  // Earlier copies there are removed first.
  if (
    !isHere &&
    open?.to !== to &&
    number('maxmemory') > 0 &&
    number('used_memory') / number('maxmemory') >= FILLING_SHARE
  )
    return never(`${to} is ${FILLING_SHARE * 100} % full or more: increase its maxmemory first`)
  return findDissent(look).length === 0
    ? null
    : notYet('The nodes disagree about the owners of shards: wait, then try again')
}

/** Where an interrupted move can end: at its target, or at the shard's holder if the target is unreachable. */
function goalOf({ nodes }: ClusterLook, { to, at }: OpenMove): string {
  const target = nodes.find(({ name }) => name === to)
  return (target?.isPrimary === true && target.answers !== null ? to : at) ?? '<node>'
}

async function moveOne(settings: Settings, look: ClusterLook, one: ShardOrder): Promise<void> {
  const { shard, to, nonce, lock, order } = one
  const startedAtMs = performance.now()
  const form = new URL(settings.redisUrls[0] ?? '')
  const answering = look.nodes.filter(({ answers }) => answers !== null)
  const clients = answering.map(({ name }) => makeClient(form, name))
  try {
    const all = await Promise.all(answering.map((node, place) => connect(node, clients[place] as Redis)))
    const ends = all.filter((_, place) => answering[place]?.isPrimary)
    const replicas = all.flatMap((end, place) => followerOf(look, answering[place] as NodeLook, end))
    const common = ends.find(({ name }) => name === look.common)
    if (common === undefined) throw new Error('The primary of {cl} is unreachable: try again when it is back')
    await lock.take(common.name)
    for (const { client } of ends) await endOthers(client)
    const slot = SHARD_SLOTS[shard] ?? 0
    const source = await holderOf(ends, slot)
    const target = ends.find(({ name }) => name === to)
    if (source === null || target === undefined) throw new Error(`No primary has shard ${shard}: try again`)
    const [user, password] = [form.username, form.password].map(decodeURIComponent) as [string, string]
    const giveMsMax = Math.max(1, Math.floor((nodeTimeoutMs(look) ?? NODE_TIMEOUT_MS) / 2))
    const isReplicated = settings.durability === 'replica'
    const mustHold = (): void => lock.mustHold()
    const ids = new Set(look.nodes.map(({ id }) => id))
    const nodes = { slot, shard, source, target, primaries: ends, replicas, ids, mustHold }
    const move: SlotMove = {
      ...nodes,
      heardMs: giveMsMax,
      clock: makeClock(),
      nonce,
      isReplicated,
      watch: () => watchAt(makeClient(form, source.name), source, shard),
      at: (step) => order.at?.(step),
    }
    if (await finishSlot({ ...nodes, user, password, giveMsMax })) {
      const wanted = { shard, to, shards: order.shards, heirs: [], mayWait: true }
      return await moveOne(settings, await lookUntilWell(settings, wanted), one)
    }
    let keys = 0
    if (source === target) await endHere(move)
    else {
      const { uncleared } = await readHolder(source.client, shard)
      await clearOthers({ ...nodes, holder: source }, uncleared)
      await mustFit(move)
      keys = await moveSlot(move, (moved, all) => order.progress(shard, moved, all))
    }
    order.done({ shard, from: source.name, to: target.name, keys, ms: Math.round(performance.now() - startedAtMs) })
  } finally {
    for (const client of clients) client.disconnect()
  }
}

/** Over a separate connection; null if it cannot be opened. */
async function watchAt(own: Redis, { client }: MoveEnd, shard: number): Promise<KeyWatch | null> {
  const isConnected = await own.connect().then(
    () => true,
    () => false,
  )
  return isConnected ? watchKeys(own, { client, shard }) : null
}

/** A replica of a primary that is known; nothing of another node. */
function followerOf({ nodes }: ClusterLook, { isPrimary, primary }: NodeLook, end: MoveEnd): Follower[] {
  const id = nodes.find(({ name }) => name === primary)?.id
  return isPrimary || id === undefined ? [] : [{ ...end, primary: id }]
}

/** Throws NoRoom if the target would be full with the shard. */
async function mustFit({ shard, slot, source, target }: SlotMove): Promise<void> {
  const info = await target.client.info('memory')
  const number = (key: string): number => Number(new RegExp(`^${key}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
  if (number('maxmemory') === 0) return
  const [room, bytes] = [
    FULL_SHARE * number('maxmemory') - number('used_memory'),
    await measureBytes(source.client, slot),
  ]
  if (bytes <= room) return
  const [needed, left] = [bytes, Math.max(0, room)].map((one) => Math.round(one / 1024 ** 2))
  throw new NoRoom(
    `Shard ${shard} needs ${needed} MB, but ${target.name} has only ${left} MB left below ${FULL_SHARE * 100} %: increase its maxmemory first`,
  )
}

/** The node that claims a slot, or the one with the higher epoch if there are two. */
async function holderOf(ends: readonly MoveEnd[], slot: number): Promise<MoveEnd | null> {
  const map = new SlotMap()
  const texts = await Promise.all(ends.map(({ client }) => client.call('CLUSTER', 'NODES') as Promise<string>))
  for (const [at, text] of texts.entries()) map.take(parseNodes(text, ends[at]?.name ?? ''), ends[at]?.name ?? '')
  return ends.find(({ name }) => name === map.addressOf(slot)) ?? null
}

/** Makes sure that commands of an order without the lock that are not read yet are never read. */
async function endOthers(client: Redis): Promise<void> {
  const own = await client.client('ID')
  for (const [, id, name] of String(await client.client('LIST')).matchAll(/^id=(\d+) .*?\bname=(\S*)/gm))
    if (name === CONNECTION && Number(id) !== own) await client.client('KILL', 'ID', Number(id))
}

function makeClient(form: URL, name: string, connectionName = CONNECTION): Redis {
  const client = new Redis(withPlace(form, name), {
    connectionName,
    lazyConnect: true,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS_MAX,
    commandTimeout: COMMAND_MS_MAX,
    enableReadyCheck: false,
    disableClientInfo: true,
  })
  client.on('error', () => undefined)
  return client
}

async function connect({ id, name }: NodeLook, client: Redis): Promise<MoveEnd> {
  await client.connect().catch((error: Error) => {
    throw new Error(`Cannot reach a node: ${name}, ${error.message}`)
  })
  return { id, name, client }
}
