/**
 * cluster - every Redis of a cluster: whether its shards are served and kept, whether it has room, whether its
 * clock is that of the others
 *
 * Spec operator.health
 */

import type { Finding } from '../../schemas/operator/health.ts'
import type { ClusterState, RedisNode } from '../store/cluster/cluster-state.ts'
import { FILLING_SHARE, FULL_SHARE } from '../store/memory-pressure.ts'
import { failed, warning, well } from './finding.ts'

/** Deadlines follow the clock of a shard's primary; when another one takes over they must not move by more. */
const CLOCKS_MS_MAX = 250
/** A replica that is further behind than a moment's writes. */
const BEHIND_BYTES_MAX = 16 * 1024 ** 2
/** For each primary, if answers wait for one of them. */
const REPLICAS = 2
/** Findings of nodes; a cluster with more faults is fixed step by step. */
const TOLD_MAX = 40
/** Runs of shards that a sentence names. */
const RUNS_MAX = 6
const MENDED_BY_START = 'Follow the instruction in the message, then run doctor again'

/** The findings about all nodes: their faults, or one sentence without a fault. */
export function examineCluster(
  { faults, nodes, moving, dissent, mover }: ClusterState,
  { fault, isReplicated }: { readonly fault: string | null; readonly isReplicated: boolean },
): Finding[] {
  const found: Finding[] = faults.map((sentence) => failed('store', sentence, MENDED_BY_START))
  if (fault !== null)
    found.push(failed('store', `Rejecting all requests: ${fault}`, 'Follow the instruction in the message'))
  for (const one of moving) found.push(ofMove(one, mover))
  for (const one of dissent) found.push(ofDissent(one))
  for (const node of nodes) {
    const one = node.isPrimary ? ofPrimary(node, nodes, isReplicated) : ofReplica(node, isReplicated)
    if (one !== null) found.push(one)
  }
  if (found.length > 0) return found.slice(0, TOLD_MAX)
  const primaries = nodes.filter(({ shards }) => shards.length > 0)
  const fullest = Math.max(...primaries.map(shareOf))
  const replicas = nodes.filter(({ isPrimary }) => !isPrimary).length
  return [
    well(
      'store',
      `Redis Cluster of ${primaries.length} primaries and ${replicas} replicas, at most ${percent(fullest)} of maxmemory is used`,
    ),
  ]
}

/** A move that is running or was cut off, or its leftovers. */
function ofMove({ shard, at, to, from, uncleared }: ClusterState['moving'][number], mover: string | null): Finding {
  const order = (node: string | null): string => `sendwright cluster move ${shard} ${node ?? '<node>'}`
  if (from === null && mover !== null)
    return warning(
      'store',
      `Shard ${shard} is being copied to another Redis by ${mover} and is still served`,
      'No action needed',
    )
  if (from === null && uncleared.length > 0)
    return warning(
      'store',
      `${uncleared.join(' and ')} was unreachable when shard ${shard} was moved away, and its file still contains the shard`,
      `When it is reachable: ${order(at)}`,
    )
  if (from === null)
    return warning('store', `The slot of shard ${shard} is marked as being moved, and the shard is served`, order(to))
  if (mover !== null)
    return warning(
      'store',
      `Shard ${shard} is being moved to ${to ?? 'another Redis'} by ${mover}: requests of its accounts wait`,
      'No action needed',
    )
  return failed(
    'store',
    `The move of shard ${shard} to ${to ?? 'another Redis'} was interrupted: its accounts get 503`,
    at === to ? order(to) : `Complete the move: ${order(to)}; or undo it: ${order(at)}`,
  )
}

/** Were a replica elected that thinks so, it would claim the shards for itself (Redis before 7.2). */
function ofDissent({ node, holder, shards }: ClusterState['dissent'][number]): Finding {
  return failed(
    'store',
    `${node} does not know that ${holder} holds shards ${formatShards(shards)}: after a failover it could serve them with old data`,
    `Announce the holder again: ${redisCli(holder)} CLUSTER BUMPEPOCH; then run doctor again`,
  )
}

/** Clocks of the primaries against each other. */
export function examineClocks({ nodes }: ClusterState): Finding {
  const primaries = nodes.filter(({ isPrimary, clockOffMs }) => isPrimary && clockOffMs !== null)
  const offs = primaries.map(({ clockOffMs }) => clockOffMs ?? 0)
  const apart = Math.round(Math.max(...offs) - Math.min(...offs))
  if (apart <= CLOCKS_MS_MAX) return well('clock', `The clocks of ${primaries.length} primaries agree`)
  const last = primaries.find(({ clockOffMs }) => clockOffMs === Math.max(...offs))
  return failed(
    'clock',
    `The clocks of the primaries are ${apart} ms apart, ${last?.name} is ahead; ${CLOCKS_MS_MAX} ms is the most`,
    'Let NTP set the clocks of their machines (chronyc tracking, timedatectl set-ntp true)',
  )
}

function ofPrimary(node: RedisNode, nodes: readonly RedisNode[], isReplicated: boolean): Finding | null {
  const { name, shards } = node
  // One that holds nothing is about to get shards, or about to go.
  if (shards.length === 0) return null
  const held = `${shards.length} shards (${formatShards(shards)})`
  if (!node.answers)
    return failed(
      'store',
      `${name} does not answer: ${held} are unavailable`,
      mendSilent(node, isReplicated ? nodes : []),
    )
  if (!node.isWell)
    return failed(
      'store',
      `${name} takes no part in its cluster: ${held} are unavailable`,
      'It sees less than half of the primaries. Check the network between the machines',
    )
  if (node.hasFailedToWrite)
    return failed('store', `The last write of the append-only file of ${name} failed`, 'Check its log and its disk')
  if (isReplicated && node.replicasInStep === 0)
    return failed(
      'store',
      `${name} has no replica in sync: requests to its shards are not answered`,
      'Start its replicas; redis-cli INFO replication on them shows why they are behind',
    )
  if (isReplicated && node.replicasInStep === 1)
    return warning(
      'store',
      `${name} has one replica in sync: without it, requests to its shards are not answered`,
      spareFor(node, nodes) ??
        'Start the other one, or add one: redis-cli --cluster add-node <new> <node> --cluster-slave',
    )
  return ofMemory(node)
}

/**
 * A lost primary, once it is back, follows the node that took its last slot, possibly the target of a move, which then
 * has a replica too many. Null if there is no such node.
 */
function spareFor({ id }: RedisNode, nodes: readonly RedisNode[]): string | null {
  const rich = nodes.find((node) => node.isPrimary && node.replicasInStep > REPLICAS)
  const spare = nodes.find(({ primary, isInStep }) => isInStep && primary === rich?.name)
  if (rich === undefined || spare === undefined) return null
  return `${rich.name} has ${rich.replicasInStep} replicas. Let one follow this primary: ${redisCli(spare.name)} CLUSTER REPLICATE ${id}`
}

/**
 * If answers wait for no replica, each replica may lack answered writes, which only the primary has. Takes the nodes
 * among which one may take over.
 */
function mendSilent({ name }: RedisNode, nodes: readonly RedisNode[]): string {
  const replicas = nodes.filter(({ primary, answers, offset }) => primary === name && answers && offset !== null)
  const [best] = replicas.toSorted((a, b) => (b.offset ?? 0) - (a.offset ?? 0))
  if (best === undefined) return 'Start it again'
  return `Restart it, or promote its most advanced replica: ${redisCli(best.name)} CLUSTER FAILOVER FORCE`
}

/** As an operator types it for the node at `host:port`. */
function redisCli(name: string): string {
  const colon = name.lastIndexOf(':')
  return `redis-cli -h ${name.slice(0, colon)} -p ${name.slice(colon + 1)}`
}

function ofMemory(node: RedisNode): Finding | null {
  const { name, memory } = node
  const more = `CONFIG SET maxmemory ${2 * (memory?.bytesMax ?? 0)} and in its redis.conf, or give shards to another primary: sendwright cluster plan`
  if (memory?.bytesMax === 0)
    return warning('store', `${name} has no maxmemory`, 'Set maxmemory to three quarters of the memory that it may use')
  const share = shareOf(node)
  if (share >= FULL_SHARE)
    return failed('store', `${percent(share)} of the maxmemory of ${name} is used: new mail is refused`, more)
  if (share < FILLING_SHARE) return null
  return warning(
    'store',
    `${percent(share)} of the maxmemory of ${name} is used; from ${percent(FULL_SHARE)} on new mail is refused`,
    more,
  )
}

function ofReplica(
  { name, primary, answers, isInStep, behindBytes }: RedisNode,
  isReplicated: boolean,
): Finding | null {
  const of = primary === null ? '' : ` of ${primary}`
  const tell = isReplicated ? failed : warning
  if (!answers) return tell('store', `${name}, a replica${of}, does not answer`, 'Start it again')
  if (!isInStep)
    return tell(
      'store',
      `${name} has no link to its primary${of}`,
      `Check its log and redis-cli INFO replication on ${name}`,
    )
  if ((behindBytes ?? 0) <= BEHIND_BYTES_MAX) return null
  return warning(
    'store',
    `${name} is ${Math.round((behindBytes ?? 0) / 1024 ** 2)} MB behind its primary${of}`,
    'Its network or disk is too slow for the write load',
  )
}

function shareOf({ memory }: RedisNode): number {
  return memory === null || memory.bytesMax === 0 ? 0 : memory.usedBytes / memory.bytesMax
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

/** `0-3, 17`: runs of numbers. The numbers are in order. */
function formatShards(shards: readonly number[]): string {
  const runs: [number, number][] = []
  for (const shard of shards) {
    const last = runs.at(-1)
    if (last !== undefined && last[1] === shard - 1) last[1] = shard
    else runs.push([shard, shard])
  }
  const told = runs.slice(0, RUNS_MAX).map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
  return runs.length > RUNS_MAX ? `${told.join(', ')}, ...` : told.join(', ')
}
